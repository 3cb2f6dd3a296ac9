"""Search for the shortest condition that failing rows meet and conforming rows do not, and its significance.

A condition is a conjunction of at most three terms. The best one makes the labels of the rows (failing, conforming)
shortest to encode: with F of N rows failing, and f of the n that meet it, they take log2 C(n, f) + log2 C(N - n, F - f)
bits instead of log2 C(N, F). Random labels would give that split with a probability of 2 to minus the difference; what
it takes to name the condition and f is subtracted, which accounts for the number of conditions tried
(`ClusterCondition.margin`). An exact condition saves all there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import factorial, log2

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.clusters.terms import FeatureColumn, Literal, Mask, Term, literals, thresholds

MAX_TERMS = 3

MIN_MARGIN = 10.0
"""Bits of a significant condition: chance gives as much with a probability below 2**-10, all those tried considered."""

MIN_FAILING = 3
"""Failing rows of a significant condition."""

_MAX_LITERALS, _MAX_PAIRS, _MAX_TIES = 400, 48, 6
"""Literals that are combined with each other; pairs that get a third; ties that are kept."""

_MIN_PART = 0.95
"""Share of the best margin that suffices: a further term for less than a twentieth is not worth reading."""

Real = NDArray[np.float64]

Chosen = tuple[int, ...]
"""Numbers of literals that are a condition together."""


@dataclass(frozen=True)
class ClusterCondition:
    """A conjunction of ``terms``, met by ``failing`` of the failing rows and ``conforming`` of the others.

    ``margin``: bits by which it is better than chance would give, among all that were tried. ``ties``: other conditions
    of as many terms that are met by the same rows.
    """

    terms: tuple[Term, ...]
    mask: Mask
    failing: int
    conforming: int
    margin: float
    ties: tuple[tuple[Term, ...], ...] = ()

    @property
    def is_significant(self) -> bool:
        return self.failing >= MIN_FAILING and self.margin >= MIN_MARGIN


def best_condition(columns: Sequence[FeatureColumn], failing: Mask) -> ClusterCondition | None:
    """Return the best condition; None where none is met by more failing rows than others.

    ``failing``: which rows fail, the others conform.
    """
    labels = _Labels(failing)
    distinct = _distinct(columns, failing)
    kept = _most_promising(distinct, labels)
    if not kept:
        return None
    chosen = _shortest(dict(_candidates(kept, labels)), kept, labels)
    by_feature = {column.feature: column for column in columns}
    moved = _at_best_places([kept[number][0] for number in chosen], by_feature, labels)
    return _condition(moved, distinct, labels)


def _shortest(found: dict[Chosen, float], kept: DistinctLiterals, labels: _Labels) -> Chosen:
    """Return the shortest of all nearly as good as the best; where the best is exact, the shortest exact one.

    A condition with half of the exceptions is no longer nearly as good, where chance would hardly give that.
    """
    best = max(found, key=found.__getitem__)
    least = min(found[best], _MIN_PART * found[best])
    near = [chosen for chosen, margin in found.items() if margin >= least]
    if not _exceptions(best, kept, labels):
        near = [chosen for chosen in near if not _exceptions(chosen, kept, labels)]
    shortest = _first(near, found)
    allowed, least = _exceptions(shortest, kept, labels) / 2, found[shortest] + MIN_MARGIN
    better = [chosen for chosen in near if found[chosen] >= least and _exceptions(chosen, kept, labels) <= allowed]
    return _first(better, found) if better else shortest


def _first(near: list[Chosen], found: dict[Chosen, float]) -> Chosen:
    return min(near, key=lambda chosen: (len(chosen), -found[chosen]))


def _exceptions(chosen: Chosen, kept: DistinctLiterals, labels: _Labels) -> int:
    """Count the rows that meet a condition and conform, or fail and do not meet it."""
    return int((_all([kept[number][0].mask for number in chosen], labels) != labels.failing).sum())


class _Labels:
    """Which rows fail, and what a split of them is worth."""

    def __init__(self, failing: Mask) -> None:
        self.failing = failing
        self.rows, self.fails = len(failing), int(failing.sum())
        self._factorials = np.concatenate(([0.0], np.cumsum(np.log2(np.arange(1, self.rows + 1)))))
        self._alone = self._choices(np.int64(self.rows), np.int64(self.fails))

    def saved(self, met: NDArray[np.int64], failing: NDArray[np.int64]) -> Real:
        """Return the bits saved by a condition that ``met`` rows meet, ``failing`` of them; -inf where fewer fail."""
        saved = self._alone - self._choices(met, failing) - self._choices(self.rows - met, self.fails - failing)
        enriched = failing * self.rows > met * self.fails
        return np.where(enriched, saved - log2(self.fails + 1), -np.inf)

    def saved_by(self, mask: Mask) -> float:
        return float(self.saved(mask.sum(), (mask & self.failing).sum()))

    def _choices(self, among: NDArray[np.int64] | np.int64, chosen: NDArray[np.int64] | np.int64) -> Real:
        log2_factorial = self._factorials
        return np.asarray(log2_factorial[among] - log2_factorial[chosen] - log2_factorial[among - chosen])


DistinctLiterals = list[tuple[Literal, list[Literal]]]
"""A literal, and the others that hold in the same rows."""


def _distinct(columns: Sequence[FeatureColumn], failing: Mask) -> DistinctLiterals:
    """Return the literals that hold in several failing rows and not in all; equal ones together, cheapest first."""
    least = min(2, int(failing.sum()))
    groups: dict[bytes, list[Literal]] = {}
    for column in columns:
        for literal in literals(column, failing, len(columns)):
            if int((literal.mask & failing).sum()) >= least and not literal.mask.all():
                groups.setdefault(np.packbits(literal.mask).tobytes(), []).append(literal)
    ordered = [sorted(group, key=lambda literal: literal.bits) for group in groups.values()]
    return [(first, others) for first, *others in ordered]


def _most_promising(distinct: DistinctLiterals, labels: _Labels) -> DistinctLiterals:
    """Select those that save most alone, and those that all failing rows have, which save most in company."""
    if len(distinct) <= _MAX_LITERALS:
        return distinct
    met = np.array([literal.mask.sum() for literal, _ in distinct])
    failing = np.array([(literal.mask & labels.failing).sum() for literal, _ in distinct])
    alone = np.argsort(-labels.saved(met, failing), kind="stable")
    general = np.lexsort((met, -failing))
    order = np.stack([alone, general], axis=1).ravel().tolist()
    return [distinct[number] for number in sorted(dict.fromkeys(order), key=order.index)[:_MAX_LITERALS]]


Counted = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Per condition the failing rows that meet it, and the others: 1 or 0, so that a product counts them."""


def _candidates(kept: DistinctLiterals, labels: _Labels) -> Iterator[tuple[Chosen, float]]:
    """Yield (numbers of literals, margin): the best of one term, of two, and of three."""
    masks = np.stack([literal.mask for literal, _ in kept]).astype(np.float32)
    bits = np.array([literal.bits for literal, _ in kept])
    single = masks[:, labels.failing], masks[:, ~labels.failing]
    chosen: list[Chosen] = [()]
    for breadth in (_MAX_LITERALS, _MAX_PAIRS, _MAX_PAIRS)[:MAX_TERMS]:
        met = [np.stack([part[list(numbers)].min(axis=0, initial=1.0) for numbers in chosen]) for part in single]
        margins = _margins((met[0], met[1]), single, chosen, bits, labels)
        found = dict(_best(margins, chosen, breadth))
        yield from found.items()
        chosen = list(found)
        if not chosen:
            break


def _margins(left: Counted, right: Counted, chosen: list[Chosen], bits: Real, labels: _Labels) -> Real:
    """Return the margin of every chosen condition with every further literal."""
    failing, passing = ((a @ b.T).round().astype(np.int64) for a, b in zip(left, right, strict=True))
    named = np.array([bits[list(numbers)].sum() for numbers in chosen])[:, None] + bits
    return labels.saved(failing + passing, failing) - named + log2(factorial(len(chosen[0]) + 1))


def _best(margins: Real, chosen: list[Chosen], breadth: int) -> Iterator[tuple[Chosen, float]]:
    """Yield the best conditions that a further literal makes, each once, the best first."""
    values, most = margins.ravel(), breadth * MAX_TERMS
    least = np.partition(values, -most)[-most] if most < len(values) else -np.inf  # the rest is not sorted
    near = np.flatnonzero(values >= least)
    order = near[np.argsort(-values[near], kind="stable")][:most]
    places = zip(*np.unravel_index(order, margins.shape), strict=True)
    made = [(tuple(sorted({*chosen[int(row)], int(further)})), float(margins[row, further])) for row, further in places]
    longer = [(numbers, margin) for numbers, margin in made if len(numbers) > len(chosen[0])]
    yield from islice(dict(longer).items(), breadth)


def _at_best_places(chosen: list[Literal], columns: dict[str, FeatureColumn], labels: _Labels) -> list[Literal]:
    """Move each threshold in turn to where the condition saves most, the others as they are."""
    for number, literal in enumerate(chosen):
        column = columns[literal.term.feature]
        others = _all([literal.mask for other, literal in enumerate(chosen) if other != number], labels)
        places = [literal.term, *thresholds(column, literal.term)]
        best = max(places, key=lambda term: labels.saved_by(others & term.holds(column)))
        chosen[number] = Literal(best, best.holds(column), literal.bits)
    return chosen


def _all(masks: list[Mask], labels: _Labels) -> Mask:
    return np.logical_and.reduce(masks) if masks else np.ones(labels.rows, np.bool_)


def _condition(chosen: list[Literal], distinct: DistinctLiterals, labels: _Labels) -> ClusterCondition:
    mask = _all([literal.mask for literal in chosen], labels)
    bits = sum(literal.bits for literal in chosen) - log2(factorial(len(chosen)))
    failing = int((mask & labels.failing).sum())
    return ClusterCondition(
        terms=tuple(literal.term for literal in chosen),
        mask=mask,
        failing=failing,
        conforming=int(mask.sum()) - failing,
        margin=labels.saved_by(mask) - bits,
        ties=tuple(islice(_ties(chosen, mask, distinct, labels), _MAX_TIES)),
    )


def _ties(chosen: list[Literal], mask: Mask, distinct: DistinctLiterals, labels: _Labels) -> Iterator[tuple[Term, ...]]:
    """Yield the condition with one term replaced, where the same rows meet it."""
    every = sorted(
        (literal for first, others in distinct for literal in (first, *others)), key=lambda literal: literal.bits
    )
    for number, literal in enumerate(chosen):
        others = _all([literal.mask for other, literal in enumerate(chosen) if other != number], labels)
        for other in every:
            if other.term.feature != literal.term.feature and np.array_equal(others & other.mask, mask):
                yield tuple(other.term if place == number else literal.term for place, literal in enumerate(chosen))
