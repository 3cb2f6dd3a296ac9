"""What meets in each cell of one plane: the facts that a verdict on the cell needs, and all that it needs.

Sums are exact for any data that float64 holds; no rounding of ours enters a verdict.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.core.compiled import Bytes, Floats, Ints, SmallInts, compiled, part
from poolproof.references.core.numbers import NO_LATTICE, lowest_bit, power

NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY = 1, 2, 4
"""Kinds of terms that are not finite, and of outputs that are admissible besides an interval."""

BOTH_INFINITIES = POSITIVE_INFINITY | NEGATIVE_INFINITY

LIMIT = 2.0**960
"""Sums of finite terms stay below it, so that every bound on them has a place in float64."""


class Facts(NamedTuple):
    """Of each cell of a plane; all arrays have shape (cells,).

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


@part
def empty_facts(cells: int) -> Facts:
    """Memory for the facts of a plane of that many cells."""
    k, lattice, kinds = np.empty(cells, np.int64), np.empty(cells, np.int32), np.empty(cells, np.uint8)
    return Facts(k, np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), lattice, kinds)


class Cell(NamedTuple):
    """The same of one cell."""

    k: int
    sum: float
    residue: float
    positive: float
    negative: float
    lattice: int
    kinds: int


@part
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
    """The facts of one plane of ``size`` cells; see `gather`."""
    facts = empty_facts(size)
    gather(cells, terms, 0, cells.size, facts)
    return facts


@part
def gather(cells: Ints, terms: Floats, first: int, last: int, facts: Facts) -> None:
    """The facts of a plane into whose ``cells`` the ``terms`` from ``first`` up to ``last`` are sent.

    A term sent to a negative cell lands nowhere. IndexError for a cell behind the plane; OverflowError where the finite
    terms of a cell reach `LIMIT`.
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
            facts.kinds[cell] |= _kind(term)
        elif term != 0.0:
            facts.sum[cell] += term
            facts.positive[cell] += max(term, 0.0)
            facts.negative[cell] += max(-term, 0.0)
            facts.lattice[cell] = min(facts.lattice[cell], lowest_bit(term))
    if not _sums_are_exact(facts):
        _sum_exactly(cells, terms, first, last, facts)


@part
def _clear(facts: Facts) -> None:
    facts.k[:] = 0
    facts.sum[:] = 0.0
    facts.residue[:] = 0.0
    facts.positive[:] = 0.0
    facts.negative[:] = 0.0
    facts.lattice[:] = NO_LATTICE
    facts.kinds[:] = 0


@part
def _kind(term: float) -> int:
    """Of a term that is not finite."""
    if math.isnan(term):
        return NAN
    return POSITIVE_INFINITY if term > 0.0 else NEGATIVE_INFINITY


@part
def _sums_are_exact(facts: Facts) -> bool:
    """Whether every partial sum of every cell, which lies in [-N, P] on the lattice, has a place in float64's 53 bits.

    Where P or N reach further they become upper bounds.
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


@part
def _sum_exactly(cells: Ints, terms: Floats, first: int, last: int, facts: Facts) -> None:
    """The sums, with their residues, of the cells whose plain sums may have been rounded: gathered, then added."""
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
    parts = np.empty(most + 1)
    begin = 0
    for cell in range(facts.k.size):
        if _is_too_wide(facts, cell):
            facts.sum[cell], facts.residue[cell] = _exact_sum(grouped, begin, ends[cell], parts)
            begin += facts.k[cell]


@part
def _is_too_wide(facts: Facts, cell: int) -> bool:
    """Whether the plain sum of a cell may have been rounded."""
    return facts.k[cell] > 1 and max(facts.positive[cell], facts.negative[cell]) >= power(facts.lattice[cell] + 53)


@part
def _exact_sum(terms: Floats, begin: int, end: int, parts: Floats) -> tuple[float, float]:
    """(S rounded to float64, S - that, rounded) of the terms from ``begin`` up to ``end``; ``parts`` is memory."""
    number = 0
    for i in range(begin, end):
        number = _add(parts, number, terms[i])
    total = _nearest(parts, number)
    number = _add(parts, number, -total)
    return total, _nearest(parts, number)


@part
def _add(parts: Floats, number: int, term: float) -> int:
    """Add ``term`` to a sum of ``number`` parts that do not overlap, the least first; how many there are then.

    Every addition is taken apart into its rounded result and its error, of which nothing is lost (Shewchuk 1997).
    """
    kept = 0
    for i in range(number):
        part_of_sum = parts[i]
        total = term + part_of_sum
        back = total - term
        error = (term - (total - back)) + (part_of_sum - back)
        if error != 0.0:
            parts[kept] = error
            kept += 1
        term = total
    if term != 0.0:
        parts[kept] = term
        kept += 1
    return kept


@part
def _nearest(parts: Floats, number: int) -> float:
    """The sum of parts that do not overlap, the least first, rounded to nearest even."""
    if number == 0:
        return 0.0
    total, error, left = parts[number - 1], 0.0, number - 1
    while left > 0 and error == 0.0:
        left -= 1
        before, total = total, total + parts[left]
        error = parts[left] - (total - before)
    if left > 0 and (error > 0.0) == (parts[left - 1] > 0.0):
        # Beyond half a unit by what is left: where the error is just half a unit, the tie went to the wrong side.
        beyond = total + 2.0 * error
        if beyond - total == 2.0 * error:
            return beyond
    return total
