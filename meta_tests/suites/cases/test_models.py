"""Targets and layers of networks: runnable, sized as their sources say, in the plans that are meant to have them."""

import re
from math import prod

import numpy as np
import pytest

from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatFormat
from poolproof.references.geometry import expand, taps
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Windowed, Windows
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.ends import ends
from poolproof.suites.cases.models import LAYERS, SMALL, models
from poolproof.suites.cases.recipes.gradients import GRADIENTS, Landing
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.recipes.values import VALUES
from poolproof.suites.cases.targets import SOAK, known_geometries, targets
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks

POOLED = {
    ("ResNet-50", "stem"): (56, 56),
    ("ResNet-50", "pool1 of Caffe"): (56, 56),
    ("VGG-16", "pool5"): (7, 7),
    ("GoogLeNet", "maxpool1"): (56, 56),
    ("GoogLeNet", "inception5a"): (7, 7),
    ("SqueezeNet 1.0", "second pool"): (27, 27),
    ("Inception v3", "Mixed_6a"): (17, 17),
    ("DenseNet-121", "pool0"): (56, 56),
    ("AlexNet", "last pool"): (6, 6),
    ("U-Net", "first level"): (284, 284),
    ("U-Net", "fourth level"): (32, 32),
    ("YOLOv3-SPP", "13x13"): (13, 13),
    ("PointNet", "1024 points"): (1, 1),
    ("CIFAR-10 tutorial", "second pool"): (5, 5),
    ("C3D", "pool1"): (16, 56, 56),
    ("C3D", "pool5"): (1, 4, 4),
    ("3-D ResNet-18", "stem"): (8, 28, 28),
    ("3-D U-Net", "second level"): (30, 30, 26),
    ("S3D", "first pool"): (32, 56, 56),
}
"""What the next layer of the network takes, by its source: typed a second time, for the windows to lead there."""


@pytest.mark.parametrize(("network", "name"), POOLED)
def test_windows_lead_to_the_size_that_the_network_goes_on_with(network: str, name: str) -> None:
    (layer,) = (layer for layer in LAYERS if (layer.network, layer.name) == (network, name))
    assert tuple(axis.windows for axis in layer.windows.axes(layer.shape[2:])) == POOLED[network, name]


def test_every_layer_has_a_name_of_its_own_a_source_and_an_operator_each_way() -> None:
    assert len({(layer.network, layer.name) for layer in LAYERS}) == len(LAYERS)
    for layer in LAYERS:
        assert layer.source
        runs = [operator.direction for operator in OPERATORS.values() if layer.is_run_by(operator)]
        assert len(set(runs)) == 2, layer


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_layer_is_a_legal_case_in_what_networks_are_trained_in(operator: Operator) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        listed = models(Scope(operator, ("int32",)), dtype, "int32")
        assert listed
        for target in listed:
            assert Case.from_json(target.case.to_json()) == target.case
    assert models(Scope(operator, ("int32",)), "float64", "int32") == []


def planned(plan: str) -> list[int]:
    """Elements of ``self`` of every case that a plan has of the aspect."""
    subjects = [Subject("any", operator, "float16", "int32") for operator in OPERATORS.values()]
    found = blocks(subjects, [CASE_ASPECTS["models"]], PLANS[plan], 0)
    return [prod(question.case.shape) for block in found for question in block.questions()]


def test_the_smoke_plan_has_the_small_layers_and_the_acceptance_plan_all() -> None:
    smoke, acceptance = planned("smoke"), planned("acceptance")
    assert smoke and max(smoke) < SMALL
    assert sorted({*smoke}) == sorted({size for size in acceptance if size < SMALL})
    assert len([size for size in acceptance if size >= SMALL]) > 40


@pytest.mark.parametrize("name", OPERATORS)
def test_windows_of_layers_meet_rows_of_every_remainder(name: str) -> None:
    operator, met = OPERATORS[name], dict[Windows, set[int]]()
    for each in models(Scope(operator, ("int32",)), "float32", "int32"):
        if each.plan_cases == 0 and " on rows of " in each.name:
            met.setdefault(each.case.attributes, set()).add(each.case.shape[-1] % 8)
    used = {layer.windows.passed() for layer in LAYERS if layer.is_run_by(operator)}
    assert {each for each in used if max(each.sizes) <= 16} == met.keys()
    assert all(remainders == set(range(8)) for remainders in met.values())


@pytest.mark.parametrize("name", [name for name, each in OPERATORS.items() if each.windows is Windowed])
def test_every_known_geometry_is_a_target(name: str) -> None:
    operator = OPERATORS[name]
    planned = [target.case for target in targets(Scope(operator, ("int32",)), "float32", "int32")]
    asked = {(case.spatial_shape, case.attributes.sizes) for case in planned}
    known = {(geometry.spatial, geometry.windows.kernel_size) for geometry in known_geometries(operator.spatial_rank)}
    assert len(known) > 5
    assert known <= asked


def measured(quantity: str, case: Case) -> int:
    """The quantity of an end by the words of its name."""
    what, _, where = quantity.partition(" along ")
    rank = case.api.spatial_rank
    axis = "dhw"[-rank:].index(where) if where else 0
    length, windows, form = case.spatial_shape[axis], case.axes[axis].windows, dict[str, int]()
    if what in (lists := {"kernel": "kernel_size", "stride": "stride", "padding": "padding", "dilation": "dilation"}):
        return expand(getattr(case.attributes, lists[what]), rank)[axis]
    for tensor, _ in case.layouts:
        placed = case.forms[tensor]
        form = {f"offset of {tensor}": placed.start}
        form |= {f"gap behind {one} of {tensor}": placed.strides[at] for one, at in (("rows", -2), ("planes", -3))}
    batch, channels = case.leading_shape
    form |= {"batch": batch, "channels": channels, "planes": case.planes, "length": length, "windows": windows}
    form |= {"length x windows": length * windows, "length and windows": min(length, windows)}
    form |= {"cells of a plane": case.plane_size, "windows of a plane": case.plane_windows}
    return (form | {"cells of a window": taps(case.axes)})[what]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_end_is_passed_and_cheap_ones_are_asked_by_every_plan(name: str) -> None:
    operator, found = OPERATORS[name], dict[str, set[int]]()
    for dtype in ("float32", "float16", "bfloat16"):
        for each in ends(Scope(operator, ("int32", "int64")), dtype, operator.indices.dtypes[0]):
            found.setdefault(each.name, set()).add(each.plan_cases)
            if each.plan_cases < SOAK:
                quantity, bits = re.fullmatch(r"(.*) past (\d+) bits", each.name).groups()
                assert 1 << int(bits) < measured(quantity, each.case) < 1 << int(bits) + 3, each.name
    assert len({name for name, plans in found.items() if 0 in plans}) > len(found) // 3
    assert not [name for name, plans in found.items() if plans == {SOAK} and "20 bits" not in name]


SIZE = 10_000


@pytest.mark.parametrize("fmt", (FLOAT32, FLOAT16, BFLOAT16, FLOAT64), ids=lambda fmt: fmt.name)
def test_values_are_as_layers_leave_them(fmt: FloatFormat) -> None:
    """Half of a rectifier's zero; saturated ones tied at the largest number; normalised ones of several gains."""
    rectified, saturated, normalised = (
        VALUES[name](SIZE, fmt, RandomStream(1, "values")) for name in ("after_relu", "saturated", "batch_normalised")
    )
    assert rectified.min() == 0.0
    assert 0.48 < (rectified == 0.0).mean() < 0.52
    assert np.isfinite(saturated).all()
    assert 0.015 < (saturated == fmt.max).mean() < 0.035
    assert abs(normalised.mean()) < 0.1
    assert 1.0 < normalised.std() < 1.6
    kurtosis = np.mean((normalised - normalised.mean()) ** 4) / normalised.var() ** 2
    assert kurtosis > 3.5, "one normal distribution has 3"
    for values in (saturated, normalised):
        assert np.array_equal(values.astype(fmt.dtype).astype(np.float64), values)


def test_backpropagated_gradients_are_small_and_some_are_subnormal_in_float16() -> None:
    landing = Landing(np.arange(SIZE)[None], SIZE)
    gradient = np.abs(GRADIENTS["backpropagated"](landing, FLOAT16, RandomStream(1, "gradient")))
    assert gradient.max() < 1.0
    assert 0.05 < ((gradient > 0.0) & (gradient < FLOAT16.smallest_normal)).mean() < 0.5
