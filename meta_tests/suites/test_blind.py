"""Calls by a plain program: of a library that computes otherwise there, and of right ones."""

from dataclasses import replace
from typing import Any

import pytest

from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.verify.blind import call_blind

BACKWARD = Case.of(
    "MaxPool2dWithIndicesBackward", index_dtype="int32", shape=(2, 3, 7, 8), kernel_size=(3,), stride=(2,)
)
FORWARD = Case.of("AdaptiveMaxPool2d", shape=(2, 3, 7, 8), output_size=(3, 2), values="nan")


def row(case: Case, backend: str, model: str, *given: str, product: str = "") -> dict[str, Any]:
    """The row of a case that conformed."""
    told = {"case": case.to_json(), "case_id": case.id, "operator": case.operator, "model": model, "given": given}
    return told | {"backend": backend, "product": product, "verdict": Verdict.CONFORMS}


def test_a_library_that_computes_otherwise_in_a_plain_program_is_found() -> None:
    """The defect stands for one that the library has only where nobody judges."""
    right = row(BACKWARD, "emulator-a2", "acc32", product="A2")
    wrong = row(BACKWARD, "emulator-a2", "acc32", "POOLPROOF_EMULATOR_DEFECTS=extents_exchanged", product="A2")
    unknown = row(BACKWARD, "their.module:Backend", "acc32")
    told = [wrong for _, wrong in call_blind([right, wrong, unknown], 60.0)]
    assert told[0] == "" and told[2] is None
    assert told[1] is not None and " elements are not admissible" in told[1]


def test_a_right_library_computes_in_a_plain_program_as_it_does_here() -> None:
    pytest.importorskip("torch")
    rows = [row(replace(BACKWARD, index_dtype="int64"), "torch-cpu", "acc32")]
    rows.append(row(FORWARD, "torch-cpu", "first"))
    assert [wrong for _, wrong in call_blind(rows, 60.0)] == ["", ""]
