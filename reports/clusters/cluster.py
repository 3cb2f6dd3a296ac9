"""A cluster of failing cases that one root cause may explain: its condition, its members, and what was counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod

from poolproof.reports.clusters.conditions import SHARP
from poolproof.reports.clusters.terms import Term
from poolproof.reports.rows.checks import DIAGNOSIS, SURVIVAL
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
    """A threshold between two values: cases that meet the rest of the condition fail at one and conform at the other.

    ``conforms`` is None where no conforming case meets the rest.
    """

    feature: str
    fails: int
    conforms: int | None


@dataclass(frozen=True)
class Counts:
    """Cases that speak for a condition, and against it.

    failing, conforming
        Cases of the plan that meet the condition. The conforming ones were held to the same checks.
    further
        The same two numbers of further cases, which diagnosis made from failing ones.
    contrast
        For each term the cases of the plan that meet all other terms and not this one, and conform.
    others
        Failing cases of the plan that do not meet the condition and are in no other cluster.
    elsewhere
        Failing cases of the plan that do not meet the condition, those of other clusters included.
    """

    failing: int
    conforming: int = 0
    further: tuple[int, int] = (0, 0)
    contrast: tuple[int, ...] = ()
    others: int = 0
    elsewhere: int = 0

    @property
    def exceptions(self) -> int:
        """Count the cases that meet the condition and conform."""
        return self.conforming + self.further[1]

    @property
    def is_sharp(self) -> bool:
        """Return whether hardly a case conforms that meets the condition: it causes failure, not only goes with it."""
        failing = self.failing + self.further[0]
        return failing >= SHARP * (failing + self.exceptions)


@dataclass(frozen=True, eq=False)
class FailureCluster:
    """Failing cases of a backend that one root cause may explain.

    condition
        Terms that all hold; empty where every case fails, or nearly every one; None where no condition was found.
    members
        The failing rows, that of the smallest case first.
    scope
        (column, value) of what all compared cases have in common: the cluster says nothing about other cases.
    bounds
        For each threshold the observed values beside it.
    unsearched
        Failing cases of the backend that nobody looked at, because there are too many.
    probed
        What the probe says of its operator and dtype that deviates.
    passing
        Cases that pass and that its checks do not judge, counted by aspect; none if one of another cluster fails.
    clauses, clauses_asked
        For each clause or scenario of its cases (name, failing cases, cases compared); the number of all compared ones.
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
        """Return operator and dtype of its smallest case."""
        return str(self.smallest["operator"]), str(self.smallest["dtype"])

    @cached_property
    def cases(self) -> frozenset[str]:
        return frozenset(row["case_id"] for row in self.members)

    @cached_property
    def kinds(self) -> tuple[tuple[FailureKind, int], ...]:
        """Count its cases of the plan by kind, the most frequent first; further cases where there are no others."""
        planned = [row for row in self.members if is_planned(row)]
        return tuple(Counter(map(kind_of, planned or self.members)).most_common())

    @property
    def is_refusal(self) -> bool:
        return bool(self.smallest["verdict"] == Verdict.UNDOCUMENTED)

    @property
    def message(self) -> str:
        """Say what is wrong with its smallest case, without a guess that the probe or another of its cases excludes."""
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
        """Return a name that is equal for equal conditions."""
        if self.has_condition and not self.terms:
            return f"{self.backend} and {self.checks}"
        return " and ".join([self.backend, *map(str, self.terms or sorted(self.cases)[:1])])

    @property
    def is_about_sums(self) -> bool:
        """Return whether its sums deviate, more often than anything else: the probe may tell how they are added."""
        return self.kinds[0][0] == (Verdict.VIOLATES, "interval")


def is_planned(row: Row) -> bool:
    """Return whether a row is of the plan: diagnosis makes the others, from cases that fail."""
    return bool(row["aspect"] != DIAGNOSIS)


def kind_of(row: Row) -> FailureKind:
    return row["verdict"], next(iter(row["checks_violated"] or ()), SURVIVAL)


def is_guessed_about(row: Row) -> bool:
    """Return whether a rule was sought that makes a failing case right: of large ones none is."""
    call = geometry_of(str(row["operator"]), read_case(row["case"]))
    return call is not None and call.planes * prod(call.size) <= MAX_GUESSED


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Return the sort key of a row's case: whether it was not shrunk, its elements, windows, and length of line."""
    line = smallest_case(row)
    call = geometry_of(str(row["operator"]), read_case(line))
    elements, windows = (call.planes * prod(call.size), call.planes * prod(call.count)) if call else (inf, inf)
    return not is_shrunk(row), elements, windows, len(line)
