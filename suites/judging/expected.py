"""Expectations of a call before it is made: whether it must be run, may be refused, or cannot be made at all.

The published contract of the backend's product decides, or the published refusals of its interface; the backend, which
stands accused, says only which product or interface it is, and which operators and dtypes it has at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolproof.backends.abilities import Abilities
from poolproof.backends.aclnn.calls import DTYPE_NAMES, contract_call
from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.examples import base_template
from poolproof.references.contract.expectation import expectations, find_clause
from poolproof.references.layouts import MemoryLayout
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.references.refusals import ANY_INTERFACE, REFUSALS, RefusalCondition
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case

_OF_THE_API = {161, 561}
"""Thousands of the statuses by which aclnn's first phase refuses a call: invalid arguments, and nothing to run it."""


@dataclass(frozen=True)
class DocumentedRefusal:
    """A documented rule by which a call may be turned down.

    ``required``: it must be, and accepting the call is a deviation. Otherwise it may be, because a page and its code
    disagree or the documentation leaves it open, and a call that is accepted must come out right.
    """

    reason: str
    required: bool = True

    def allows(self, outcome: Outcome) -> bool:
        """Tell whether an outcome is a refusal: by the API, that is, for a call that breaks on the device was taken."""
        return outcome.status is Status.REFUSED and (outcome.code is None or outcome.code // 1000 in _OF_THE_API)


def unsupported(backend: Backend, operator: Operator, dtype: str, index_dtype: str) -> str | None:
    """Say why no call of that operator and dtypes can be made on the backend; None if one can."""
    reason = backend.unsupported(operator, dtype, index_dtype)
    if reason is not None or backend.product is None:
        return reason
    dtypes = {"dtype": DTYPE_NAMES[dtype], "index_dtype": DTYPE_NAMES[index_dtype]}
    expected = expectations(backend.product, base_template(f"aclnn{operator.name}").changed(dtypes).call())
    answer = expected.code if expected.page is None else expected.page
    return f"{backend.product}: {find_clause(answer.clause).statement}" if answer.status and answer.clause else None


def missing(backend: Backend, case: Case) -> str | None:
    """Say why the case is none of the calls that the backend, or its contract, has; None if it is one."""
    reason = unsupported(backend, case.api, case.dtype, case.index_dtype)
    return reason or backend.abilities(case.api).lacking(case.api, case.shape, case.attributes)


def is_reached_by(able: Abilities, case: Case) -> bool:
    """Tell whether the layouts of a case reach an implementation uncopied."""
    return all(able.reaches(MemoryLayout.parse(layout).name) for _, layout in case.layouts)


def has_call(backend: Backend, case: Case) -> bool:
    """Tell whether a case that is made of another one may be asked: a call that the backend has, and as it takes it."""
    return missing(backend, case) is None and is_reached_by(backend.abilities(case.api), case)


def excuse(backend: Backend, outcome: Outcome) -> Verdict | None:
    """Return the verdict of a call that did not complete where nobody is accused of that; None where somebody is.

    Nobody is of what the environment lacks, nor of a refusal where no document is known that says what may be refused.
    """
    is_documented = backend.product is not None or backend.interface in REFUSALS.keys() - {ANY_INTERFACE}
    if outcome.status is Status.REFUSED and not is_documented and backend.is_usable():
        return Verdict.UNDOCUMENTED
    return Verdict.NOT_RUN if outcome.status is Status.UNAVAILABLE else None


def refusal(backend: Backend, case: Case, call: Call) -> DocumentedRefusal | None:
    """Find the documented rule by which ``call``, made of ``case``, is or may be refused; None if it must be run."""
    if backend.product is not None:
        return _by_contract(backend.product, contract_call(call))
    for condition, reason in REFUSALS.get(backend.interface, REFUSALS[ANY_INTERFACE]).items():
        if _meets(case, condition):
            return DocumentedRefusal(reason.format(operator=case.api.aten), required=False)
    return None


def _by_contract(product: Product, call: ContractCall) -> DocumentedRefusal | None:
    expected = expectations(product, call)
    refusing = [answer for answer in expected.acceptable if answer.status]
    if not refusing:
        return None
    clause = find_clause(refusing[0].clause or "")
    reason = f"{refusing[0].status:d} in phase {refusing[0].phase} by {clause.id}: {clause.statement}"
    return DocumentedRefusal(reason, required=len(refusing) == len(expected.acceptable))


def _meets(case: Case, condition: RefusalCondition) -> bool:
    match condition:
        case RefusalCondition.DETERMINISTIC_BACKWARD:
            return case.deterministic and case.api.is_backward
        case RefusalCondition.EMPTY_WINDOW:
            return not case.api.is_backward and case.has_empty_window
