"""Calls by a plain program: of a library that computes otherwise there, and of right ones."""

from dataclasses import replace
from typing import Any

import pytest

from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.verify.blind import PlainCall, call_blind

BACKWARD = Case.of(
    "MaxPool2dWithIndicesBackward", index_dtype="int32", shape=(2, 3, 7, 8), kernel_size=(3,), stride=(2,)
)
FORWARD = Case.of("AdaptiveMaxPool2d", shape=(2, 3, 7, 8), output_size=(3, 2), values="nan")


def row(case: Case, backend: str, model: str, *given: str, product: str = "") -> dict[str, Any]:
    """The row of a case that conformed."""
    told = {"case": case.to_json(), "case_id": case.id, "operator": case.operator, "model": model, "given": given}
    told["checks_judged"] = ["results", "memory_untouched"]
    return told | {"backend": backend, "product": product, "verdict": Verdict.CONFORMS}


DEFECT = "POOLPROOF_EMULATOR_DEFECTS=extents_exchanged"


def test_a_library_that_computes_otherwise_in_a_plain_program_is_found() -> None:
    """The defect stands for one that the library has only where nobody judges."""
    right, wrong = (row(BACKWARD, "emulator-a2", "acc32", *given, product="A2") for given in ((), (DEFECT,)))
    unknown = row(BACKWARD, "their.module:Backend", "acc32")
    unclaimed = wrong | {"checks_judged": ["interval"]}
    calls = call_blind([unclaimed, right, unknown, wrong, right], 2, 60.0)
    assert [call.row for call in calls] == [right, wrong], "the first two that a plain program can make"
    assert calls[0] == PlainCall(right)
    assert " elements are not admissible" in calls[1].wrong


def test_a_call_that_comes_to_nothing_is_not_taken_for_a_right_one() -> None:
    (call,) = call_blind([row(BACKWARD, "aclnn", "acc32", "--aclnn-library", "/nowhere.so", product="A2")], 1, 60.0)
    assert (call.wrong, "exit status 1: /nowhere.so: cannot open shared object file" in call.failed) == ("", True)


def test_a_right_library_computes_in_a_plain_program_as_it_does_here() -> None:
    pytest.importorskip("torch")
    rows = [row(replace(BACKWARD, index_dtype="int64"), "torch-cpu", "acc32"), row(FORWARD, "torch-cpu", "first")]
    assert call_blind(rows, 9, 60.0) == [PlainCall(each) for each in rows]
