"""The suite as a library for your own tests: cases as strategies of Hypothesis, and one function that judges.

Everything is drawn and judged in the calling process; an implementation that may crash or hang needs a run.
"""

from __future__ import annotations

from hypothesis import strategies as st

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Backend
from poolproof.backends.registry import create
from poolproof.references.operators import find_operator
from poolproof.reports.rows.failures import failure_text
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases import strategies
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS, EVERYTHING

__all__ = ["Case", "cases", "failure_text", "judge"]


def cases(
    operator: str,
    dtype: str = "float32",
    index_dtype: str = "int64",
    aspect: str = "values",
    abilities: Abilities | None = None,
) -> st.SearchStrategy[Case]:
    """Return a strategy for the cases of one of `CASE_ASPECTS`.

    ``operator`` is a name of aclnn or aten; ``abilities`` restrict the calls to those that an implementation has.
    KeyError lists the operators or aspects if there is no such one.
    """
    profile = CASE_ASPECTS[aspect].profile
    if abilities is not None:
        profile = profile.within(abilities)
    return strategies.cases(find_operator(operator), dtype, index_dtype, profile)


def judge(case: Case | str, backend: Backend | str, aspect: str = "") -> Row:
    """Judge a case, or a line of JSON, on a backend or the one of that name, and return its row.

    A row has the columns of `poolproof.reports.rows.schema`; its ``verdict`` is "conforms", "violates", ..., and
    `failure_text` says what a failed call should have returned and what it did. All checks judge it, or those of one of
    `CASE_ASPECTS`. Waivers are not applied.
    """
    judged = Case.from_json(case) if isinstance(case, str) else case
    asked = CASE_ASPECTS[aspect] if aspect else EVERYTHING
    made = create(backend) if isinstance(backend, str) else backend
    name = backend if isinstance(backend, str) else f"{type(made).__module__}:{type(made).__qualname__}"
    row = answer(CaseQuestion(judged, asked), made)
    return row | {"backend": name, "product": made.product.name if made.product else ""}
