"""A cluster of failing cases with perhaps one root cause: its condition, its members, and counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod

from poolproof.reports.clusters.conditions import SHARP
from poolproof.reports.clusters.terms import Term
from poolproof.reports.rows.checks import DIAGNOSIS, NARROWING, SURVIVAL
from poolproof.reports.rows.failures import GUESSED_RULE, MAX_GUESSED, is_shrunk, message, smallest_case
from poolproof.reports.rows.features import geometry_of, read_case
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict

FailureKind = tuple[str, str]
"""Verdict and first violated check."""

SIZED = ("operator", "case", "shrunk")
"""Columns that `size_of` reads."""


@dataclass(frozen=True)
class Bound:
    """A threshold: cases that meet the rest of the condition fail at one value, and conform at the other.

    ``conforms`` is None if no conforming case meets the rest.
    """

    feature: str
    fails: int
    conforms: int | None


@dataclass(frozen=True)
class Counts:
    """Numbers of cases for and against a condition.

    Attributes:
        failing: Failing cases of the plan that meet it.
        conforming: Conforming cases of the plan that meet it, and that the same checks judged.
        further: The same two numbers of further cases, those of the diagnosis.
        contrast: For each term, the conforming independent cases that meet all terms except this one.
        others: Failing cases of the plan that do not meet it and are in no other cluster.
        elsewhere: Failing cases of the plan that do not meet it, including those of other clusters.
    """

    failing: int
    conforming: int = 0
    further: tuple[int, int] = (0, 0)
    contrast: tuple[int, ...] = ()
    others: int = 0
    elsewhere: int = 0

    @property
    def exceptions(self) -> int:
        """Number of conforming cases that meet the condition."""
        return self.conforming + self.further[1]

    @property
    def is_sharp(self) -> bool:
        """Whether nearly all cases that meet the condition fail: it is a cause, not only a correlation."""
        failing = self.failing + self.further[0]
        return failing >= SHARP * (failing + self.exceptions)


@dataclass(frozen=True, eq=False)
class FailureCluster:
    """Failing cases of a backend that may have one root cause.

    Attributes:
        condition: Terms that all hold; empty if every case, or nearly every one, fails; None if none was found.
        members: The failing rows, that of the smallest case first.
        scope: (column, value) that all compared cases share; the cluster says nothing about other cases.
        bounds: For each threshold the observed values beside it.
        unsearched: Failing cases of the backend that were not searched, because there are too many.
        probed: The probe's deviating findings on its operator and dtype.
        passing: (aspect, number) of passing cases that its checks do not judge; empty if there are other clusters.
        clauses: (name, failing cases, compared cases) of each clause or scenario of its cases.
        clauses_asked: Number of the clauses of all compared cases.
    """

    condition: tuple[Term, ...] | None
    members: tuple[Row, ...]
    counts: Counts
    scope: tuple[tuple[str, str], ...] = ()
    bounds: tuple[Bound, ...] = ()
    unsearched: int = 0
    probed: tuple[str, ...] = ()
    passing: tuple[tuple[str, int], ...] = ()
    clauses: tuple[tuple[str, int, int], ...] = ()
    clauses_asked: int = 0

    @property
    def has_condition(self) -> bool:
        return self.condition is not None

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.condition or ()

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(term.feature for term in self.terms)

    @property
    def is_exact(self) -> bool:
        return self.has_condition and not self.counts.exceptions and not self.counts.others

    @property
    def smallest(self) -> Row:
        return self.members[0]

    @property
    def backend(self) -> str:
        return str(self.smallest["backend"])

    @property
    def place(self) -> tuple[str, str]:
        """Operator and dtype of its smallest case."""
        return str(self.smallest["operator"]), str(self.smallest["dtype"])

    @cached_property
    def cases(self) -> frozenset[str]:
        return frozenset(row["case_id"] for row in self.members)

    @cached_property
    def kinds(self) -> tuple[tuple[FailureKind, int], ...]:
        """Number of its cases of the plan by kind, most frequent first; of further cases if there are no others."""
        planned = [row for row in self.members if is_planned(row)]
        return tuple(Counter(map(kind_of, planned or self.members)).most_common())

    @property
    def is_refusal(self) -> bool:
        return bool(self.smallest["verdict"] == Verdict.UNDOCUMENTED)

    @property
    def message(self) -> str:
        """Fault of its smallest case, without a guess that the probe or another of its cases excludes."""
        text = message(self.smallest)
        guess = GUESSED_RULE.search(text)
        return text if guess is None or self._allows(guess[0]) else text.replace(guess[0], "")

    def _allows(self, guess: str) -> bool:
        own, model = self.kinds[0][0], guess.rpartition(" ")[2]
        if self.probed and not any(f": {model} admits " in line for line in self.probed):
            return False
        alike = [row for row in self.members if kind_of(row) == own and (row["operator"], row["dtype"]) == self.place]
        return all(guess in (row.get("reason") or "") for row in alike if is_guessed_about(row))

    @property
    def checks(self) -> str:
        return ", ".join(dict.fromkeys(check for (_, check), _ in self.kinds))

    @property
    def name(self) -> str:
        """A name that is equal for equal conditions."""
        if self.has_condition and not self.terms:
            return f"{self.backend} and {self.checks}"
        return " and ".join([self.backend, *map(str, self.terms or sorted(self.cases)[:1])])

    @property
    def is_about_sums(self) -> bool:
        """Whether deviating sums are its most frequent failure: the probe may show how they are added."""
        return self.kinds[0][0] == (Verdict.VIOLATES, "interval")


def is_planned(row: Row) -> bool:
    """Tell whether a row is of the run's own cases, not a further one."""
    return row["aspect"] not in NARROWING


def is_independent(row: Row) -> bool:
    """Tell whether a row's case was not made from a failing one."""
    return bool(row["aspect"] != DIAGNOSIS)


def kind_of(row: Row) -> FailureKind:
    return row["verdict"], next(iter(row["checks_violated"] or ()), SURVIVAL)


def is_guessed_about(row: Row) -> bool:
    """Tell whether a failing case is small enough for a guess of the rule that would make it right."""
    call = geometry_of(str(row["operator"]), read_case(row["case"]))
    return call is not None and call.planes * prod(call.size) <= MAX_GUESSED


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Return the sort key of a row's case: not shrunk, elements, windows, length of its line."""
    line = smallest_case(row)
    call = geometry_of(str(row["operator"]), read_case(line))
    elements, windows = (call.planes * prod(call.size), call.planes * prod(call.count)) if call else (inf, inf)
    return not is_shrunk(row), elements, windows, len(line)
