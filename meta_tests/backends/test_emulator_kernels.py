"""Whether the emulator's kernels are right, and whether the named shapes take the named routes."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from emulated_calls import prepared_case
from emulator_driver import Emulator, fresh
from finding_programs import PAGES
from holding import holding, judged_by
from poolproof.backends.emulator import library
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from poolproof.suites.run.sandbox import Sandbox
from shares import a_share

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


_OVERLAPPING: dict[str, Any] = {"kernel_size": (3,), "stride": (2,), "padding": (1,), "layouts": NHWC}

ROUTES = [
    (backward(POOL_3D, 1, 1, 2, 6, 6, kernel_size=(1, 2, 2), dilation=(1, 1, 2)), "A2", "scatter overlap; key 2;"),
    (backward(POOL_3D, 1, 2, 8, 10, 514, kernel_size=(2,)), "950", "simd, aligned; key 1;"),
    (backward(POOL_3D, 1, 1, 60, 60, 60, kernel_size=(24,), stride=(1,)), "950", "simt; key unknown;"),
    (backward(POOL_2D, 2, 20, 18, 60, **_OVERLAPPING), "950", "; key 601;"),
    (backward(POOL_2D, 2, 200, 18, 30, **_OVERLAPPING), "950", "; key 701;"),
]
"""Those that neither the recorded bits nor the recorded statuses take."""


@pytest.mark.parametrize(("case", "product", "branch"), ROUTES, ids=lambda value: getattr(value, "id", value))
def test_routes(judged: dict[str, Judged], case: Case, product: str, branch: str) -> None:
    (row,) = judged[product].sandbox.judge([CaseQuestion(case, holding(*USUAL))])
    assert row["verdict"] == Verdict.CONFORMS, row["reason"]
    assert branch in row["route"]


@pytest.mark.parametrize(
    ("product", "case"),
    [
        ("A2", backward(POOL_3D, 1, 1, 1, 20, 2000, kernel_size=(1, 3, 3), stride=(1,), padding=(0, 1, 1))),
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


_CASES = (PAGES / "ascend_kernels" / "cases.jsonl").read_text(encoding="utf-8")
FAULTS = re.findall(r"^# V\d+ (A2|950) (\w+)\n(.*)", _CASES, re.MULTILINE)


@pytest.mark.parametrize(("product", "defect", "line"), a_share(FAULTS), ids=[defect for _, defect, _ in FAULTS])
def test_a_fault_of_the_vendors_kernels_that_is_seeded_is_found_by_its_case(
    product: str, defect: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOLPROOF_EMULATOR_DEFECTS", defect)
    asked = CaseQuestion(Case.from_json(line), holding(*USUAL))
    (row,) = judged_by(f"emulator-{product.lower()}", [asked], tmp_path)
    assert (row["verdict"], len(FAULTS)) == (Verdict.VIOLATES, 16)
