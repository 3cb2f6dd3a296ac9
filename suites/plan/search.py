"""The searches of Hypothesis beyond a plan: one per subject and aspect, and short ones for large errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poolproof.reports.rows.checks import SEARCH
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.gradients import TERMS, literal_gradients
from poolproof.suites.cases.strategies import cases
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseAspect, CaseBlock, has_call
from poolproof.suites.plan.lines import further_question
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plan.selection import Selection

if TYPE_CHECKING:
    from hypothesis import strategies as st

EXAMPLES = {"smoke": 5, "acceptance": 100, "soak": 1000}
"""Cases of each search by plan, except those of precision."""

PRECISION_EXAMPLES = 200
"""Cases of each search of precision. A thousand find hardly more: many short searches beat a long one."""

SMOKE_TERMS = (17,)
"""Terms of the smoke plan's only search of precision per dtype: here steering gains most."""

PRECISION = "precision"
"""The aspect with searches for large errors."""

_LEAST_WEIGHT = 0.25
"""Aspects of a smaller weight are not searched: their cases cost as much as ten others."""


@dataclass(frozen=True, eq=False)
class Search:
    """A search among the cases of an aspect and subject, or for the largest error of ``terms`` addends."""

    subject: Subject
    aspect: CaseAspect
    terms: int = 0

    def __repr__(self) -> str:
        return self.id

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """Let Hypothesis print the name, not all fields of a subject."""
        printer.text(self.id)

    @property
    def id(self) -> str:
        terms = f"-{self.terms}" if self.terms else ""
        return f"{self.subject.id}-{SEARCH}-{self.aspect.id}{terms}"

    @property
    def examples(self) -> int:
        """Number of cases; 0 for that of the profile."""
        return PRECISION_EXAMPLES if self.terms else 0

    @property
    def cases(self) -> st.SearchStrategy[Case]:
        """The strategy of its cases."""
        subject = self.subject
        drawn = subject.operator, subject.dtype, subject.index_dtype
        if self.terms:
            return literal_gradients(*drawn, self.terms)
        return cases(*drawn, self.aspect.profile.within(subject.abilities))

    @property
    def block(self) -> CaseBlock:
        """A block of the plan with such cases, which can shrink a failing one."""
        return CaseBlock(self.subject, self.aspect, 0)

    def question(self, case: Case) -> CaseQuestion:
        return further_question(case, self.aspect.id, SEARCH)


def searches(selection: Selection) -> list[Search]:
    """Return the searches of a selection; a shard has every N-th of them."""
    all_searches = list(_searches(selection))
    shard = selection.shard
    return all_searches if shard is None else all_searches[shard.number - 1 :: shard.of]


def _searches(selection: Selection) -> Iterator[Search]:
    aspects = [CASE_ASPECTS[name] for name in selection.aspects if name in CASE_ASPECTS]
    searched = set[tuple[str, str]]()
    for subject in selection.subjects():
        for aspect in aspects:
            if aspect.weight < _LEAST_WEIGHT or not aspect.covers(subject):
                continue
            if aspect.id != PRECISION:
                yield Search(subject, aspect)
            elif _takes_literals(subject):
                key = subject.backend, subject.dtype
                terms = TERMS if selection.plan.name != "smoke" else SMOKE_TERMS * (key not in searched)
                searched.add(key)
                yield from (Search(subject, aspect, number) for number in terms)


def _takes_literals(subject: Subject) -> bool:
    """Tell whether the backend has calls of one window per cell along an axis, and of several windows on one cell."""
    make = literal_gradients.make(subject.operator, subject.dtype, subject.index_dtype, TERMS[0])
    return has_call(subject, *generate(make, 1, 0))
