"""Search for the shortest condition that failing rows meet and conforming rows do not, and its significance.

A condition is a conjunction of at most three terms. The best one gives the shortest encoding of the rows' labels
(failing, conforming). Let F of N rows fail, and f of the n rows that meet it. Then the labels take log2 C(n, f) + log2
C(N - n, F - f) bits instead of log2 C(N, F). Random labels give that split with a probability of 2 to minus the
difference. The bits to name the condition and f are subtracted, which accounts for the number of conditions tried. The
rest is the margin. An exact condition saves everything.

Rows that were made from each other, such as neighbours of one failing case, have more in common than by chance. So each
term also needs contrast: independently drawn rows that conform and meet all other terms. And at least two of the
independently drawn failing rows, if there are two, must meet a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import factorial, log2

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.clusters.terms import FeatureColumn, Literal, Mask, Term, literals, varying

MAX_TERMS = 3

MIN_MARGIN = 10.0
"""Bits of a significant condition: chance gives as many with a probability below 2**-10, over all conditions tried."""

MIN_FAILING = 3
"""Least failing rows of a significant condition."""

MIN_CONTRAST = 3
"""Least contrasting rows for a term."""

SHARP = 0.9
"""Least share of failing cases among those that meet a condition, for it to be the cause."""

_MAX_LITERALS = 400
"""Most literals to combine with each other."""

_MAX_PAIRS = 48
"""Most pairs that get a third literal."""

_MIN_PART = 0.95
"""Least share of the best margin: a further term for less than a twentieth is not worth reading."""

Real = NDArray[np.float64]

Chosen = tuple[int, ...]
"""Numbers of the literals of a condition."""


def best_condition(
    columns: Mapping[str, FeatureColumn], failing: Mask, independent: Mask
) -> tuple[tuple[Term, ...], Mask, float] | None:
    """Return the best condition that is significant and has contrast, its mask of rows, and its margin; or None.

    ``failing`` marks the failing rows; the others conform. ``independent`` marks those drawn independently. If many
    rows that meet the condition conform, the best condition among these rows is added. The first one may be a common
    property of failing rows, which hides the actual cause.
    """
    rows = _Rows(columns, failing, independent)
    chosen = _best_literals(rows, MAX_TERMS)
    if not chosen:
        return None
    mask = _all(chosen)
    if (mask & failing).sum() < SHARP * mask.sum() and len(chosen) < MAX_TERMS:
        chosen = _narrowed(chosen, mask, rows)
    chosen = _without_weak_terms(chosen, failing)
    mask = _all(chosen)
    margin = rows.saved_by(mask) - _bits(chosen)
    if margin < MIN_MARGIN or (mask & failing).sum() < MIN_FAILING:
        return None
    return tuple(literal.term for literal in chosen), mask, margin


class _Rows:
    """Rows of which some fail, with their ``columns`` by feature, and the value of a split.

    ``drawn`` are the failing, ``contrasting`` the conforming rows that were drawn independently.
    """

    def __init__(self, columns: Mapping[str, FeatureColumn], failing: Mask, independent: Mask) -> None:
        self.columns, self.failing, self._independent = columns, failing, independent
        self.drawn, self.contrasting = failing & independent, ~failing & independent
        self._number, self._fails = len(failing), int(failing.sum())
        self._factorials = np.concatenate(([0.0], np.cumsum(np.log2(np.arange(1, self._number + 1)))))
        self._alone = self._choices(np.int64(self._number), np.int64(self._fails))

    def within(self, mask: Mask) -> _Rows:
        return _Rows(varying(self.columns, np.flatnonzero(mask)), self.failing[mask], self._independent[mask])

    def saved(self, met: NDArray[np.int64], failing: NDArray[np.int64]) -> Real:
        """Return the bits saved by a condition of ``met`` rows, ``failing`` of them; -inf if fewer fail than usual."""
        saved = self._alone - self._choices(met, failing) - self._choices(self._number - met, self._fails - failing)
        enriched = failing * self._number > met * self._fails
        return np.where(enriched, saved - log2(self._fails + 1), -np.inf)

    def saved_by(self, mask: Mask) -> float:
        return float(self.saved(mask.sum(), (mask & self.failing).sum()))

    def _choices(self, among: NDArray[np.int64] | np.int64, chosen: NDArray[np.int64] | np.int64) -> Real:
        log2_factorial = self._factorials
        return np.asarray(log2_factorial[among] - log2_factorial[chosen] - log2_factorial[among - chosen])


def _best_literals(rows: _Rows, most: int) -> list[Literal]:
    """Return at most ``most`` literals with contrast that are the best condition together; empty if there is none."""
    least = min(2, int(rows.drawn.sum()))
    kept = _most_promising(_distinct_literals(rows), rows)
    margins = {
        numbers: margin
        for numbers, margin in _candidates(kept, rows, most)
        if _has_contrast(together := [kept[number] for number in numbers], rows)
        and int((_all(together) & rows.drawn).sum()) >= least
    }
    if not margins:
        return []
    chosen = _at_best_places([kept[number] for number in _shortest(margins, kept, rows.failing)], rows)
    for literal in chosen:  # a threshold at its best place can make it superfluous
        fewer = _at_best_places([each for each in chosen if each is not literal], rows)
        if fewer and np.array_equal(_all(fewer), _all(chosen)):
            return fewer
    return chosen


def _narrowed(chosen: list[Literal], mask: Mask, rows: _Rows) -> list[Literal]:
    """Add the best condition among the rows in ``mask``, if it is significant there and all terms have contrast."""
    part = rows.within(mask)
    finer = _best_literals(part, MAX_TERMS - len(chosen))
    if not finer or part.saved_by(_all(finer)) - _bits(finer) < MIN_MARGIN:
        return chosen
    longer = [*chosen, *(Literal.of(each.term, rows.columns[each.term.feature], each.bits) for each in finer)]
    return longer if _has_contrast(longer, rows) else chosen


def _without_weak_terms(chosen: list[Literal], failing: Mask) -> list[Literal]:
    """Return a condition that is not sharp without terms that exclude fewer conforming rows than still meet it.

    Such a term does not complete the condition. It is a coincidence, or it says where the fault does not show.
    """
    mask = _all(chosen)
    if len(chosen) == 1 or (mask & failing).sum() >= SHARP * mask.sum():
        return chosen
    fewer = min(([each for each in chosen if each is not weak] for weak in chosen), key=lambda rest: _all(rest).sum())
    if (_all(fewer) & ~failing).sum() >= 2 * (mask & ~failing).sum():
        return chosen
    return _without_weak_terms(fewer, failing)


def _bits(chosen: Sequence[Literal]) -> float:
    """Return the bits to name a condition; the order of its terms does not count."""
    return sum(literal.bits for literal in chosen) - log2(factorial(len(chosen)))


def _has_contrast(literals: Sequence[Literal], rows: _Rows) -> bool:
    """Tell whether enough rows meet the opposite of each term and all other terms."""
    for literal in literals:
        further = [other.mask for other in literals if other is not literal]
        if np.logical_and.reduce([rows.contrasting, literal.opposite, *further]).sum() < MIN_CONTRAST:
            return False
    return True


def _shortest(found: dict[Chosen, float], kept: Sequence[Literal], failing: Mask) -> Chosen:
    """Return the shortest condition nearly as good as the best; if the best is exact, the shortest exact one.

    A condition with at most half of its exceptions is preferred, if chance would hardly give that.
    """

    def exceptions(chosen: Chosen) -> int:
        """Return the number of conforming rows that meet a condition, and of failing rows that do not."""
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


def _distinct_literals(rows: _Rows) -> list[Literal]:
    """Return the literals of several failing rows with contrast; of equal masks the cheapest one."""
    least = min(2, int(rows.failing.sum()))
    cheapest: dict[bytes, Literal] = {}
    for column in rows.columns.values():
        for literal in literals(column, rows.failing, len(rows.columns)):
            if int((literal.mask & rows.failing).sum()) >= least and _has_contrast([literal], rows):
                same = np.packbits(literal.mask).tobytes()
                if same not in cheapest or literal.bits < cheapest[same].bits:
                    cheapest[same] = literal
    return list(cheapest.values())


def _most_promising(distinct: list[Literal], rows: _Rows) -> list[Literal]:
    """Return the literals that save most alone, and those that all failing rows have, which save most together."""
    if len(distinct) <= _MAX_LITERALS:
        return distinct
    met = np.array([literal.mask.sum() for literal in distinct])
    failing = np.array([(literal.mask & rows.failing).sum() for literal in distinct])
    alone = np.argsort(-rows.saved(met, failing), kind="stable")
    general = np.lexsort((met, -failing))
    order = np.stack([alone, general], axis=1).ravel().tolist()
    return [distinct[number] for number in list(dict.fromkeys(order))[:_MAX_LITERALS]]


def _candidates(kept: list[Literal], rows: _Rows, most: int) -> Iterator[tuple[Chosen, float]]:
    """Yield (numbers of literals, margin): the best of one term, of two, and of three, up to ``most`` terms."""
    if not kept:
        return
    masks = np.stack([literal.mask for literal in kept]).astype(np.float32)  # a product counts rows of both
    bits = np.array([literal.bits for literal in kept])
    chosen: list[Chosen] = [()]
    for terms, breadth in enumerate((_MAX_LITERALS, _MAX_PAIRS, _MAX_PAIRS)[:most], 1):
        met = np.stack([masks[list(numbers)].min(axis=0, initial=1.0) for numbers in chosen])
        failing, passing = (
            (met[:, part] @ masks[:, part].T).round().astype(np.int64) for part in (rows.failing, ~rows.failing)
        )
        named = np.array([bits[list(numbers)].sum() for numbers in chosen])[:, None] + bits
        margins = rows.saved(failing + passing, failing) - named + log2(factorial(terms))
        found = dict(_best(margins, chosen, breadth))
        yield from found.items()
        chosen = list(found)
        if not chosen:
            break


def _best(margins: Real, chosen: list[Chosen], breadth: int) -> Iterator[tuple[Chosen, float]]:
    """Yield the best conditions with a further literal, each once, best first."""
    order = np.argsort(-margins.ravel(), kind="stable")[: breadth * MAX_TERMS]
    places = zip(*np.unravel_index(order, margins.shape), strict=True)
    made = [(tuple(sorted({*chosen[int(row)], int(further)})), float(margins[row, further])) for row, further in places]
    longer = [(numbers, margin) for numbers, margin in made if len(numbers) > len(chosen[0])]
    yield from islice(dict(longer).items(), breadth)


def _at_best_places(chosen: list[Literal], rows: _Rows) -> list[Literal]:
    """Move each threshold in turn to the observed value where the condition saves most."""
    for number, literal in enumerate(chosen):
        if literal.term.is_threshold:
            column, rest = rows.columns[literal.term.feature], _all(chosen[:number] + chosen[number + 1 :])
            observed = column.distinct(column.present)[1:]
            places = [literal.term, *(replace(literal.term, value=int(value)) for value in observed)]
            for best in sorted(places, key=lambda term: -rows.saved_by(rest & term.holds(column))):
                moved = Literal.of(best, column, literal.bits)
                if _has_contrast([*chosen[:number], moved, *chosen[number + 1 :]], rows):
                    chosen[number] = moved
                    break
    return chosen


def _all(literals: Sequence[Literal]) -> Mask:
    """Return the rows in which all literals hold; true for no literals."""
    return np.logical_and.reduce([literal.mask for literal in literals])
