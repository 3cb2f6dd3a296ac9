"""One thing that is wrong, as far as rows tell it."""

from __future__ import annotations

from dataclasses import dataclass

from poolproof.reports.clusters.sentences import sentence
from poolproof.reports.clusters.terms import Term
from poolproof.reports.rows.schema import Row

FailureKind = tuple[str, str]
"""Verdict and first violated check."""


_SHARP = 0.9
"""Share of the cases with a condition that fail where it brings that about."""


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
    """One thing that is wrong with a backend, as far as can be told from the rows.

    terms
        The condition, all of which holds; empty where every case fails, or where none is claimed (`has_condition`).
    failing, conforming
        Cases that meet it, which fail, and which conform though they were held to the same checks.
    failing_others, conforming_others
        Those that do not meet it, failing ones of other suspects left out.
    ties
        Conditions of as many terms that the same cases meet.
    bounds
        For each threshold the observed values beside it.
    kinds
        (verdict, first violated check) of the failing cases with their numbers, the most frequent first.
    margin
        Bits by which the condition tells more than one of the same length would by chance, all those tried considered:
        chance gives as much with a probability below 2**-margin.
    smallest
        The failing row whose case (`failures.smallest_case`) is smallest, of those that were made smaller if there are.
    cases
        The ids of all failing cases that are this suspect's.
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
        """Every case that meets the condition fails, and no other does."""
        return self.has_condition and not self.conforming and not self.failing_others

    @property
    def is_sharp(self) -> bool:
        """Hardly a case conforms that meets the condition: that brings failure about, and does not only go with it."""
        return self.failing >= _SHARP * (self.failing + self.conforming)

    @property
    def sentence(self) -> str:
        """What fails, under which condition, with the numbers of both sides."""
        return sentence(self)
