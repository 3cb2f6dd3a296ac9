"""Expectations of a call before it is made: it must run, may be refused, or cannot be made.

The published contract of the backend's product decides, or the published refusals of its interface. The backend itself
says only its product or interface, and its operators and dtypes.
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
from poolproof.references.refusals import ANY_INTERFACE, DECLARED, REFUSALS, RefusalCondition
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case

_OF_THE_API = {161, 561}
"""Thousands of the statuses by which aclnn's first phase refuses a call: invalid arguments, or nothing to run it."""


@dataclass(frozen=True)
class DocumentedRefusal:
    """A documented rule by which a call may be refused.

    If ``required``, accepting the call is a deviation. Otherwise the page and the code disagree, or the documentation
    is open, and an accepted call must be right. ``of_the_api``: statuses are aclnn's.
    """

    reason: str
    required: bool = True
    of_the_api: bool = True

    def allows(self, outcome: Outcome) -> bool:
        """Tell whether the API refused the call; a call that breaks on the device was accepted."""
        is_refusal = not self.of_the_api or outcome.code is None or outcome.code // 1000 in _OF_THE_API
        return outcome.status is Status.REFUSED and is_refusal


def unsupported(backend: Backend, operator: Operator, dtype: str, index_dtype: str) -> str | None:
    """Return why no call of that operator and dtypes can be made on the backend; None if one can."""
    reason = backend.unsupported(operator, dtype, index_dtype)
    if reason is not None or backend.product is None:
        return reason
    dtypes = {"dtype": DTYPE_NAMES[dtype], "index_dtype": DTYPE_NAMES[index_dtype]}
    expected = expectations(backend.product, base_template(f"aclnn{operator.name}").changed(dtypes).call())
    answer = expected.code if expected.page is None else expected.page
    return f"{backend.product}: {find_clause(answer.clause).statement}" if answer.status and answer.clause else None


def missing(backend: Backend, case: Case) -> str | None:
    """Return why the backend, or its contract, does not have the case's call; None if it has."""
    reason = unsupported(backend, case.api, case.dtype, case.index_dtype)
    return reason or backend.abilities(case.api).lacking(case.api, case.shape, case.attributes)


def is_reached_by(able: Abilities, case: Case) -> bool:
    """Tell whether the layouts of a case reach an implementation uncopied."""
    return all(able.reaches(MemoryLayout.parse(layout).name) for _, layout in case.layouts)


def has_call(backend: Backend, case: Case) -> bool:
    """Tell whether the backend has the call of a derived case, and takes its layouts uncopied."""
    return missing(backend, case) is None and is_reached_by(backend.abilities(case.api), case)


def excuse(backend: Backend, outcome: Outcome) -> Verdict | None:
    """Return the verdict of an incomplete call that is nobody's fault; None if the implementation is to blame.

    Nobody is to blame for what the environment lacks, or for a refusal without a known document on refusals.
    """
    if outcome.status is Status.REFUSED and not _is_documented(backend) and backend.is_usable():
        return Verdict.UNDOCUMENTED
    return Verdict.NOT_RUN if outcome.status is Status.UNAVAILABLE else None


def refusal(backend: Backend, case: Case, call: Call) -> DocumentedRefusal | None:
    """Return the documented rule by which ``call``, made from ``case``, is or may be refused; None if it must run."""
    if backend.product is not None:
        return _by_contract(backend.product, contract_call(call))
    for condition, reason in REFUSALS.get(backend.interface, REFUSALS[ANY_INTERFACE]).items():
        if _meets(case, condition):
            return DocumentedRefusal(reason.format(operator=case.api.aten), required=False)
    document = "" if _is_documented(backend) else backend.may_refuse(call)
    return DocumentedRefusal(DECLARED + document, required=False, of_the_api=False) if document else None


def _is_documented(backend: Backend) -> bool:
    """Tell whether a contract, or documents that poolproof knows, say which calls may be refused."""
    return backend.product is not None or backend.interface in REFUSALS.keys() - {ANY_INTERFACE}


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
