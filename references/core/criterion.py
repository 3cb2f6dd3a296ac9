"""The verdict on one cell: which outputs a kernel that obeys its accumulation model may produce.

The exact sum, how many terms met and on which lattice they lie leave an interval of admissible outputs, most often a
single value. A correct kernel is never outside, whatever its order of additions; a tolerance is never chosen. The
bounds cited as B1 ... B8 are these.

B1  any order of k terms, rounding to nearest: |error| <= (k - 1) u A, with A = sum |g|  (Jeannerod and Rump 2013)
B4  an addition with a subnormal result is exact, so gradual underflow adds nothing  (Hauser 1996)
B5  every partial sum is a subset sum, hence within [-N, P], plus the error so far. With M = max(P, N) and the
    smallest L such that M + (k - 1) u 2**L < 2**(L + 1), each of the k - 1 roundings is at most u 2**L:
    |error| <= (k - 1) u 2**L
B6  M <= 2**(q + p) with all terms multiples of 2**q: every partial sum is representable, the error is zero
B7  two terms: rounding to float32 first and to float16 or bfloat16 then equals rounding once  (Figueroa 1995)
B8  every result is a multiple of 2**q
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.core.compiled import Bytes, Flags, Floats, SmallInts, compiled, part
from poolproof.references.core.facts import (
    BOTH_INFINITIES,
    NAN,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    Cell,
    Facts,
    cell_of,
)
from poolproof.references.core.numbers import NO_LATTICE, binade, power, rounded

ZERO = 8
"""Zero is admissible besides an interval."""


class Rules(NamedTuple):
    """An accumulation model that puts out a format, in numbers.

    precision, min_exponent, largest, smallest_normal
        The output's format.
    sum_precision, sum_min_exponent, sum_smallest_normal, overflow_threshold, roundoff
        The narrowest format that a partial sum passes through, with its least magnitude that rounds to infinity and
        its unit roundoff.
    narrows
        Sums are rounded into the output's format at the end, once.
    tiles, tile_roundoff
        Sums are made of at most so many partial sums, zero for no limit, which were added with that unit roundoff.
    flushes, cast_flushes, saturates
        `AccumulationModel.flushes_subnormals`, ``cast_flushes`` and ``saturates``.
    """

    precision: int
    min_exponent: int
    largest: float
    smallest_normal: float
    sum_precision: int
    sum_min_exponent: int
    sum_smallest_normal: float
    overflow_threshold: float
    roundoff: float
    narrows: bool
    tiles: int
    tile_roundoff: float
    flushes: bool
    cast_flushes: bool
    saturates: bool


class Bounds(NamedTuple):
    """The admissible outputs of each cell, all of shape (cells,): see `poolproof.references.criterion.Admissible`.

    ``others`` are the values besides the interval: `NAN`, `POSITIVE_INFINITY`, `NEGATIVE_INFINITY`, `ZERO`.
    """

    low: Floats
    high: Floats
    lattice: SmallInts
    others: Bytes


def empty_bounds(cells: int) -> Bounds:
    """Memory for the bounds of that many cells."""
    return Bounds(np.empty(cells), np.empty(cells), np.empty(cells, np.int32), np.empty(cells, np.uint8))


@compiled
def bounds_of_cells(facts: Facts, rules: Rules, bounds: Bounds) -> None:
    """Fill the bounds of all cells."""
    fill_bounds(facts, rules, bounds)


@part
def fill_bounds(facts: Facts, rules: Rules, bounds: Bounds) -> None:
    for i in range(facts.k.size):
        bounds.low[i], bounds.high[i], bounds.others[i] = admissible(cell_of(facts, i), rules)
        bounds.lattice[i] = facts.lattice[i]


@compiled
def accepted_cells(bounds: Bounds, limit: float, outputs: Floats, accepted: Flags) -> None:
    """Say of each output whether it is admissible."""
    for cell in range(outputs.size):
        low, high, others = bounds.low[cell], bounds.high[cell], bounds.others[cell]
        accepted[cell] = accepts(low, high, bounds.lattice[cell], others, limit, outputs[cell])


@compiled
def cells_owed_bits(bounds: Bounds, owed: Flags) -> None:
    """Say of each cell whether one value alone is admissible (a zero's sign apart)."""
    for cell in range(owed.size):
        owed[cell] = owes_bits(bounds.low[cell], bounds.high[cell], bounds.others[cell])


@part
def accepts(low: float, high: float, lattice: int, others: int, limit: float, output: float) -> bool:
    """Whether an output lies within the interval and on the lattice (B8), or is one of the others."""
    if math.isnan(output):
        return others & NAN != 0
    if low <= output <= high and _is_on_lattice(output, lattice, limit):
        return True
    if output == 0.0:
        return others & ZERO != 0
    if math.isinf(output):
        return others & (POSITIVE_INFINITY if output > 0.0 else NEGATIVE_INFINITY) != 0
    return False


@part
def _is_on_lattice(output: float, lattice: int, limit: float) -> bool:
    if lattice == NO_LATTICE or math.isinf(output) or abs(output) == limit:
        return True
    steps = np.ldexp(output, -lattice)
    return steps == np.rint(steps)


@part
def owes_bits(low: float, high: float, others: int) -> bool:
    """Whether one value alone is admissible."""
    if low > high:
        return others == NAN
    return low == high and others == 0


@part
def limit_of(rules: Rules) -> float:
    """The magnitude to which a saturating cast may clamp, exempt from the lattice; infinite where there is none."""
    return rules.largest if rules.saturates else math.inf


@part
def admissible(cell: Cell, rules: Rules) -> tuple[float, float, int]:
    """(low, high, others): what may be written, by which NaN and infinite terms decide before any arithmetic does."""
    if cell.k == 0:
        return 0.0, 0.0, ZERO if rules.cast_flushes else 0
    error = summation_error(cell, rules)
    up = cell.positive + error >= rules.overflow_threshold
    down = cell.negative + error >= rules.overflow_threshold
    if cell.kinds:
        return _of_special_terms(cell.kinds, up, down)
    low, high = _interval(cell, error, rules)
    others = (POSITIVE_INFINITY if up else 0) | (NEGATIVE_INFINITY if down else 0) | (NAN if up and down else 0)
    if rules.saturates:
        low = min(max(-rules.largest if down else low, -rules.largest), rules.largest)
        high = min(max(rules.largest if up else high, -rules.largest), rules.largest)
        others &= NAN
    if rules.cast_flushes and min(abs(low), abs(high)) < rules.smallest_normal:
        others |= ZERO
    return low, high, others


@part
def _of_special_terms(kinds: int, up: bool, down: bool) -> tuple[float, float, int]:
    """A NaN, or infinities of both signs, give NaN.

    Infinities of one sign give that infinity, or NaN where the finite terms could have overflowed to the other one
    first.
    """
    if kinds & NAN or kinds == BOTH_INFINITIES:
        return math.inf, -math.inf, NAN
    if kinds == POSITIVE_INFINITY:
        return math.inf, math.inf, NAN if down else 0
    return -math.inf, -math.inf, NAN if up else 0


@part
def _interval(cell: Cell, error: float, rules: Rules) -> tuple[float, float]:
    """Least and greatest result of finite terms: one value where S is rounded once in every order and model (B7)."""
    total, residue = cell.sum, cell.residue
    if _is_rounded_once(cell.k, cell.lattice, rules):
        only = rounded(total, residue, rules.precision, rules.min_exponent, rules.largest)
        return only, only
    low = high = total
    if error > 0.0 or residue != 0.0:
        slack = (error + abs(residue)) * (1.0 + 2.0**-50)
        low, high = np.nextafter(total - slack, -math.inf), np.nextafter(total + slack, math.inf)
    if rules.narrows:
        low = rounded(low, 0.0, rules.precision, rules.min_exponent, rules.largest)
        high = rounded(high, 0.0, rules.precision, rules.min_exponent, rules.largest)
    return low, high


@part
def _is_rounded_once(k: int, lattice: int, rules: Rules) -> bool:
    """At most two terms, none of which, nor their sum, may be flushed."""
    if rules.flushes:
        return k == 0 or (k <= 2 and lattice >= rules.sum_min_exponent)
    return k <= 2


@part
def summation_error(cell: Cell, rules: Rules) -> float:
    """Bound on |result before narrowing - S| of any order of additions: B1, B4, B5 and B6."""
    k, error = cell.k, 0.0
    if k > 1:
        magnitude = max(cell.positive, cell.negative)
        if magnitude > power(min(cell.lattice, 960) + rules.sum_precision):
            total = cell.positive + cell.negative
            error = _subset_sum_bound(magnitude, total, _growth(k, rules))
    if rules.flushes and k > 0:
        error += (2 * k - 1) * rules.sum_smallest_normal
    return error


@part
def _growth(k: int, rules: Rules) -> float:
    """(roundings) * (unit roundoff) of k - 1 additions."""
    if rules.tiles == 0:
        return (k - 1) * rules.roundoff
    tiles = min(k, rules.tiles)
    return (k - tiles) * rules.tile_roundoff + (2 * tiles - 1) * rules.roundoff


@part
def _subset_sum_bound(magnitude: float, total: float, growth: float) -> float:
    """The lesser of B1 and B5 for an error growth, B1 where B5 does not close."""
    largest = binade(magnitude + growth * binade(magnitude))
    subset, simple = growth * largest, growth * total
    return min(subset, simple) if magnitude + subset < 2.0 * largest else simple
