"""Exact sums: all facts about the terms of each cell that the criterion needs.

Sums are exact for any data that float64 holds; no rounding of ours enters a verdict.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.kernels.compiled import Bytes, Floats, Ints, SmallInts, compiled, helper
from poolproof.references.kernels.numbers import NO_LATTICE, lowest_bit, power

NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY = 1, 2, 4
"""Flags of terms that are not finite, and of outputs that are admissible besides an interval."""

BOTH_INFINITIES = POSITIVE_INFINITY | NEGATIVE_INFINITY

LIMIT = 2.0**960
"""Sums of finite terms stay below it, so that every bound on them fits into float64."""


class Facts(NamedTuple):
    """The facts of all cells of a plane; arrays have shape (cells,).

    k
        How many terms land here, whatever their value.
    sum, residue
        The finite terms' exact sum S: ``sum`` is S rounded to float64, ``residue`` is S - ``sum`` rounded likewise.
    positive, negative
        P = sum of max(g, 0) and N = sum of max(-g, 0) over finite terms, rounded up where float64 is too short.
    lattice
        q, the exponent of the largest power of two that divides all finite non-zero terms; `NO_LATTICE` without any.
    kinds
        `NAN`, `POSITIVE_INFINITY` and `NEGATIVE_INFINITY` where a term of that kind lands.
    """

    k: Ints
    sum: Floats
    residue: Floats
    positive: Floats
    negative: Floats
    lattice: SmallInts
    kinds: Bytes


@helper
def empty_facts(cells: int) -> Facts:
    k, lattice, kinds = np.empty(cells, np.int64), np.empty(cells, np.int32), np.empty(cells, np.uint8)
    return Facts(k, np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), lattice, kinds)


class Cell(NamedTuple):
    """The `Facts` of one cell."""

    k: int
    sum: float
    residue: float
    positive: float
    negative: float
    lattice: int
    kinds: int


@helper
def cell_of(facts: Facts, i: int) -> Cell:
    return Cell(
        facts.k[i],
        facts.sum[i],
        facts.residue[i],
        facts.positive[i],
        facts.negative[i],
        facts.lattice[i],
        facts.kinds[i],
    )


@compiled
def facts_of_plane(cells: Ints, terms: Floats, size: int) -> Facts:
    """Return the facts of one plane of ``size`` cells; see `gather`."""
    facts = empty_facts(size)
    gather(cells, terms, 0, cells.size, facts)
    return facts


@helper
def gather(cells: Ints, terms: Floats, first: int, last: int, facts: Facts) -> None:
    """Fill the facts of a plane from ``terms`` and their ``cells``, ``first`` up to ``last``.

    A term with a negative cell is dropped. IndexError for a cell behind the plane; OverflowError where the finite terms
    of a cell reach `LIMIT`.
    """
    _clear(facts)
    for i in range(first, last):
        cell, term = cells[i], terms[i]
        if cell >= facts.k.size:
            raise IndexError("a cell lies behind its plane")
        if cell < 0:
            continue
        facts.k[cell] += 1
        if not math.isfinite(term):
            facts.kinds[cell] |= _special_kind(term)
        elif term != 0.0:
            facts.sum[cell] += term
            facts.positive[cell] += max(term, 0.0)
            facts.negative[cell] += max(-term, 0.0)
            facts.lattice[cell] = min(facts.lattice[cell], lowest_bit(term))
    if not _sums_are_exact(facts):
        _sum_exactly(cells, terms, first, last, facts)


@helper
def _clear(facts: Facts) -> None:
    facts.k[:] = 0
    facts.sum[:] = 0.0
    facts.residue[:] = 0.0
    facts.positive[:] = 0.0
    facts.negative[:] = 0.0
    facts.lattice[:] = NO_LATTICE
    facts.kinds[:] = 0


@helper
def _special_kind(term: float) -> int:
    if math.isnan(term):
        return NAN
    return POSITIVE_INFINITY if term > 0.0 else NEGATIVE_INFINITY


@helper
def _sums_are_exact(facts: Facts) -> bool:
    """Check whether all partial sums, which lie in [-N, P] on the lattice, fit into float64's 53 bits.

    Where P or N reach further, turn them into upper bounds.
    """
    exact = True
    for cell in range(facts.k.size):
        if facts.k[cell] < 2:
            continue
        positive, negative = facts.positive[cell], facts.negative[cell]
        if positive >= LIMIT or negative >= LIMIT:
            raise OverflowError("gradients this close to float64's limit have no exact float64 sum")
        end = power(facts.lattice[cell] + 53)
        if positive >= end or negative >= end:
            exact = False
            slack = 1.0 + facts.k[cell] * 2.0**-50
            facts.positive[cell] = positive * slack if positive >= end else positive
            facts.negative[cell] = negative * slack if negative >= end else negative
    return exact


@helper
def _sum_exactly(cells: Ints, terms: Floats, first: int, last: int, facts: Facts) -> None:
    """Sum the cells whose plain sums may have been rounded again, exactly, with their residues."""
    ends = np.zeros(facts.k.size, np.int64)
    total, most = 0, 0
    for cell in range(facts.k.size):
        if _is_too_wide(facts, cell):
            ends[cell] = total
            total += facts.k[cell]
            most = max(most, facts.k[cell])
    grouped = np.empty(total)
    for i in range(first, last):
        cell = cells[i]
        if cell >= 0 and _is_too_wide(facts, cell) and math.isfinite(terms[i]):
            grouped[ends[cell]] = terms[i]
            ends[cell] += 1
    components = np.empty(most + 1)
    begin = 0
    for cell in range(facts.k.size):
        if _is_too_wide(facts, cell):
            facts.sum[cell], facts.residue[cell] = _exact_sum(grouped, begin, ends[cell], components)
            begin += facts.k[cell]


@helper
def _is_too_wide(facts: Facts, cell: int) -> bool:
    """Check whether the plain sum of a cell may have been rounded."""
    return facts.k[cell] > 1 and max(facts.positive[cell], facts.negative[cell]) >= power(facts.lattice[cell] + 53)


@helper
def _exact_sum(terms: Floats, begin: int, end: int, components: Floats) -> tuple[float, float]:
    """Return (S rounded to float64, S - that, rounded) of terms ``begin`` up to ``end``; ``components`` is scratch."""
    number = 0
    for i in range(begin, end):
        number = _add(components, number, terms[i])
    total = _nearest(components, number)
    number = _add(components, number, -total)
    return total, _nearest(components, number)


@helper
def _add(components: Floats, number: int, term: float) -> int:
    """Add ``term`` to a sum of ``number`` non-overlapping components, the least first; return their new number.

    Every addition is split into its rounded result and its error, so that nothing is lost (Shewchuk 1997).
    """
    used = 0
    for i in range(number):
        component = components[i]
        total = term + component
        back = total - term
        error = (term - (total - back)) + (component - back)
        if error != 0.0:
            components[used] = error
            used += 1
        term = total
    if term != 0.0:
        components[used] = term
        used += 1
    return used


@helper
def _nearest(components: Floats, number: int) -> float:
    """Round the sum of non-overlapping components, the least first, to nearest even."""
    if number == 0:
        return 0.0
    total, error, left = components[number - 1], 0.0, number - 1
    while left > 0 and error == 0.0:
        left -= 1
        before, total = total, total + components[left]
        error = components[left] - (total - before)
    if left > 0 and (error > 0.0) == (components[left - 1] > 0.0):
        # What is left lies beyond half a unit: where the error is just that, the tie went to the wrong side.
        beyond = total + 2.0 * error
        if beyond - total == 2.0 * error:
            return beyond
    return total
