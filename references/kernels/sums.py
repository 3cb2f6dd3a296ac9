"""Exact sums: all facts about the terms of each cell that the criterion needs.

Sums are exact for any float64 data, so no rounding of poolproof's own enters a verdict.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.kernels.compiled import Bytes, Floats, Ints, SmallInts, compiled, helper
from poolproof.references.kernels.numbers import NO_LATTICE, lowest_bit, power

POSITIVE_INFINITY, NEGATIVE_INFINITY, NAN = 1, 2, 4
"""Flags of terms that are not finite, and of admissible outputs outside an interval."""

BOTH_INFINITIES = POSITIVE_INFINITY | NEGATIVE_INFINITY

LIMIT = 2.0**960
"""Upper bound of sums of finite terms, so that float64 holds every bound on them."""


class ExactSums(NamedTuple):
    """Facts about the terms of each cell; arrays have shape (cells,).

    Attributes:
        k: Number of terms, of any value.
        sum: The finite terms' exact sum S, rounded to float64.
        residue: S - ``sum``, rounded likewise; zero only if ``sum`` is S.
        positive, negative: P = sum of max(g, 0) and N = sum of max(-g, 0) over finite terms, rounded up if need be.
        lattice: q of the largest 2**q that divides all finite non-zero terms, and therefore every sum of them in any
            order and precision; `NO_LATTICE` if there is none.
        kinds: `NAN`, `POSITIVE_INFINITY` and `NEGATIVE_INFINITY`, if there is such a term.
    """

    k: Ints
    sum: Floats
    residue: Floats
    positive: Floats
    negative: Floats
    lattice: SmallInts
    kinds: Bytes

    @property
    def exact(self) -> Floats:
        """The sums as float64; NaN or infinite if the terms require it."""
        if not self.kinds.any():
            return self.sum
        exact = np.where(self.kinds == POSITIVE_INFINITY, np.inf, self.sum)
        exact[self.kinds == NEGATIVE_INFINITY] = -np.inf
        exact[(self.kinds & NAN != 0) | (self.kinds == BOTH_INFINITIES)] = np.nan
        return exact


@helper
def empty_sums(cells: int) -> ExactSums:
    k, lattice, kinds = np.empty(cells, np.int64), np.empty(cells, np.int32), np.empty(cells, np.uint8)
    return ExactSums(k, np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), lattice, kinds)


class Cell(NamedTuple):
    """The `ExactSums` of one cell."""

    k: int
    sum: float
    residue: float
    positive: float
    negative: float
    lattice: int
    kinds: int


@helper
def cell_of(sums: ExactSums, i: int) -> Cell:
    totals = sums.sum[i], sums.residue[i], sums.positive[i], sums.negative[i]
    return Cell(sums.k[i], *totals, sums.lattice[i], sums.kinds[i])


@compiled
def sum_plane(cells: Ints, terms: Floats, sums: ExactSums) -> None:
    """Fill the facts of one plane; see `gather`."""
    gather(cells, terms, sums)


@helper
def gather(cells: Ints, terms: Floats, sums: ExactSums) -> None:
    """Fill the facts of a plane from ``terms`` and their ``cells``.

    A term with a negative cell is dropped. A cell beyond the plane raises IndexError; finite terms of a cell that reach
    `LIMIT` raise OverflowError.
    """
    _clear(sums)
    for i in range(cells.size):
        cell, term = cells[i], terms[i]
        if cell >= sums.k.size:
            raise IndexError("a cell is beyond its plane")
        if cell < 0:
            continue
        sums.k[cell] += 1
        if not math.isfinite(term):
            sums.kinds[cell] |= _special_kind(term)
        elif term != 0.0:
            sums.sum[cell] += term
            sums.positive[cell] += max(term, 0.0)
            sums.negative[cell] += max(-term, 0.0)
            sums.lattice[cell] = min(sums.lattice[cell], lowest_bit(term))
    if not _sums_are_exact(sums):
        _sum_exactly(cells, terms, sums)


@helper
def _clear(sums: ExactSums) -> None:
    sums.k[:] = 0
    sums.sum[:] = 0.0
    sums.residue[:] = 0.0
    sums.positive[:] = 0.0
    sums.negative[:] = 0.0
    sums.lattice[:] = NO_LATTICE
    sums.kinds[:] = 0


@helper
def _special_kind(term: float) -> int:
    if math.isnan(term):
        return NAN
    return POSITIVE_INFINITY if term > 0.0 else NEGATIVE_INFINITY


@helper
def _sums_are_exact(sums: ExactSums) -> bool:
    """Check whether all partial sums fit into float64's 53 bits: they are in [-N, P] and on the lattice.

    If P or N do not fit, turn them into upper bounds.
    """
    exact = True
    for cell in range(sums.k.size):
        if sums.k[cell] < 2:
            continue
        positive, negative = sums.positive[cell], sums.negative[cell]
        if positive >= LIMIT or negative >= LIMIT:
            raise OverflowError("gradients this close to float64's limit have no exact float64 sum")
        end = power(sums.lattice[cell] + 53)
        if positive >= end or negative >= end:
            exact = False
            slack = 1.0 + sums.k[cell] * 2.0**-50
            sums.positive[cell] = positive * slack if positive >= end else positive
            sums.negative[cell] = negative * slack if negative >= end else negative
    return exact


@helper
def _sum_exactly(cells: Ints, terms: Floats, sums: ExactSums) -> None:
    """Sum cells with possibly rounded sums again, exactly and with residues."""
    ends = np.zeros(sums.k.size, np.int64)
    total, most = 0, 0
    for cell in range(sums.k.size):
        if _is_too_wide(sums, cell):
            ends[cell] = total
            total += sums.k[cell]
            most = max(most, sums.k[cell])
    grouped = np.empty(total)
    for i in range(cells.size):
        cell = cells[i]
        if cell >= 0 and _is_too_wide(sums, cell) and math.isfinite(terms[i]):
            grouped[ends[cell]] = terms[i]
            ends[cell] += 1
    components = np.empty(most + 1)
    begin = 0
    for cell in range(sums.k.size):
        if _is_too_wide(sums, cell):
            sums.sum[cell], sums.residue[cell] = _exact_sum(grouped, begin, ends[cell], components)
            begin += sums.k[cell]


@helper
def _is_too_wide(sums: ExactSums, cell: int) -> bool:
    """Check whether the plain sum of a cell may have been rounded."""
    return sums.k[cell] > 1 and max(sums.positive[cell], sums.negative[cell]) >= power(sums.lattice[cell] + 53)


@helper
def _exact_sum(terms: Floats, begin: int, end: int, components: Floats) -> tuple[float, float]:
    """Return (S rounded to float64, the rest rounded) of terms ``begin`` up to ``end``; ``components`` is scratch."""
    number = 0
    for i in range(begin, end):
        number = _add(components, number, terms[i])
    total = _nearest(components, number)
    number = _add(components, number, -total)
    return total, _nearest(components, number)


@helper
def _add(components: Floats, number: int, term: float) -> int:
    """Add ``term`` to a sum of ``number`` non-overlapping components, smallest first; return their new number.

    Each addition yields its rounded result and its error, so nothing is lost (Shewchuk 1997).
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
    """Round the sum of non-overlapping components, smallest first, to nearest even."""
    if number == 0:
        return 0.0
    total, error, left = components[number - 1], 0.0, number - 1
    while left > 0 and error == 0.0:
        left -= 1
        before, total = total, total + components[left]
        error = components[left] - (total - before)
    if left > 0 and (error > 0.0) == (components[left - 1] > 0.0):
        # The rest may decide a tie: if the error is exactly half a unit, the tie went to the wrong side.
        beyond = total + 2.0 * error
        if beyond - total == 2.0 * error:
            return beyond
    return total
