"""The contract as questions: low-level calls that break a clause, or none.

A library is right if it answers as its code, or as its published page, is known to; the row says which. A refusal must
write nothing, and leave the two results of phase one unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from poolproof.backends.base import Attempt, Backend
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.changes import models, nearest, sentence
from poolproof.references.contract.expectation import Expectation, Follows, expectations, may_run
from poolproof.references.formats import FORMATS
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.calls import clause_call
from poolproof.suites.judging.findings import Finding, Mismatch, mismatch
from poolproof.suites.judging.question import Aspect, Question, judged, not_judged, verdict

_NOT_INSTALLED = {561003, 561107, 561108, 561112}
"""Statuses of a missing kernel or kernel package, which say nothing about the contract."""


@dataclass(frozen=True)
class ContractQuestion(Question):
    """One low-level call and its clause: several, in order, for a pair; none for a legal call."""

    call: ContractCall
    product: Product
    clause: str
    title: str
    aspect: Aspect
    block: str = ""

    def to_line(self) -> str:
        return self._line

    @cached_property
    def _line(self) -> str:
        return self.call.to_json()

    def describe(self) -> Row:
        """Describe the call without dtypes: a clause is about an operator, and often the dtypes are wrong."""
        data = self.call.tensors.get("self")
        described = self._described(self.call.api.removeprefix("aclnn"), shape=() if data is None else data.shape)
        return described | {"clause": self.clause, "statement": self.title}

    def expected_checks(self) -> tuple[str, ...]:
        return self.aspect.checks

    def judge(self, backend: Backend) -> Row:
        if backend.product != self.product or backend.interface:
            has = backend.interface or backend.product or "none"
            reason = f"a call of the contract of {self.product}, and the backend has {has}"
            return self.describe() | verdict(Verdict.NOT_SUPPORTED, reason)
        operator = OPERATORS[self.call.api.removeprefix("aclnn")]
        reasons = [backend.unsupported(operator, *pair) for pair in product(FORMATS, operator.indices.dtypes)]
        if all(reasons):
            return self.describe() | not_judged(Verdict.NOT_RUN, str(reasons[0]))
        expected = expectations(self.product, self.call)
        made = backend.attempt(self.call, runs=may_run(self.call, expected))
        return self.describe() | {"status_code": made.phase_two or made.phase_one} | self._judged(expected, made)

    def _judged(self, expected: Expectation, made: Attempt) -> Row:
        if {made.phase_one, made.phase_two} & _NOT_INSTALLED:
            status = made.phase_two or made.phase_one
            return not_judged(Verdict.NOT_RUN, f"the kernel is not installed: status {status}")
        findings = [Finding(check, found) for check, find in _CHECKS.items() if (found := find(expected, made))]
        if findings:
            legal, changes = nearest(self.call, models(self.product, self.call.api))
            clause = f"{self.clause}: {self.title}" if self.clause else "No clause forbids the call."
            differs = f"{sentence(changes)}, all else" if changes else "all"
            first = findings[0].mismatch
            message = f"{first.message}; {clause} Here {differs} is as in the legal call {legal!r}"
            findings[0] = Finding(findings[0].check, replace(first, message=message))
        follows = str(expected.followed(made.phase_one, made.phase_two))
        return {"checks_judged": list(self.aspect.checks), "follows": follows} | judged(findings)


def contract_question(call: ContractCall, product: Product, aspect: Aspect, block: str = "") -> ContractQuestion:
    """Create a question about any call, e.g. one from the command line."""
    clause, title, _ = clause_call(product, call, "as it is")
    return ContractQuestion(call, product, clause, title, aspect, block)


def status(expected: Expectation, made: Attempt) -> Mismatch | None:
    """Compare the answer with those of the library's code and of its published page."""
    if expected.followed(made.phase_one, made.phase_two) is not Follows.NEITHER:
        return None
    right = (f"{each.status:d} in phase {each.phase}" if each.phase else "success" for each in expected.acceptable)
    got = f"{made.phase_one} in phase 1" + ("" if made.phase_two is None else f", {made.phase_two} in phase 2")
    return mismatch("the answer", got, " or ".join(right), guess=f"its text is: {made.text}" if made.text else "")


def untouched(_expected: Expectation, made: Attempt) -> Mismatch | None:
    """Check that a refusal in phase 1 left its two results and every tensor unchanged."""
    if made.phase_one == 0:
        return None
    left = {"the workspace size or the executor": made.outputs_untouched, "an output tensor": made.memory_untouched}
    written = " and ".join(name for name, is_untouched in left.items() if not is_untouched)
    return Mismatch(f"phase 1 refused, and wrote {written} all the same") if written else None


def error_text(_expected: Expectation, made: Attempt) -> Mismatch | None:
    if made.phase_one == 0 or made.text:
        return None
    return Mismatch(f"phase 1 refused with {made.phase_one}, and no error text says why")


_CHECKS: dict[str, Callable[[Expectation, Attempt], Mismatch | None]]
_CHECKS = {find.__name__: find for find in (status, untouched, error_text)}
CHECKS = tuple(_CHECKS)
