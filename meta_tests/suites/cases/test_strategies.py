"""Strategies draw what they promise, and the same everywhere; recipes fill what they promise."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from operator import gt, lt
from typing import Any

import numpy as np
import pytest

from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatFormat
from poolproof.references.geometry import windowed_axis
from poolproof.references.layouts import DRAWN, LAYOUTS, MemoryLayout
from poolproof.references.operators import BACKWARDS, OPERATORS, Operator
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed, generate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.recipes.gradients import GRADIENTS, Landing
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.shrinking import smaller_case
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseAspect
from poolproof.suites.plan.plans import PLANS, Subject, blocks


@cache
def drawn(operator: Operator, aspect: CaseAspect, count: int = 300) -> list[Case]:
    index_dtype = operator.indices.dtypes[-1]
    return generate(cases(operator, "float16", index_dtype, aspect.profile), count, seed=3)


@pytest.mark.parametrize("aspect", CASE_ASPECTS.values(), ids=lambda aspect: aspect.id)
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_draw_is_legal(operator: Operator, aspect: CaseAspect) -> None:
    if aspect.profile.empty_windows and not operator.windows.can_miss_input:
        pytest.skip("an adaptive window always has a cell")
    if aspect.profile.tagged and not operator.takes_tags:
        pytest.skip("this operator has no channels-last tag")
    for case in drawn(operator, aspect, 60):
        assert Case.from_json(case.to_json()) == case
        assert not {*"'\n"} & {*case.to_json()}, "the line must fit between single quotes in a shell"
        assert case.has_empty_window() == aspect.profile.empty_windows
        if isinstance(case.attributes, Windowed):
            assert max(case.attributes.padding, default=0) <= max(case.attributes.kernel_size) // 2
        if aspect.profile.budgets[-1] <= 4096:
            assert case.planes * case.plane_size <= 40_000
            assert case.planes * case.plane_windows <= 40_000


def windowed(aspect: str = "values") -> list[Case]:
    return drawn(OPERATORS["MaxPool3dWithArgmaxBackward"], CASE_ASPECTS[aspect], 1500)


def along(case: Case, first: str, second: str, holds: Callable[[int, int], bool], many: Callable = any) -> bool:
    """Whether two attributes, or one and the shape, are so along any axis, or all."""
    sizes = {**vars(case.attributes), "shape": case.spatial_shape}
    return many(holds(one, other) for one, other in zip(sizes[first], sizes[second], strict=False))


FEATURES: dict[str, Callable[[Any], bool]] = {
    "unbatched": lambda case: len(case.shape) == 4,
    "batched": lambda case: len(case.shape) == 5,
    "empty batch": lambda case: 0 in case.shape,
    "ceil_mode": lambda case: case.attributes.ceil_mode,
    "full padding": lambda case: along(case, "padding", "kernel_size", lambda p, k: bool(p) and p == k // 2),
    "dilation": lambda case: max(case.attributes.dilation, default=1) > 1,
    "uneven dilation": lambda case: len(set(case.attributes.dilation)) > 1,
    "stride list empty": lambda case: case.attributes.stride == (),
    "lists of length one": lambda case: len(case.attributes.kernel_size) == 1,
    "kernel beyond the input": lambda case: along(case, "kernel_size", "shape", gt),
    "stride above kernel": lambda case: along(case, "stride", "kernel_size", gt),
    "stride below kernel": lambda case: along(case, "stride", "kernel_size", lt),
    "unit axis": lambda case: 1 in case.spatial_shape,
    "uneven spatial axes": lambda case: len(set(case.spatial_shape)) == 3,
    "planes around 16": lambda case: case.planes in (15, 16, 17),
    "planes around 64": lambda case: case.planes in (63, 64, 65),
    "length around 32": lambda case: bool({31, 32, 33} & set(case.spatial_shape)),
    "overlap": lambda case: any(axis.coverage().max() > 1 for axis in case.axes),
    "gaps": lambda case: any(axis.coverage().min() == 0 for axis in case.axes),
    "clipped last window": lambda case: any(not axis.valid[-1].all() for axis in case.axes),
}
ADAPTIVE: dict[str, Callable[[Any], bool]] = {
    "more windows than cells": lambda case: along(case, "output_size", "shape", gt),
    "one axis not divisible": lambda case: along(
        case, "output_size", "shape", lambda out, size: size % out != 0, lambda uneven: sum(uneven) == 1
    ),
    "all axes divisible": lambda case: along(case, "output_size", "shape", lambda out, size: size % out == 0, all),
}


def test_geometries_visit() -> None:
    visits = {feature: sum(map(has, windowed())) for feature, has in FEATURES.items()}
    adaptive = drawn(OPERATORS["AdaptiveMaxPool3dBackward"], CASE_ASPECTS["values"])
    visits |= {feature: sum(map(has, adaptive)) for feature, has in ADAPTIVE.items()}
    assert min(visits.values()) >= 5, visits


def test_layouts_come_alone_and_together() -> None:
    layouts = [dict(case.layouts) for case in windowed("layouts")]
    alone = {name for choice in layouts if len(choice) == 1 for name in choice}
    assert alone == {"self", "grad_output", "indices", "grad_input"}
    assert any(len(choice) == 4 for choice in layouts)
    assert not any("expanded" in choice.get("grad_input", "") for choice in layouts)
    assert any("+17" in layout for choice in layouts for layout in choice.values())


def layouts_of(operator: Operator, tensor: str) -> set[str]:
    """What programs make of such a tensor: outputs share no memory, indices only from plane to plane."""
    letters = "ncdhw" if operator.spatial_rank == 3 else "nchw"
    sharing = "" if tensor in operator.outputs else "nc" if tensor == "indices" else letters
    views = {name: LAYOUTS[name] for name in DRAWN if name != "contiguous"}
    return {
        name
        for name, view in views.items()
        if set(view.axes) <= set(letters) and set(view.shared) & set(letters) <= set(sharing)
    }


@pytest.mark.parametrize(
    ("operator", "index_dtype"),
    [(operator, dtype) for operator in OPERATORS.values() for dtype in operator.indices.dtypes],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_tensor_meets_every_layout_in_the_smoke_plan(operator: Operator, index_dtype: str) -> None:
    subjects = [Subject("any", operator, dtype, index_dtype) for dtype in ("float32", "float16", "bfloat16")]
    planned = blocks(subjects, [CASE_ASPECTS["layouts"]], PLANS["smoke"], 0)
    drawn = [dict(question.case.layouts) for block in planned for question in block.questions()]
    choices = [{tensor: MemoryLayout.parse(text) for tensor, text in layouts.items()} for layouts in drawn]
    for tensor in operator.strided:
        met = {choice[tensor].name for choice in choices if tensor in choice}
        assert layouts_of(operator, tensor) - met == set(), tensor
    behind_an_offset = {layout.name for choice in choices for layout in choice.values() if layout.offset}
    assert layouts_of(operator, "self") - behind_an_offset == set()


def test_large_plane_counts_and_lengths_belong_to_scale() -> None:
    scale = drawn(OPERATORS["MaxPool2dWithIndicesBackward"], CASE_ASPECTS["scale"], 800)
    for threshold in ((255, 256, 257), (1023, 1024, 1025)):
        assert any(case.planes in threshold for case in scale)
    assert any(set(case.spatial_shape) & {255, 256, 257, 258} for case in scale)


def test_the_same_seed_draws_the_same_cases_in_another_process() -> None:
    program = (
        "from poolproof.references.operators import OPERATORS\n"
        "from poolproof.suites.plan.aspects import CASE_ASPECTS\n"
        "from poolproof.suites.cases.generation import generate\n"
        "from poolproof.suites.cases.strategies import cases\n"
        "operator, profile = OPERATORS['MaxPool2dWithIndicesBackward'], CASE_ASPECTS['layouts'].profile\n"
        "for case in generate(cases(operator, 'float16', 'int64', profile), 50, 3):\n"
        "    print(case.id)\n"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [case.id for case in drawn(OPERATORS["MaxPool2dWithIndicesBackward"], CASE_ASPECTS["layouts"], 50)] == other


def test_fewer_cases_are_a_prefix_of_more() -> None:
    operator, aspect = OPERATORS["AdaptiveMaxPool2d"], CASE_ASPECTS["values"]
    assert drawn(operator, aspect, 20) == drawn(operator, aspect, 200)[:20]


def test_seeds_depend_on_every_part() -> None:
    assert len({derive_seed(0, "a", 1), derive_seed(0, "a", 2), derive_seed(1, "a", 1), derive_seed(0, "b", 1)}) == 4


def test_shrinking_ends_at_the_smallest_failing_case_and_at_once_where_none_fails_again() -> None:
    make = cases(OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64", CASE_ASPECTS["values"].profile)
    drawn = generate(make, 100, 9)
    failing = next(case for case in drawn if case.attributes.ceil_mode and case.planes >= 3 and case.plane_size > 6)
    small = smaller_case(failing, {}, lambda case: case.attributes.ceil_mode and case.planes >= 2, 20.0)
    assert small.attributes.ceil_mode
    assert (small.planes, small.plane_size) == (2, 1)
    assert smaller_case(failing, {}, lambda case: False, 5.0) == failing


FMTS = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)


def crowd(k_max: int) -> Landing:
    """Cells with 1 ... k_max gradients each, in shuffled memory order."""
    cells = np.repeat(np.arange(k_max * 8), np.resize(np.arange(1, k_max + 1), k_max * 8))
    axis = windowed_axis(len(cells), 1, 1, 0, 1, ceil_mode=False)
    return Landing(np.random.default_rng(0).permutation(cells)[None], k_max * 8, (axis,))


@pytest.mark.parametrize("recipe", [name for name in GRADIENTS if name != "pointed"])
@pytest.mark.parametrize("fmt", FMTS, ids=lambda fmt: fmt.name)
def test_gradients_are_representable_and_repeatable(fmt: FloatFormat, recipe: str) -> None:
    landing = crowd(9)
    gradient = GRADIENTS[recipe](landing, fmt, RandomStream(4, "gradient"))
    assert gradient.shape == landing.cells.shape
    assert np.array_equal(gradient.astype(fmt.dtype).astype(np.float64), gradient, equal_nan=True)
    assert np.array_equal(gradient, GRADIENTS[recipe](landing, fmt, RandomStream(4, "gradient")), equal_nan=True)


@pytest.mark.parametrize("fmt", FMTS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("k_max", [1, 2, 9, 100])
def test_integers_are_exact_in_every_order_and_model(fmt: FloatFormat, k_max: int) -> None:
    landing = crowd(k_max)
    gradient = GRADIENTS["integers"](landing, fmt, RandomStream(1, "gradient"))
    assert (gradient != 0).all()
    assert np.bincount(landing.cells, np.abs(gradient)).max() <= fmt.largest_exact_integer


def test_special_gradients_mix_every_kind_and_subnormal_ones_are_below_twice_the_smallest_normal() -> None:
    gradient = GRADIENTS["special"](crowd(9), FLOAT16, RandomStream(1, "gradient"))
    for kind in (np.isnan, np.isposinf, np.isneginf, lambda values: np.signbit(values) & (values == 0)):
        assert kind(gradient).any()
    assert np.isfinite(gradient).mean() > 0.5
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        gradient = np.abs(GRADIENTS["subnormal"](crowd(3), fmt, RandomStream(1, "gradient")))
        assert (gradient < fmt.smallest_normal).any()
        assert gradient.max() <= 2 * fmt.smallest_normal


@pytest.mark.parametrize("operator", BACKWARDS, ids=lambda operator: operator.name)
@pytest.mark.parametrize("recipe", INDICES)
def test_every_index_lies_in_its_own_window(operator: Operator, recipe: str) -> None:
    profile = Profile(indices=(recipe,), empty_batches=False)
    index_dtype = operator.indices.dtypes[-1]
    for case in generate(cases(operator, "float32", index_dtype, profile), 40, 6):
        indices = make_operands(case).indices
        assert indices is not None
        rest = indices
        for number in reversed(range(len(case.axes))):
            axis = case.axes[number]
            rest, coordinate = np.divmod(rest, axis.size)
            window = np.arange(axis.windows).reshape(-1, *(1,) * (len(case.axes) - 1 - number))
            visited = (axis.positions[window] == coordinate[..., None]) & axis.valid[window]
            assert visited.any(axis=-1).all()
        assert not rest.any()


def test_shared_indices_concentrate_and_tile_borders_are_hit() -> None:
    windows = {"shape": (1, 1, 66, 66), "kernel_size": (5, 5), "stride": (1,), "padding": (2,)}
    case = Case.of("MaxPool2dWithIndicesBackward", indices="shared", **windows)
    assert make_operands(case).landing.largest_multiplicity >= 9
    borders = make_operands(replace(case, indices="tile_borders")).indices
    assert borders is not None
    assert {63, 64} & set((borders % 66).ravel().tolist())


def test_data_depends_on_the_seed_and_nothing_else_that_varies() -> None:
    data = {"indices": "in_window", "gradient": "uniform"}
    base = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 2, 9, 9), kernel_size=(3, 3), **data)
    same = {"stride": [], "padding": [], "dilation": [], "layouts": {"self": "sliced"}, "index_dtype": "int32"}
    other = Case.from_record(json.loads(base.to_json()) | same)
    assert np.array_equal(make_operands(base).gradient, make_operands(other).gradient)
    assert not np.array_equal(make_operands(base).gradient, make_operands(replace(base, seed=1)).gradient)


def test_the_random_stream_is_pinned() -> None:
    """Data must not change with a library version: these are the first numbers of two streams."""
    first = [594, 896, 447, 10]
    assert RandomStream(0, "gradient").below(1000, 4).tolist() == first
    assert RandomStream(1, "gradient").below(1000, 4).tolist() != first
    assert RandomStream(0, "values").below(1000, 4).tolist() != first
