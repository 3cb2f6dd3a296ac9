"""Search for the shortest condition that failing rows meet and conforming rows do not, and its significance.

A condition is a conjunction of at most three terms. The best one makes the labels of the rows (failing, conforming)
shortest to encode: with F of N rows failing, and f of the n that meet it, they take log2 C(n, f) + log2 C(N - n, F - f)
bits instead of log2 C(N, F). Random labels would give that split with a probability of 2 to minus the difference; what
it takes to name the condition and f is subtracted, which accounts for the number of conditions tried
(`ClusterCondition.margin`). An exact condition saves all there is.

Rows that were made from each other, as neighbours of one failing case are, have more in common than chance gives. So
each term needs contrast besides: rows drawn independently that meet all other terms and not this one, and conform. And
of failing rows that were drawn independently a condition is met by two, where there are two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import factorial, log2

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.clusters.terms import FeatureColumn, Literal, Mask, Term, literals

MAX_TERMS = 3

MIN_MARGIN = 10.0
"""Bits of a significant condition: chance gives as much with a probability below 2**-10, all those tried considered."""

MIN_FAILING = 3
"""Failing rows of a significant condition."""

MIN_CONTRAST = 3
"""Rows that are contrast enough for a term."""

SHARP = 0.9
"""Share of the cases with a condition that fail where it is the cause."""

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
    of as many terms that are met by the same rows. ``contrast``: how many rows contrast with each term.
    """

    terms: tuple[Term, ...]
    mask: Mask
    failing: int
    conforming: int
    margin: float
    ties: tuple[tuple[Term, ...], ...]
    contrast: tuple[int, ...]

    @property
    def is_significant(self) -> bool:
        return self.failing >= MIN_FAILING and self.margin >= MIN_MARGIN


def best_condition(columns: Sequence[FeatureColumn], failing: Mask, independent: Mask) -> ClusterCondition | None:
    """Return the best condition with contrast; None where none is met by more failing rows than others.

    Where many rows that meet it conform, the best condition among these alone is added to it: what failing rows have
    in common is worth most among many others, and hides what makes some of them fail. ``failing``: which rows fail, the
    others conform. ``independent``: which were drawn independently.
    """
    groups = _equal_literals(columns, failing, ~failing & independent)
    chosen = _best_literals(groups, columns, failing, independent, MAX_TERMS)
    labels, mask = _Labels(failing), _all(chosen)
    if not chosen:
        return None
    if (mask & failing).sum() < SHARP * mask.sum() and len(chosen) < MAX_TERMS:
        chosen = _narrowed(chosen, mask, columns, failing, independent)
        mask = _all(chosen)
    return ClusterCondition(
        terms=tuple(literal.term for literal in chosen),
        mask=mask,
        failing=int((mask & failing).sum()),
        conforming=int((mask & ~failing).sum()),
        margin=labels.saved_by(mask) - _bits(chosen),
        ties=tuple(islice(_ties(chosen, mask, groups), _MAX_TIES)),
        contrast=tuple(_contrast(chosen, ~failing & independent)),
    )


def _best_literals(
    groups: list[list[Literal]], columns: Sequence[FeatureColumn], failing: Mask, independent: Mask, most: int
) -> list[Literal]:
    """Return at most so many literals, which have contrast, that are the best condition together; none if none is."""
    labels = _Labels(failing)
    contrasting, drawn = ~failing & independent, failing & independent
    least = min(2, int(drawn.sum()))
    kept = _most_promising([cheapest for cheapest, *_ in groups], labels)
    if not kept:
        return []
    found = {
        chosen: margin
        for chosen, margin in _candidates(kept, labels, most)
        if min(_contrast([kept[number] for number in chosen], contrasting)) >= MIN_CONTRAST
        and int((_all([kept[number] for number in chosen]) & drawn).sum()) >= least
    }
    if not found:
        return []
    chosen = _at_best_places([kept[each] for each in _shortest(found, kept, failing)], columns, labels, contrasting)
    for literal in chosen:  # which a threshold at its best place can make superfluous
        fewer = _at_best_places([each for each in chosen if each is not literal], columns, labels, contrasting)
        if fewer and np.array_equal(_all(fewer), _all(chosen)):
            return fewer
    return chosen


def _narrowed(
    chosen: list[Literal], mask: Mask, columns: Sequence[FeatureColumn], failing: Mask, independent: Mask
) -> list[Literal]:
    """Add the best condition among the rows in ``mask``, if it is significant there and all terms have contrast."""
    fails, drawn = failing[mask], independent[mask]
    parts = [part for column in columns if (part := column.at(np.flatnonzero(mask))).varies]
    groups = _equal_literals(parts, fails, ~fails & drawn)
    finer = _best_literals(groups, parts, fails, drawn, MAX_TERMS - len(chosen))
    if not finer or _Labels(fails).saved_by(_all(finer)) - _bits(finer) < MIN_MARGIN:
        return chosen
    by_feature = {column.feature: column for column in columns}
    longer = [*chosen, *(Literal.of(each.term, by_feature[each.term.feature], each.bits) for each in finer)]
    return longer if min(_contrast(longer, ~failing & independent)) >= MIN_CONTRAST else chosen


def _bits(chosen: Sequence[Literal]) -> float:
    """Return the bits that name a condition, whose terms have no order."""
    return sum(literal.bits for literal in chosen) - log2(factorial(len(chosen)))


def _contrast(literals: Sequence[Literal], contrasting: Mask) -> Iterator[int]:
    """Count for each term the rows that meet all others and its opposite."""
    for number, literal in enumerate(literals):
        masks = [other.mask for place, other in enumerate(literals) if place != number]
        yield int(np.logical_and.reduce([contrasting, literal.opposite, *masks]).sum())


def _shortest(found: dict[Chosen, float], kept: Sequence[Literal], failing: Mask) -> Chosen:
    """Return the shortest of all nearly as good as the best; where the best is exact, the shortest exact one.

    A condition with half of the exceptions is no longer nearly as good, where chance would hardly give that.
    """

    def exceptions(chosen: Chosen) -> int:
        """Count the rows that meet a condition and conform, or fail and do not meet it."""
        return int((_all([kept[number] for number in chosen]) != failing).sum())

    def first(near: list[Chosen]) -> Chosen:
        return min(near, key=lambda chosen: (len(chosen), -found[chosen]))

    best = max(found, key=found.__getitem__)
    least = min(found[best], _MIN_PART * found[best])
    near = [chosen for chosen, margin in found.items() if margin >= least]
    if not exceptions(best):
        near = [chosen for chosen in near if not exceptions(chosen)]
    shortest = first(near)
    allowed, least = exceptions(shortest) / 2, found[shortest] + MIN_MARGIN
    better = [chosen for chosen in near if found[chosen] >= least and exceptions(chosen) <= allowed]
    return first(better) if better else shortest


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


def _equal_literals(columns: Sequence[FeatureColumn], failing: Mask, contrasting: Mask) -> list[list[Literal]]:
    """Group the literals that hold in several failing rows and have contrast by their rows; the cheapest first."""
    least = min(2, int(failing.sum()))
    groups: dict[bytes, list[Literal]] = {}
    for column in columns:
        for literal in literals(column, failing, len(columns)):
            contrast = int((literal.opposite & contrasting).sum())
            if contrast >= MIN_CONTRAST and int((literal.mask & failing).sum()) >= least:
                groups.setdefault(np.packbits(literal.mask).tobytes(), []).append(literal)
    return [sorted(group, key=lambda literal: literal.bits) for group in groups.values()]


def _most_promising(distinct: list[Literal], labels: _Labels) -> list[Literal]:
    """Select those that save most alone, and those that all failing rows have, which save most in company."""
    if len(distinct) <= _MAX_LITERALS:
        return distinct
    met = np.array([literal.mask.sum() for literal in distinct])
    failing = np.array([(literal.mask & labels.failing).sum() for literal in distinct])
    alone = np.argsort(-labels.saved(met, failing), kind="stable")
    general = np.lexsort((met, -failing))
    order = np.stack([alone, general], axis=1).ravel().tolist()
    return [distinct[number] for number in list(dict.fromkeys(order))[:_MAX_LITERALS]]


def _candidates(kept: list[Literal], labels: _Labels, most: int) -> Iterator[tuple[Chosen, float]]:
    """Yield (numbers of literals, margin): the best of one term, of two, and of three, but at most so many."""
    masks = np.stack([literal.mask for literal in kept]).astype(np.float32)  # a product counts what meets both
    bits = np.array([literal.bits for literal in kept])
    chosen: list[Chosen] = [()]
    for terms, breadth in enumerate((_MAX_LITERALS, _MAX_PAIRS, _MAX_PAIRS)[:most], 1):
        met = np.stack([masks[list(numbers)].min(axis=0, initial=1.0) for numbers in chosen])
        failing, passing = (
            (met[:, part] @ masks[:, part].T).round().astype(np.int64) for part in (labels.failing, ~labels.failing)
        )
        named = np.array([bits[list(numbers)].sum() for numbers in chosen])[:, None] + bits
        margins = labels.saved(failing + passing, failing) - named + log2(factorial(terms))
        found = dict(_best(margins, chosen, breadth))
        yield from found.items()
        chosen = list(found)
        if not chosen:
            break


def _best(margins: Real, chosen: list[Chosen], breadth: int) -> Iterator[tuple[Chosen, float]]:
    """Yield the best conditions that a further literal makes, each once, the best first."""
    order = np.argsort(-margins.ravel(), kind="stable")[: breadth * MAX_TERMS]
    places = zip(*np.unravel_index(order, margins.shape), strict=True)
    made = [(tuple(sorted({*chosen[int(row)], int(further)})), float(margins[row, further])) for row, further in places]
    longer = [(numbers, margin) for numbers, margin in made if len(numbers) > len(chosen[0])]
    yield from islice(dict(longer).items(), breadth)


def _at_best_places(
    chosen: list[Literal], columns: Sequence[FeatureColumn], labels: _Labels, contrasting: Mask
) -> list[Literal]:
    """Move each threshold in turn to the observed value where the condition saves most, the others as they are."""
    by_feature = {column.feature: column for column in columns}
    for number, literal in enumerate(chosen):
        if literal.term.is_threshold:
            column, others = by_feature[literal.term.feature], _all(chosen[:number] + chosen[number + 1 :])
            observed = column.distinct(column.present)[1:]
            places = [literal.term, *(replace(literal.term, value=int(value)) for value in observed)]
            for best in sorted(places, key=lambda term: -labels.saved_by(others & term.holds(column))):
                moved = Literal.of(best, column, literal.bits)
                if min(_contrast([*chosen[:number], moved, *chosen[number + 1 :]], contrasting)) >= MIN_CONTRAST:
                    chosen[number] = moved
                    break
    return chosen


def _all(literals: Sequence[Literal]) -> Mask:
    """Return in which rows all hold; where there are none, just true."""
    return np.logical_and.reduce([literal.mask for literal in literals])


def _ties(chosen: list[Literal], mask: Mask, groups: list[list[Literal]]) -> Iterator[tuple[Term, ...]]:
    """Yield the condition with one term replaced, where the same rows meet it."""
    every = sorted(chain.from_iterable(groups), key=lambda literal: literal.bits)
    for number, literal in enumerate(chosen):
        others = _all(chosen[:number] + chosen[number + 1 :])
        for other in every:
            if other.term.feature != literal.term.feature and np.array_equal(others & other.mask, mask):
                yield tuple(other.term if place == number else literal.term for place, literal in enumerate(chosen))
