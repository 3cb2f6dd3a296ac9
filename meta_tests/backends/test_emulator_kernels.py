"""Whether the emulator's kernels are right, and whether the named shapes take the named routes."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from emulated_calls import prepared_case
from emulator_driver import Emulator, dense, fresh
from holding import holding, judged_by
from places import ROOT
from poolproof.backends.emulator import library
from poolproof.references.forward import forward_maximum
from poolproof.references.geometry import adaptive_axis
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from poolproof.suites.run.sandbox import Sandbox

PRODUCTS = ("A2", "A3", "950")
POOL_2D, POOL_3D = "MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward"
ADAPTIVE_3D = "AdaptiveMaxPool3dBackward"
NHWC = tuple((name, "nhwc") for name in ("grad_input", "grad_output", "indices", "self"))


class Judged(NamedTuple):
    sandbox: Sandbox
    subjects: list[Subject]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Judged]]:
    """The suite's judge of each product that runs the family."""
    with ExitStack() as stack:
        found = {}
        for product in PRODUCTS:
            sandbox = Sandbox(f"emulator-{product.lower()}", tmp_path_factory.mktemp(product), "kernels", 60.0)
            stack.callback(sandbox.close)
            subjects = [subject for subject in sandbox.start().subjects if subject.unsupported is None]
            found[product] = Judged(sandbox, subjects)
        yield found


@pytest.fixture(scope="module")
def emulators() -> Iterator[dict[str, Emulator]]:
    """One for each of them, with the executor cache off."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(fresh(library(), name, DISABLE_L2_CACHE="1")) for name in PRODUCTS}


def backward(operator: str, *shape: int, dtype: str = "float32", **windows: object) -> Case:
    """A case with one of its cells as each window's index."""
    given = {"gradient": "uniform", "indices": "in_window", "index_dtype": "int32", **windows}
    return Case.of(operator, shape=shape, dtype=dtype, **given)


@pytest.mark.parametrize("product", PRODUCTS)
def test_values_are_right_and_nothing_else_is_written(judged: dict[str, Judged], product: str) -> None:
    """Each other call is made in the deterministic mode."""
    sandbox, subjects = judged[product]
    aspects = [CASE_ASPECTS[name] for name in ("values", "precision", "special_values", "layouts", "tagged")]
    asked = [question for block in blocks(subjects, aspects, PLANS["smoke"], 1) for question in block.prefix(4)]
    for number, question in enumerate(asked):
        asked[number] = replace(question, case=replace(question.case, deterministic=number % 2 == 0))
    rows = list(sandbox.judge(asked))
    wrong = [row["reason"] for row in rows if row["verdict"] not in (Verdict.CONFORMS, Verdict.REFUSED)]
    assert not wrong, wrong[:3]
    conforming = [row["operator"] for row in rows if row["verdict"] == Verdict.CONFORMS]
    assert len(set(conforming)) == (8 if product == "950" else 10), "the 950 refuses masks"
    assert len(conforming) > 400


def test_a_tag_that_the_suite_does_not_ask_is_read(emulators: dict[str, Emulator]) -> None:
    axes = [adaptive_axis(7, 3), adaptive_axis(9, 4)]
    sizes, windows = ((2, 3, *(getattr(axis, length) for axis in axes)) for length in ("size", "windows"))
    values = np.random.default_rng(11).choice([np.nan, -np.inf, -1.0, 0.0, 1.0, 2.0], sizes).astype("float64")
    maxima, indices = (array.reshape(windows) for array in forward_maximum(values.reshape(6, *sizes[2:]), axes))
    given = {"self": values, "out": np.zeros_like(maxima), "indices": np.zeros_like(indices)}
    views = {name: dense(np.moveaxis(array, 1, -1), "NHWC") for name, array in given.items()}
    assert emulators["950"].run("aclnnAdaptiveMaxPool2d", views, {"outputSize": windows[2:]}).ok
    np.testing.assert_array_equal(np.moveaxis(views["out"].array, -1, 1), maxima)
    np.testing.assert_array_equal(np.moveaxis(views["indices"].array, -1, 1), indices)


def test_index_content_does_not_matter_to_a_kernel_of_one(emulators: dict[str, Emulator]) -> None:
    with prepared_case(emulators["950"], backward(POOL_2D, 2, 3, 4, 5, kernel_size=(1, 1))) as call:
        call.fill("indices", -77)
        outcome = call.launch()
        assert outcome.ok and "key 800;" in outcome.route
        np.testing.assert_array_equal(call.views["gradInput"].array, call.views["gradOutput"].array)


@pytest.mark.parametrize(("kernel", "expected"), [((1, 2, 2), 0.0), ((1, 20, 20), 1.0)])
def test_an_index_outside_its_window_depends_on_the_template(
    emulators: dict[str, Emulator], kernel: tuple[int, ...], expected: float
) -> None:
    """The normal template drops such a gradient, scatter stores it."""
    with prepared_case(emulators["A2"], backward(POOL_3D, 1, 1, 1, 40, 40, kernel_size=kernel)) as call:
        gradients = np.ones_like(call.views["gradOutput"].array)
        gradients[0, 0, 0, 0, 0] = 0.0
        call.fill("gradOutput", gradients)
        call.fill("indices", 0)  # the first cell, in the first window only
        assert call.launch().ok
        assert call.views["gradInput"].array[0, 0, 0, 0, 0] == expected


def test_an_index_outside_the_tensor_is_a_device_memory_error() -> None:
    case = backward(POOL_3D, 1, 1, 1, 40, 40, kernel_size=(1, 20, 20))
    with fresh(library(), "A2") as disposable, prepared_case(disposable, case) as call:
        call.fill("indices", 100_000)
        assert call.launch().synchronisation == 507053
        assert call.launch().phase_two == 361001, "the context stays poisoned"


def test_half_sums_are_float32_but_native_on_the_950_adaptive(emulators: dict[str, Emulator]) -> None:
    """1000 windows over one cell: bfloat16 additions of 1 stall at 256, float32 sums do not."""
    sums = {}
    case = backward(ADAPTIVE_3D, 1, 1, 2, 1, 1, output_size=(1000, 1, 1), dtype="bfloat16")
    for product, emulator in emulators.items():
        with prepared_case(emulator, case) as call:
            call.fill("gradOutput", 1.0)
            call.fill("indices", 0)
            assert call.launch().ok
            sums[product] = float(call.views["gradInput"].array.reshape(-1)[0])
    assert sums["950"] == 256.0 < sums["A2"] == sums["A3"]


@pytest.mark.parametrize(("mode", "expected"), [(1, np.inf), (0, 65504.0)])
def test_overflow_follows_the_saturation_mode(emulators: dict[str, Emulator], mode: int, expected: float) -> None:
    case = backward(POOL_3D, 1, 1, 1, 1, 3, kernel_size=(1, 1, 2), stride=(1, 1, 1), dtype="float16")
    with prepared_case(emulators["A2"], case) as call:
        call.fill("gradOutput", 60000.0)
        call.fill("indices", 1)
        emulators["A2"].call("aclrtSetDeviceSatMode", mode)
        assert call.launch().ok
        emulators["A2"].call("aclrtSetDeviceSatMode", 1)
        assert call.views["gradInput"].array.reshape(-1)[1] == expected


def pool(operator: str, planes: tuple[int, int], sizes: list[int], kernel: list[int], *others: list[int]) -> Case:
    """A windowed case; others are stride, padding and dilation."""
    windows = dict(zip(("stride", "padding", "dilation"), map(tuple, others), strict=False))
    return backward(operator, *planes, *sizes, kernel_size=tuple(kernel), **windows)


ROUTES_220 = [
    (pool(POOL_3D, (2, 64), [4, 6, 6], [1, 2, 2]), "normal; key 0"),
    (pool(POOL_3D, (2, 40), [1, 15, 15], [1, 9, 9], [1, 1, 1], [0, 4, 4]), "normal; key 0"),
    (pool(POOL_3D, (1, 40), [16, 9, 9], [1, 3, 3], [1, 2, 2]), "normal overlap; key 100"),
    (pool(POOL_3D, (1, 2), [10, 78, 146], [5, 1, 6], [8, 13, 18], [1, 0, 1]), "cut kernel; key 31"),
    (pool(POOL_3D, (1, 1), [22, 19, 8], [22, 19, 4]), "scatter; key 2"),
    (pool(POOL_3D, (1, 2), [1, 34, 34], [1, 17, 17], [1, 8, 8]), "scatter overlap; key 102"),
    (pool(POOL_3D, (1, 1), [2, 6, 6], [1, 2, 2], [1, 2, 2], [0, 0, 0], [1, 1, 2]), "scatter overlap; key 2"),
    (pool(POOL_3D, (1, 1), [2, 6, 6], [1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 2]), "scatter; key 2"),
]
ROUTES_950 = [
    (pool(POOL_3D, (5, 3), [4, 4, 4], [2, 2, 2], [2, 2, 2], [1, 1, 1]), "simd, whole planes; key 2049"),
    (pool(POOL_3D, (1, 2), [8, 10, 514], [2, 2, 2]), "simd, aligned; key 1"),
    (pool(POOL_3D, (2, 2), [10, 11, 1024], [2, 4, 5], [1, 2, 3], [1, 2, 2]), "simd, unaligned; key 1025"),
    (pool(POOL_3D, (1, 1), [60] * 3, [24] * 3, [1] * 3), "simt; key unknown"),
    (pool(POOL_2D, (2, 3), [64, 64], [64, 64]), "scalar; key 301"),
    (backward(POOL_2D, 3, 12, 2, 22, kernel_size=(2, 6), ceil_mode=True), "simt; key 900"),
    (pool(POOL_2D, (2, 3), [64, 64], [3, 3], [2, 2], [1, 1]), "vector; key 101"),
    (pool(POOL_2D, (40, 30), [32, 32], [2, 2]), "vector; key 100"),
    (pool(POOL_2D, (2, 3), [64, 64], [2, 2], [2, 2], [0, 0], [2, 2]), "vector; key 100"),
    (pool(POOL_2D, (2, 6), [8, 3], [1, 1]), "kernel of one; key 800"),
    *(
        (replace(pool(POOL_2D, planes, sizes, [3, 3], [2, 2], [1, 1]), layouts=NHWC), f"; key {key}")
        for planes, sizes, key in (((2, 2), [18, 30], 502), ((2, 20), [18, 60], 601), ((2, 200), [18, 30], 701))
    ),
]
ROUTES_ADAPTIVE = [
    ("A2", [6, 8, 4], (3, 4, 2), "MaxPool3DGradWithArgmax: normal; key 0;"),
    ("A3", [24, 24, 4], (2, 2, 2), "MaxPool3DGradWithArgmax: scatter; key 2;"),
    ("A2", [7, 5, 3], (3, 4, 8), "AdaptiveMaxPool3DGrad: normal overlap; key 100;"),
    ("A2", [41, 41, 3], (2, 3, 1), "AdaptiveMaxPool3DGrad: scatter overlap; key 102;"),
    ("950", [6, 8, 4], (3, 4, 2), "AdaptiveMaxPool3DGrad: simt; key 16;"),
    ("950", [7, 5, 3], (3, 4, 8), "AdaptiveMaxPool3DGrad: simt atomic; key 16;"),
]
ROUTES = [
    *(
        (product, replace(case, dtype=dtype), f"MaxPool3DGradWithArgmax: {branch};")
        for product in ("A2", "A3")
        for case, branch in ROUTES_220
        for dtype in ("float32", "bfloat16")
    ),
    *(("950", case, f"{branch};") for case, branch in ROUTES_950),
    *(
        (product, backward(ADAPTIVE_3D, 2, 2, *sizes, output_size=outputs, dtype="float16"), branch)
        for product, sizes, outputs, branch in ROUTES_ADAPTIVE
    ),
]


@pytest.mark.parametrize(("product", "case", "branch"), ROUTES, ids=lambda value: getattr(value, "id", value))
def test_routes(judged: dict[str, Judged], product: str, case: Case, branch: str) -> None:
    (row,) = judged[product].sandbox.judge([CaseQuestion(case, holding(*USUAL))])
    assert row["verdict"] == Verdict.CONFORMS, row["reason"]
    assert branch in row["route"]


@pytest.mark.parametrize(
    ("product", "case"),
    [
        ("A2", pool(POOL_3D, (1, 1), [1, 20, 2000], [1, 3, 3], [1, 1, 1], [0, 1, 1])),
        ("950", backward(ADAPTIVE_3D, 1, 1, 1, 20, 50, output_size=(1, 33, 333))),
    ],
    ids=["A2", "950"],
)
def test_only_determinism_fixes_the_order_of_sums(emulators: dict[str, Emulator], product: str, case: Case) -> None:
    """Without it a shape with three and more additions to a cell, from several cores, gives varying bits."""
    emulator, rng = emulators[product], np.random.default_rng(10)
    results: dict[bool, set[bytes]] = {True: set(), False: set()}
    with prepared_case(emulator, case) as call:
        shape = call.views["gradOutput"].array.shape
        call.fill("gradOutput", 2.0 ** rng.integers(-20, 20, shape) * rng.standard_normal(shape))
        for level in (0, 1, 2, 3) * 10:
            emulator.call("aclrtSetSysParamOpt", 0, level)
            assert call.launch().route.endswith(f"atomic {int(level == 0)}")
            results[level > 0].add(call.views["gradInput"].storage.tobytes())
    emulator.call("aclrtSetSysParamOpt", 0, 0)
    assert len(results[False]) > 1
    assert len(results[True]) == 1


_FINDINGS = (ROOT / "FINDINGS.md").read_text(encoding="utf-8")
FAULTS = re.findall(r"\*\*V\d+\. (A2|950)(?:(?!\*\*V).)*?seeded as\s+`(\w+)`.*?\n\s+({.*?})\n", _FINDINGS, re.DOTALL)


@pytest.mark.parametrize(("product", "defect", "line"), FAULTS, ids=[defect for _, defect, _ in FAULTS])
def test_a_fault_of_the_vendors_kernels_that_is_seeded_is_found_by_its_case(
    product: str, defect: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOLPROOF_EMULATOR_DEFECTS", defect)
    asked = CaseQuestion(Case.from_json(line), holding(*USUAL))
    (row,) = judged_by(f"emulator-{product.lower()}", [asked], tmp_path)
    assert (row["verdict"], len(FAULTS)) == (Verdict.VIOLATES, 16)
