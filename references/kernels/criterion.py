"""The interval criterion of one cell: which outputs a kernel may produce under its accumulation model.

`poolproof.references.specification` explains B1 to B8, and has the criterion in plain words. Tests compare both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.kernels.compiled import Bytes, Flags, Floats, SmallInts, argument, compiled, helper
from poolproof.references.kernels.numbers import NO_LATTICE, FormatNumbers, binade, power, rounded
from poolproof.references.kernels.sums import (
    BOTH_INFINITIES,
    NAN,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    Cell,
    ExactSums,
    cell_of,
)

ZERO = 8
"""Flag: zero is admissible in addition to the interval."""


class AccumulationParameters(NamedTuple):
    """The numbers of an accumulation model and its output format.

    Attributes:
        output: The output's format.
        accumulator: The narrowest format of a partial sum.
        narrows: Sums are rounded into the output's format once, at the end.
        tiles: Most partial sums of a sum; 0 for no limit.
        tile_roundoff: Unit roundoff of the additions within partial sums.
        flushes, cast_flushes, saturates: `AccumulationModel.flushes_subnormals`, ``cast_flushes`` and ``saturates``.
    """

    output: FormatNumbers
    accumulator: FormatNumbers
    narrows: bool
    tiles: int
    tile_roundoff: float
    flushes: bool
    cast_flushes: bool
    saturates: bool


class Admissible(NamedTuple):
    """The admissible outputs of each cell; all arrays have shape (cells,).

    Attributes:
        low, high: Bounds of finite outputs, which may be infinite. If low > high, no finite output is admissible.
        lattice: Outputs are multiples of 2**lattice.
        specials: Flags of further values: `NAN`, `POSITIVE_INFINITY`, `NEGATIVE_INFINITY`, `ZERO`.
        limit: Magnitude to which a saturating cast may clamp, exempt from the lattice; infinite for other casts.
    """

    low: Floats
    high: Floats
    lattice: SmallInts
    specials: Bytes
    limit: float

    @property
    def single_valued(self) -> Flags:
        """Cells with exactly one admissible value, if the sign of zero is ignored."""
        return np.where(self.low > self.high, self.specials == NAN, (self.low == self.high) & (self.specials == 0))

    def accepts(self, outputs: Floats) -> Flags:
        """Check which of ``outputs`` (float64, shape (cells,)) are admissible."""
        accepted = np.empty(outputs.size, np.bool_)
        accept_cells(self, argument(outputs, np.float64), accepted)
        return accepted


@compiled
def bound_cells(
    sums: ExactSums, parameters: AccumulationParameters, low: Floats, high: Floats, specials: Bytes
) -> None:
    """Fill the bounds and specials of `Admissible`."""
    for i in range(low.size):
        low[i], high[i], specials[i] = admissible(cell_of(sums, i), parameters)


@compiled
def accept_cells(bounds: Admissible, outputs: Floats, accepted: Flags) -> None:
    for i in range(outputs.size):
        low, high, specials = bounds.low[i], bounds.high[i], bounds.specials[i]
        accepted[i] = accepts(low, high, bounds.lattice[i], specials, bounds.limit, outputs[i])


@helper
def accepts(low: float, high: float, lattice: int, specials: int, limit: float, output: float) -> bool:
    """Check whether an output is within the interval and on the lattice (B8), or is one of the specials."""
    if math.isnan(output):
        return specials & NAN != 0
    if low <= output <= high and _is_on_lattice(output, lattice, limit):
        return True
    if output == 0.0:
        return specials & ZERO != 0
    if math.isinf(output):
        return specials & (POSITIVE_INFINITY if output > 0.0 else NEGATIVE_INFINITY) != 0
    return False


@helper
def _is_on_lattice(output: float, lattice: int, limit: float) -> bool:
    if lattice == NO_LATTICE or math.isinf(output) or abs(output) == limit:
        return True
    steps = np.ldexp(output, -lattice)
    return steps == np.rint(steps)


@helper
def is_single_valued(low: float, high: float, specials: int) -> bool:
    if low > high:
        return specials == NAN
    return low == high and specials == 0


@helper
def limit_of(parameters: AccumulationParameters) -> float:
    """Return the magnitude to which a saturating cast may clamp; infinite for other casts."""
    return parameters.output.max if parameters.saturates else math.inf


@helper
def admissible(cell: Cell, parameters: AccumulationParameters) -> tuple[float, float, int]:
    """Return (low, high, specials); NaN and infinite terms decide before any arithmetic."""
    if cell.k == 0:
        return 0.0, 0.0, ZERO if parameters.cast_flushes else 0
    error, threshold = summation_error(cell, parameters), parameters.accumulator.overflow_threshold
    up, down = cell.positive + error >= threshold, cell.negative + error >= threshold
    if cell.kinds:
        return _of_special_terms(cell.kinds, up, down)
    low, high = _interval(cell, error, parameters)
    specials = (POSITIVE_INFINITY if up else 0) | (NEGATIVE_INFINITY if down else 0) | (NAN if up and down else 0)
    if parameters.saturates:
        largest = parameters.output.max
        low = min(max(-largest if down else low, -largest), largest)
        high = min(max(largest if up else high, -largest), largest)
        specials &= NAN
    if parameters.cast_flushes and min(abs(low), abs(high)) < parameters.output.smallest_normal:
        specials |= ZERO
    return low, high, specials


@helper
def _of_special_terms(kinds: int, up: bool, down: bool) -> tuple[float, float, int]:
    """Return the bounds of a sum with NaN or infinite terms.

    NaN, or infinities of both signs, give NaN. Infinities of one sign give that infinity. They also give NaN if the
    finite terms could have overflowed to the other one first.
    """
    if kinds & NAN or kinds == BOTH_INFINITIES:
        return math.inf, -math.inf, NAN
    if kinds == POSITIVE_INFINITY:
        return math.inf, math.inf, NAN if down else 0
    return -math.inf, -math.inf, NAN if up else 0


@helper
def _interval(cell: Cell, error: float, parameters: AccumulationParameters) -> tuple[float, float]:
    """Bound the result of finite terms: one value if S is rounded once in every order and model (B7)."""
    total, residue = cell.sum, cell.residue
    if _is_rounded_once(cell.k, cell.lattice, parameters):
        only = rounded(total, residue, parameters.output)
        return only, only
    low = high = total
    if error > 0.0 or residue != 0.0:
        slack = (error + abs(residue)) * (1.0 + 2.0**-50)
        low, high = np.nextafter(total - slack, -math.inf), np.nextafter(total + slack, math.inf)
    if parameters.narrows:
        return rounded(low, 0.0, parameters.output), rounded(high, 0.0, parameters.output)
    return low, high


@helper
def _is_rounded_once(k: int, lattice: int, parameters: AccumulationParameters) -> bool:
    """Check for at most two terms, and that neither they nor their sum may be flushed."""
    if parameters.flushes:
        return k == 0 or (k <= 2 and lattice >= parameters.accumulator.min_exponent)
    return k <= 2


@helper
def summation_error(cell: Cell, parameters: AccumulationParameters) -> float:
    """Bound |result before narrowing - S| for any order of additions: B1, B4, B5 and B6."""
    k, error = cell.k, 0.0
    if k > 1:
        magnitude = max(cell.positive, cell.negative)
        if magnitude > power(min(cell.lattice, 960) + parameters.accumulator.precision):
            total = cell.positive + cell.negative
            error = _subset_sum_bound(magnitude, total, _growth(k, parameters))
    if parameters.flushes and k > 0:
        error += (2 * k - 1) * parameters.accumulator.smallest_normal
    return error


@helper
def _growth(k: int, parameters: AccumulationParameters) -> float:
    """Return (roundings) * (unit roundoff) of k - 1 additions."""
    roundoff = parameters.accumulator.unit_roundoff
    if parameters.tiles == 0:
        return (k - 1) * roundoff
    tiles = min(k, parameters.tiles)
    return (k - tiles) * parameters.tile_roundoff + (2 * tiles - 1) * roundoff


@helper
def _subset_sum_bound(magnitude: float, total: float, growth: float) -> float:
    """Return the smaller of B1 and B5 for an error growth; B1 if B5 does not close."""
    largest = binade(magnitude + growth * binade(magnitude))
    subset, simple = growth * largest, growth * total
    return min(subset, simple) if magnitude + subset < 2.0 * largest else simple
