"""A cluster of failing cases with one condition, as far as rows tell it, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolproof.reports.clusters.conditions import MIN_FAILING
from poolproof.reports.clusters.terms import Term, feature_column
from poolproof.reports.rows.failures import smallest_case
from poolproof.reports.rows.features import Value, features_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import spelled_value
from poolproof.reports.rows.verdicts import Verdict

FailureKind = tuple[str, str]
"""Verdict and first violated check."""

_SHARP = 0.9
"""Share of the cases with a condition that fail where it is the cause."""


@dataclass(frozen=True)
class Bound:
    """A threshold between two values: cases that meet the rest of the condition fail at one and conform at the other.

    ``conforms`` is None where no conforming case meets the rest.
    """

    feature: str
    fails: int
    conforms: int | None


@dataclass(frozen=True, eq=False)
class FailureCluster:
    """Failing cases of a backend that one root cause may explain.

    terms
        The condition, all of which holds; empty where every case fails, or where none was found (`has_condition`).
    failing, conforming
        Cases that meet it, which fail, and which conform though they were held to the same checks.
    failing_others, conforming_others
        Those that do not meet it, failing ones of other clusters left out.
    ties
        Conditions of as many terms that the same cases meet.
    bounds
        For each threshold the observed values beside it.
    kinds
        (verdict, first violated check) of the failing cases with their numbers, the most frequent first.
    margin
        Bits by which the condition explains more than chance would give one of its length, all those tried considered:
        chance gives as much with a probability below 2**-margin.
    smallest
        The failing row whose case (`failures.smallest_case`) is smallest, of those that were made smaller if there are.
    cases
        The ids of all its failing cases.
    """

    backend: str
    has_condition: bool
    failing: int
    kinds: tuple[tuple[FailureKind, int], ...]
    smallest: Row
    cases: frozenset[str]
    terms: tuple[Term, ...] = ()
    conforming: int = 0
    failing_others: int = 0
    conforming_others: int = 0
    ties: tuple[tuple[Term, ...], ...] = ()
    bounds: tuple[Bound, ...] = ()
    margin: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.has_condition and not self.conforming and not self.failing_others

    @property
    def is_sharp(self) -> bool:
        """Return whether hardly a case conforms that meets the condition: it causes failure, not only goes with it."""
        return self.failing >= _SHARP * (self.failing + self.conforming)

    @property
    def name(self) -> str:
        """Return a name that is equal for equal conditions."""
        return " and ".join([self.backend, *map(str, self.terms or sorted(self.cases)[:1])])

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the cases to begin with, the smallest first: the later ones are sure to meet the condition."""
        return tuple(dict.fromkeys((smallest_case(self.smallest), str(self.smallest["case"]))))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(term.feature for term in self.terms)

    @property
    def thresholds(self) -> tuple[tuple[int, Bound], ...]:
        """Return (number of a term, the bound of its threshold) of those that can be narrowed."""
        narrow = [bound for bound in self.bounds if bound.conforms is not None]
        return tuple((self.features.index(bound.feature), bound) for bound in narrow)

    def met(self, row: Row) -> tuple[bool, ...]:
        """Return which of its terms a row, judged or not, meets; what only an answer has counts as met."""
        values = self._features(row)

        def holds(term: Term) -> bool:
            return bool(term.holds(feature_column(term.feature, [values[term.feature]])).all())

        return tuple(term.feature not in values or holds(term) for term in self.terms)

    def value(self, row: Row, feature: str) -> int | None:
        value = self._features(row).get(feature)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _features(self, row: Row) -> dict[str, Value]:
        return features_of(row | {"product": self.smallest.get("product")})

    @property
    def sentence(self) -> str:
        """Say what fails and when: "every case with A and B fails (212 of 212), none of 3,101 others does".

        The others are cases that conform, held to the same checks, and failing ones that are not explained yet.
        """
        if not self.has_condition:
            return _unexplained(self)
        if not self.terms:
            return f"every case held to {_checks(self)} fails ({self.failing:,} of {self.failing:,})"
        *others, last = map(str, self.terms)
        met, condition = self.failing + self.conforming, f"{', '.join(others)} and {last}" if others else last
        if not self.conforming:
            return f"every case with {condition} fails ({met:,} of {met:,}), {_outside(self)}"
        return f"{self.failing:,} of {met:,} cases with {condition} fail, {_outside(self)}"


_MAX_TIES = 3


def headline(found: Sequence[FailureCluster]) -> str:
    """Say how many things are wrong, and how many failing cases none of them explains; empty where nothing fails."""
    causes = sum(cluster.has_condition for cluster in found)
    unexplained = sum(cluster.failing for cluster in found if not cluster.has_condition)
    if not causes:
        return f"{_failing(unexplained)}, and no condition was found that tells which" if unexplained else ""
    wrong = "One thing is wrong" if causes == 1 else f"{causes} things are wrong"
    besides = f", and {_failing(unexplained)} that {'this does' if causes == 1 else 'they do'} not explain"
    return wrong + (besides if unexplained else "")


def _failing(number: int) -> str:
    return "one case fails" if number == 1 else f"{number:,} cases fail"


def asides(cluster: FailureCluster) -> list[str]:
    """List what fails, what was seen beside each threshold, and other conditions that do as well."""
    lines = [f"what fails: {kinds_of(cluster)}"]
    beside = []
    for bound in cluster.bounds:
        conforms = "" if bound.conforms is None else f", {spelled_value(bound.conforms)} conforms"
        beside.append(f"{bound.feature}: {spelled_value(bound.fails)} fails{conforms}")
    if beside:
        lines.append("; ".join(beside))
    if alike := dict.fromkeys(str(term) for tie in cluster.ties for term in tie if term not in cluster.terms):
        lines.append(f"or, which the same cases have: {', '.join(list(alike)[:_MAX_TIES])}")
    return lines


def kinds_of(cluster: FailureCluster) -> str:
    """Count how its cases end, the most frequent first: "interval (31), crashed (2)"."""
    endings = [
        (check if verdict == Verdict.VIOLATES else verdict, number) for (verdict, check), number in cluster.kinds
    ]
    return ", ".join(f"{ending} ({number:,})" for ending, number in endings)


def _outside(cluster: FailureCluster) -> str:
    others = cluster.failing_others + cluster.conforming_others
    if not others:
        return "and there are no others"
    if cluster.failing_others:
        return f"{cluster.failing_others:,} of {others:,} others {'does' if cluster.failing_others == 1 else 'do'}"
    return f"none of {others:,} others {'do' if cluster.conforming else 'does'}"


def _unexplained(cluster: FailureCluster) -> str:
    failing = f"{_failing(cluster.failing)} ({_checks(cluster)})"
    if cluster.failing < MIN_FAILING:
        return f"{failing}: too few to tell what brings {'it' if cluster.failing == 1 else 'them'} about"
    lacking = f"{cluster.conforming_others:,} conforming ones lack"
    return f"{failing}, and nothing was found that they have in common and {lacking}"


def _checks(cluster: FailureCluster) -> str:
    return ", ".join(dict.fromkeys(check for (_, check), _ in cluster.kinds))
