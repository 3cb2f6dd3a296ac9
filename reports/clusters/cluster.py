"""A cluster of failing cases with one condition, as far as rows tell it."""

from __future__ import annotations

from dataclasses import dataclass

from poolproof.reports.clusters.sentences import sentence
from poolproof.reports.clusters.terms import Term
from poolproof.reports.rows.schema import Row

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
    terms: tuple[Term, ...]
    failing: int
    conforming: int
    failing_others: int
    conforming_others: int
    ties: tuple[tuple[Term, ...], ...]
    bounds: tuple[Bound, ...]
    kinds: tuple[tuple[FailureKind, int], ...]
    margin: float
    smallest: Row
    cases: frozenset[str] = frozenset()

    @property
    def is_exact(self) -> bool:
        """Return whether every case that meets the condition fails, and no other does."""
        return self.has_condition and not self.conforming and not self.failing_others

    @property
    def is_sharp(self) -> bool:
        """Return whether hardly a case conforms that meets the condition: it causes failure, not only goes with it."""
        return self.failing >= _SHARP * (self.failing + self.conforming)

    @property
    def sentence(self) -> str:
        """Say what fails, under which condition, with the numbers of both sides."""
        return sentence(self)
