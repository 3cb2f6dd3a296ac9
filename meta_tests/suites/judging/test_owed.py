"""Who decides what may be refused: the contract of a product or the documents of an interface, never the backend."""

from __future__ import annotations

from typing import Any

import pytest

from holding import holding
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.contract.examples import legal_calls
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.contract import contract_question
from poolproof.suites.judging.expected import unsupported
from poolproof.suites.plan.aspects import CONTRACT

BACKWARD = "MaxPool2dWithIndicesBackward"
LEGAL = Case.of(operator=BACKWARD, index_dtype="int32", shape=(1, 1, 4, 4), kernel_size=(2, 2))
DILATED = Case.of(operator=BACKWARD, index_dtype="int32", shape=(1, 1, 4, 4), kernel_size=(2, 2), dilation=(2,))
NO_WINDOW = Case.of(
    "MaxPool2dWithIndices", shape=(1, 1, 1, 1), kernel_size=(1, 2), stride=(1,), padding=(0, 1), dilation=(1, 2)
)
DETERMINISTIC = Case.of(operator=BACKWARD, shape=(1, 1, 4, 4), kernel_size=(2, 2), deterministic=True)


class Stubborn(Backend):
    """Refuses every call, or takes every call and computes nothing; claims that each refusal is documented."""

    def __init__(self, status: Status, product: Product | None = None, interface: str = "") -> None:
        self.status, self.product, self.interface = status, product, interface

    def unsupported(self, operator: Any, dtype: str, index_dtype: str) -> str | None:
        return None

    def refusal(self, call: Call) -> str:
        return "I may"

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome(self.status, message="no")


def judged(case: Case, backend: Backend) -> Row:
    return CaseQuestion(case, holding("interval")).judge(backend)


def test_a_backend_cannot_excuse_itself() -> None:
    for product, interface in (("", "torch-cpu"), ("A2", ""), ("950", "")):
        row = judged(LEGAL, Stubborn(Status.REFUSED, PRODUCTS.get(product), interface))
        assert (row["verdict"], row["checks_violated"]) == (Verdict.VIOLATES, ["refusal"])


def test_a_refusal_that_no_document_is_known_about_is_neither_held_against_a_backend_nor_a_pass() -> None:
    for interface in ("", "tensorflow"):
        row = judged(LEGAL, Stubborn(Status.REFUSED, interface=interface))
        assert (row["verdict"], row["checks_violated"], row["checks_judged"]) == (Verdict.UNDOCUMENTED, [], [])
        assert row["reason"] == "refused, and no document is known that says so: no"


@pytest.mark.parametrize(
    ("product", "status", "verdict"),
    [
        ("A2", Status.REFUSED, Verdict.REFUSED),
        ("A2", Status.COMPLETED, Verdict.VIOLATES),
        ("950", Status.REFUSED, Verdict.VIOLATES),
    ],
)
def test_the_products_contract_says_whether_dilation_is_refused(product: str, status: Status, verdict: Verdict) -> None:
    row = judged(DILATED, Stubborn(status, PRODUCTS[product]))
    assert row["verdict"] == verdict
    if product == "A2":
        assert "161002 in phase 1 by 2d-bwd.dilation.one: Every value of dilation is 1." in row["reason"]


@pytest.mark.parametrize(
    ("case", "interface", "reason"),
    [
        (DETERMINISTIC, "torch-cuda", "torch lists max_pool2d_with_indices_backward on cuda as not deterministic"),
        (DETERMINISTIC, "torch-npu", "torch lists max_pool2d_with_indices_backward on npu as not deterministic"),
        (DETERMINISTIC, "torch-cpu", None),
        (DETERMINISTIC, "", None),
        (NO_WINDOW, "", "windows without a cell are refused"),
        (NO_WINDOW, "torch-cpu", None),
        (LEGAL, "torch-cuda", None),
    ],
)
def test_an_interfaces_documents_say_what_may_be_refused(case: Case, interface: str, reason: str | None) -> None:
    row = judged(case, Stubborn(Status.REFUSED, interface=interface))
    if reason is None:
        assert row["verdict"] == (Verdict.VIOLATES if interface else Verdict.UNDOCUMENTED)
    else:
        assert (row["verdict"], row["reason"]) == (Verdict.REFUSED, reason)


def test_what_the_contract_forbids_is_not_asked() -> None:
    operator = OPERATORS[BACKWARD]
    for_a2 = Stubborn(Status.COMPLETED, PRODUCTS["A2"])
    assert unsupported(for_a2, operator, "float32", "int32") is None
    reason = unsupported(for_a2, operator, "float16", "int32")
    assert reason is not None and reason.startswith("A2: self is FLOAT on A2 and A3; FLOAT, FLOAT16 or BF16 on 950")
    assert unsupported(Stubborn(Status.COMPLETED), operator, "float16", "int32") is None


def test_an_interface_that_a_library_lacks_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stubborn, "unsupported", lambda *_: "symbol is not exported")
    call = next(iter(legal_calls(PRODUCTS["A2"], f"aclnn{BACKWARD}").values()))
    row = contract_question(call, PRODUCTS["A2"], CONTRACT).judge(Stubborn(Status.COMPLETED, PRODUCTS["A2"]))
    assert (row["verdict"], row["reason"], row["checks_judged"]) == (Verdict.NOT_RUN, "symbol is not exported", [])
