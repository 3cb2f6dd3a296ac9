"""Who decides what may be refused: the contract of a product or the documents of an interface, never the backend."""

from pathlib import Path
from typing import Any

import pytest

from holding import holding, judged_by
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.contract.examples import legal_calls
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS, Product
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.contract import contract_question
from poolproof.suites.judging.expected import unsupported
from poolproof.suites.plan.aspects import CONTRACT
from scatter import Scatter
from scatter_backends import lost

BACKWARD = "MaxPool2dWithIndicesBackward"
LEGAL = Case.of(BACKWARD, index_dtype="int32", shape=(1, 1, 4, 4), kernel_size=(2, 2))
DILATED = Case.of(BACKWARD, index_dtype="int32", shape=(1, 1, 4, 4), kernel_size=(2, 2), dilation=(2,))
NO_WINDOW = Case.of(
    "MaxPool2dWithIndices", shape=(1, 1, 1, 1), kernel_size=(1, 2), stride=(1,), padding=(0, 1), dilation=(1, 2)
)
DETERMINISTIC = Case.of(BACKWARD, shape=(1, 1, 4, 4), kernel_size=(2, 2), deterministic=True)


ASPECT = holding("interval")


class Stubborn(Backend):
    """Refuses every call, or takes every call and computes nothing; claims that each refusal is documented."""

    def __init__(
        self, status: Status, product: Product | None = None, interface: str = "", document: str = "I may"
    ) -> None:
        self.status, self.product, self.interface, self.document = status, product, interface, document

    def unsupported(self, operator: Any, dtype: str, index_dtype: str) -> str | None:
        return None

    def may_refuse(self, call: Call) -> str:
        return self.document

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome(self.status, message="no")


UNLISTED = Case.of(BACKWARD, index_dtype="int32", shape=(1, 1, 4, 4), kernel_size=(2, 2), deterministic=True)
LISTED = "torch lists max_pool2d_with_indices_backward on {} as not deterministic"
BY_CLAUSE = "161002 in phase 1 by 2d-bwd.dilation.one: Every value of dilation is 1."
NO_DOCUMENT = "refused without a known document that allows it: no"


@pytest.mark.parametrize(
    ("case", "product", "interface", "status", "verdict", "reason"),
    [
        (LEGAL, "A2", "", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (LEGAL, "950", "", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (DILATED, "A2", "", Status.REFUSED, Verdict.REFUSED, BY_CLAUSE),
        (DILATED, "A2", "", Status.COMPLETED, Verdict.VIOLATES, f"the call was accepted, although {BY_CLAUSE}"),
        (DILATED, "950", "", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (LEGAL, "", "torch-cpu", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (LEGAL, "", "torch-cuda", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (DETERMINISTIC, "", "torch-cuda", Status.REFUSED, Verdict.REFUSED, LISTED.format("cuda")),
        (UNLISTED, "A2", "torch-npu", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (DILATED, "A2", "torch-npu", Status.REFUSED, Verdict.REFUSED, BY_CLAUSE),
        (DETERMINISTIC, "", "torch-cpu", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (NO_WINDOW, "", "torch-cpu", Status.REFUSED, Verdict.VIOLATES, "a legal call was refused: no"),
        (NO_WINDOW, "", "", Status.REFUSED, Verdict.REFUSED, "windows without a cell are refused"),
        (DETERMINISTIC, "", "", Status.REFUSED, Verdict.UNDOCUMENTED, NO_DOCUMENT),
        (LEGAL, "", "", Status.REFUSED, Verdict.UNDOCUMENTED, NO_DOCUMENT),
        (LEGAL, "", "tensorflow", Status.REFUSED, Verdict.UNDOCUMENTED, NO_DOCUMENT),
    ],
)
def test_contracts_and_documents_say_what_may_be_refused(
    case: Case, product: str, interface: str, status: Status, verdict: Verdict, reason: str
) -> None:
    """No backend can excuse itself; what no document is known about is neither held against it nor a pass."""
    document = "" if verdict is Verdict.UNDOCUMENTED else "I may"
    backend = Stubborn(status, PRODUCTS.get(product), interface, document)
    row = CaseQuestion(case, holding("interval")).judge(backend)
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    assert row["checks_violated"] == (["refusal"] if verdict is Verdict.VIOLATES else [])
    assert row["checks_judged"] == ([] if verdict is Verdict.UNDOCUMENTED else ["refusal"])


@pytest.mark.parametrize(("code", "verdict"), [(161002, "refused as documented"), (507015, "violates")])
def test_what_breaks_on_the_device_was_not_refused(code: int, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stubborn, "run", lambda *_: Outcome(Status.REFUSED, code, "no"))
    row = CaseQuestion(DILATED, holding("interval")).judge(Stubborn(Status.REFUSED, PRODUCTS["A2"]))
    assert row["verdict"] == verdict
    assert row["reason"] == (BY_CLAUSE if code == 161002 else "a call that may be refused was taken, and failed: no")


@pytest.mark.parametrize("code", [None, 7, 507015])
def test_an_adapter_names_the_document_of_an_interface_that_is_not_known(code: int | None) -> None:
    backend = Stubborn(Status.REFUSED, document="limits.md: no mode")
    backend.run = lambda *_: Outcome(Status.REFUSED, code, "no")  # type: ignore[method-assign]
    row = CaseQuestion(LEGAL, holding("interval")).judge(backend)
    assert (row["verdict"], row["reason"]) == (Verdict.REFUSED, "as its adapter declares: limits.md: no mode")


def test_a_call_that_may_be_refused_and_runs_is_judged(forked_sandboxes: None, tmp_path: Path) -> None:
    named = ("takes_the_mode", "takes_the_mode_and_loses", "refuses_the_mode")
    rows = [judged_by(f"plugged_backends:{name}", [CaseQuestion(DETERMINISTIC, ASPECT)], tmp_path)[0] for name in named]
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS, Verdict.VIOLATES, Verdict.REFUSED]
    assert rows[2]["reason"] == "as its adapter declares: limits.md: no deterministic mode"


class RefusesInt64(Scatter):
    """Has indices of 32 bits alone, and says so where it is called."""

    def objection(self, call: Call) -> str:
        return "int32 alone" if call.index_dtype == "int64" else super().objection(call)


class RefusesMode(Scatter):
    """Has a mode, and refuses it."""

    modes = ("other",)

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome(Status.REFUSED, message="no mode") if mode else super().run(call)


class Tires(Scatter):
    """Refuses the second call of those that it gets, which is the first again."""

    calls = 0

    def objection(self, call: Call) -> str:
        self.calls += 1
        return "enough" if self.calls == 2 else ""


CHECKS = (*USUAL, "modes", "state")


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [(RefusesInt64, Verdict.CONFORMS), (RefusesMode, Verdict.UNDOCUMENTED), (Tires, Verdict.VIOLATES)],
)
def test_a_refusal_of_another_call_accuses_by_documents_alone(backend: type[Scatter], verdict: Verdict) -> None:
    """What was taken before is none that the implementation does not have."""
    question = CaseQuestion(LEGAL, holding(*CHECKS))
    assert question.judge(backend())["verdict"] == verdict
    assert question.judge(type("Documented", (backend,), {"interface": "torch-cpu"})())["verdict"] == Verdict.VIOLATES
    assert question.judge(type("Wrong", (backend,), {"route_terms": lost.route_terms})())["verdict"] == Verdict.VIOLATES


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
