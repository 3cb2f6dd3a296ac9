"""Torch is what the probe finds it to be, behind its autograd, too; and shows what docs/findings says of it."""

import json
from collections.abc import Callable
from datetime import date

import pytest

import forked
from finding_programs import EndedProcess, Program, programs, run_afresh
from forked import Command
from places import ROOT
from poolproof.backends.base import Call, Outcome
from poolproof.backends.frameworks import torch_routes
from poolproof.backends.frameworks.torch_routes import CHANNELS_LAST, VALUES_ALONE, TorchAutograd
from poolproof.backends.registry import create
from poolproof.references.operators import BACKWARDS, FORWARDS, Operator
from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.waivers import Waivers, shipped
from poolproof.suites.api import judge
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS, run_checks
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import EVERYTHING
from poolproof.suites.probe.questions import MEMORY_FORMATS, take_account
from sessions import surroundings

pytest.importorskip("torch")

DTYPES = ("float64", "float32", "float16", "bfloat16")


@pytest.mark.parametrize("memory_format", MEMORY_FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", [operator for operator in BACKWARDS if operator.aten], ids=lambda op: op.name)
def test_declared_accumulation_is_the_one_found(operator: Operator, dtype: str, memory_format: str) -> None:
    account = take_account(create("torch-cpu"), operator.name, dtype, "int64", memory_format)
    wide = dtype in ("float32", "float64")
    assert account.model == account.declared == ("acc32" if wide else "native")
    traits = ("rounding", "subnormals", "overflow", "infinity", "NaN", "-0", "repetitions")
    found = ["even", "kept", "infinity", "kept", "kept", "becomes +0", "agree"]
    assert [account.found(trait) for trait in traits] == found
    if operator.name == "AdaptiveMaxPool3dBackward" and memory_format == "channels_last":
        assert account.found("exact data") == "wrong unless grad_input and indices are contiguous"  # known, waived
        assert len(account.disagreements) == 1
    else:
        assert account.found("exact data") == "right"
        assert account.disagreements == ()


@pytest.mark.parametrize("memory_format", MEMORY_FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", [operator for operator in FORWARDS if operator.aten], ids=lambda op: op.name)
def test_indices_follow_the_rules(operator: Operator, dtype: str, memory_format: str) -> None:
    account = take_account(create("torch-cpu"), operator.name, dtype, "int64", memory_format)
    assert account.found("tie") == "first"
    assert account.found("NaN") == "last NaN"
    if operator.name == "MaxPool3dWithArgmax" and memory_format == "channels_last":
        # Channels that do not fill a vector get an index outside the window (FINDINGS.md).
        assert account.found("-inf") == "none of those known"
    else:
        assert account.found("-inf") == "a cell, as of ties"
        assert account.model == "first"


# Behind its autograd: foreign indices arrive there, and what a user can choose is asked.

FOREIGN = [
    Case.of("MaxPool2dWithIndicesBackward", shape=(2, 3, 7, 6), kernel_size=(3,), stride=(2,), indices="in_window"),
    Case.of("MaxPool3dWithArgmaxBackward", shape=(1, 3, 4, 5, 6), kernel_size=(2,), stride=(1,), indices="crowded"),
    Case.of("AdaptiveMaxPool2dBackward", shape=(1, 2, 7, 6), output_size=(3, 4), indices="last", dtype="bfloat16"),
    Case.of("AdaptiveMaxPool3dBackward", shape=(1, 2, 4, 5, 6), output_size=(2, 3, 4), indices="in_window"),
]


ONEDNN = [
    Case.of("MaxPool2dWithIndicesBackward", shape=(2, 19, 9, 8), kernel_size=(3,), stride=(2,), padding=(1,)),
    Case.of("MaxPool2dWithIndicesBackward", shape=(1, 3, 7, 6), kernel_size=(2, 3), stride=(1,), dtype="bfloat16"),
    Case.of("MaxPool3dWithArgmaxBackward", shape=(1, 16, 4, 5, 6), kernel_size=(2,), stride=(1,), values="nan"),
]
NOTHING_GREATER = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 1, 3, 3), kernel_size=(3,), padding=(1,), values="negative_infinity"
)


def test_a_gradient_that_onednn_loses_to_the_padding_is_found_and_waived() -> None:
    backend = create("torch-mkldnn")
    row = judge(NOTHING_GREATER, backend) | {"backend": "torch-mkldnn"}
    assert "are lost" in row["reason"] or "were lost" in row["reason"]
    assert WAIVERS.apply(row, backend.environment())["verdict"] == Verdict.WAIVED
    assert WAIVERS.apply(row | {"values": "ties"}, backend.environment())["verdict"] == Verdict.VIOLATES


@pytest.mark.parametrize(
    ("route", "check", "case"),
    [
        *(("torch-autograd", "variants", case) for case in FOREIGN),
        *(("torch-mkldnn", "interval", case) for case in ONEDNN),
    ],
    ids=str,
)
def test_gradients_go_by_the_indices_of_the_call_or_by_onednns_own_rule(route: str, check: str, case: Case) -> None:
    backend = create(route)
    if lacking := backend.unsupported(case.api, case.dtype, case.index_dtype):
        assert "AVX512" in lacking
        pytest.skip(lacking)
    row = judge(case, backend)
    assert (row["verdict"], check in row["checks_judged"]) == (Verdict.CONFORMS, True), row["reason"]


def test_a_gradient_by_indices_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_routes, "_unless_indices", lambda indices, saved: saved)
    assert "interval" in judge(FOREIGN[0], create("torch-autograd"))["checks_violated"]


@pytest.mark.parametrize("variant", [CHANNELS_LAST, VALUES_ALONE])
@pytest.mark.parametrize("output", ["out", "indices"])
def test_every_way_to_ask_is_judged(variant: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them puts zeros into an output."""
    run = TorchAutograd.run

    def wrong(self: TorchAutograd, call: Call, mode: str = "") -> Outcome:
        outcome = run(self, call, mode)
        if mode == variant:
            call.tensors[output].array[...] = 0
        return outcome

    monkeypatch.setattr(TorchAutograd, "run", wrong)
    case = Case.of("MaxPool2dWithIndices", shape=(1, 3, 4, 4), kernel_size=(2,), values="nan")
    row = judge(case, TorchAutograd("cpu"), "special_values")
    assert list(row["checks_violated"]) == ["variants"]
    assert f"made with {variant}" in row["reason"]
    assert f"{output}[" in row["reason"]


# What docs/findings says: each program still shows it, and the suite tells it for what it is.

WAIVERS = Waivers(shipped(), date(2026, 12, 1))


@pytest.mark.parametrize("tensor", ["indices", "grad_input"])
def test_a_single_case_of_what_the_adaptive_backward_ignores_is_waived_as_a_whole(tensor: str) -> None:
    """With the indices of its own forward, too, which lie in memory as those of the case."""
    backend = create("torch-cpu")
    shape = {"operator": "AdaptiveMaxPool3dBackward", "shape": [2, 2, 2, 3, 4], "output_size": [2, 2, 2]}
    case = Case.from_record(shape | {"layouts": {tensor: "transposed"}})
    row = CaseQuestion(case, EVERYTHING).judge(backend) | {"backend": "torch-cpu"}
    assert "round_trip" in row["checks_violated"]
    assert WAIVERS.apply(row, backend.environment())["verdict"] == Verdict.WAIVED


def violated(**case: object) -> set[str]:
    trial = Trial(Case.from_json(json.dumps(case)), create("torch-cpu"))
    ids = tuple(name for name in CHECKS if name not in ("modes", "state", "memory_kept"))
    return {finding.check for finding in run_checks(trial, ids)[1]}


WINDOWED = {"operator": "MaxPool3dWithArgmax", "shape": [1, 2, 2, 3, 3], "kernel_size": [1]}


def test_a_pool_gives_its_outputs_other_strides_or_ignores_those_of_what_it_writes() -> None:
    for layouts, expected in (
        ({"self": "channels_last"}, {"results"}),
        ({"out": "sliced"}, {"results", "memory_untouched"}),
        ({"indices": "sliced"}, {"results", "memory_untouched"}),
        ({"self": "sliced"}, set()),
    ):
        assert violated(**WINDOWED, layouts=layouts) == expected, layouts
    adaptive = {"operator": "AdaptiveMaxPool3d", "shape": [1, 2, 2, 3, 3], "output_size": [2, 3, 3]}
    found = violated(**adaptive, layouts={"out": "sliced"})
    assert {"maximum", "layout_invariance"} <= found and "results" not in found


PROGRAMS = programs("torch_cpu") + programs("torch_mkldnn")


def run_forked(program: Program) -> EndedProcess:
    """In a process that has torch already: to load it takes longer than any of the programs."""
    return forked.run(Command("python", [program.text], ROOT, surroundings()))


@pytest.mark.parametrize(("program", "run"), [(PROGRAMS[0], run_afresh), *((each, run_forked) for each in PROGRAMS)])
def test_the_program_still_shows_it(program: Program, run: Callable[[Program], EndedProcess]) -> None:
    ended = run(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
