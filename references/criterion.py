"""The verdict on values: which outputs a kernel that obeys its accumulation model may produce.

For every cell the exact sum, how many terms met there and on which lattice they lie leave an interval of
admissible outputs, most often a single value. A correct kernel is never outside, whatever its order of
additions; a tolerance is never chosen. The bounds cited as B1 ... B8 are these.

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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, Float64, FloatFormat
from poolproof.references.oracle import NO_LATTICE, ExactSums

Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Admissible:
    """The admissible outputs of each cell; all arrays have shape (cells,).

    Finite outputs lie in [``low``, ``high``] (nothing finite where low > high) and are multiples of
    2**``lattice``. ``low`` and ``high`` may themselves be infinite. ``positive_infinity``,
    ``negative_infinity``, ``nan`` and ``zero`` admit those values besides; ``limit`` is the magnitude to which a
    saturating cast may clamp, exempt from the lattice (inf where there is none).
    """

    low: Float64
    high: Float64
    lattice: NDArray[np.int32]
    positive_infinity: Bool
    negative_infinity: Bool
    nan: Bool
    zero: Bool
    limit: float

    @property
    def demands_bits(self) -> Bool:
        """Where exactly one value is admissible (a zero's sign apart)."""
        others = self.positive_infinity | self.negative_infinity | self.zero
        single = (self.low == self.high) & ~others & ~self.nan
        return single | ((self.low > self.high) & self.nan & ~others)

    def accepts(self, outputs: Float64) -> Bool:
        """Which of ``outputs`` (float64 values of the kernel's results, shape (cells,)) are admissible."""
        inside = (self.low <= outputs) & (outputs <= self.high)
        inside &= self.on_lattice(outputs)
        inside |= self.positive_infinity & (outputs == np.inf)
        inside |= self.negative_infinity & (outputs == -np.inf)
        inside |= self.nan & np.isnan(outputs)
        inside |= self.zero & (outputs == 0.0)
        return inside

    def on_lattice(self, outputs: Float64) -> Bool:
        """Which of ``outputs`` every order of additions could reach at all: multiples of 2**lattice, or exempt."""
        free = (self.lattice == NO_LATTICE) | ~np.isfinite(outputs) | (np.abs(outputs) == self.limit)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.ldexp(outputs, np.where(free, 0, -self.lattice))
        return free | (steps == np.rint(steps))


def admissible(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Admissible:
    """What a kernel of that model may write, given the exact sums, into tensors of format ``output``."""
    accumulator = model.accumulator(output)
    error = _summation_error(sums, output, model)
    low, high = _outward(sums, error)
    if model.kind == "acc32" and output.precision < FLOAT32.precision:
        low, high = output.round(low), output.round(high)
    settled = _needs_no_tolerance(sums, output, model)
    rounded = output.round(sums.sum, sums.residue)
    low, high = np.where(settled, rounded, low), np.where(settled, rounded, high)

    up = sums.positive + error >= accumulator.overflow_threshold
    down = sums.negative + error >= accumulator.overflow_threshold
    finite = Admissible(
        low=low,
        high=high,
        lattice=sums.lattice,
        positive_infinity=up,
        negative_infinity=down,
        nan=up & down,
        zero=np.zeros_like(up),
        limit=np.inf,
    )
    if model.saturates:
        finite = _saturated(finite, output.max)
    if model.cast_flushes:
        vanishes = np.minimum(np.abs(finite.low), np.abs(finite.high)) < output.smallest_normal
        finite = replace(finite, zero=vanishes)
    return _with_special_terms(finite, sums, up, down)


def _saturated(finite: Admissible, limit: float) -> Admissible:
    """Clamp to +-``limit`` whatever could have been an infinity."""
    never = np.zeros_like(finite.zero)
    return replace(
        finite,
        low=np.clip(np.where(finite.negative_infinity, -limit, finite.low), -limit, limit),
        high=np.clip(np.where(finite.positive_infinity, limit, finite.high), -limit, limit),
        positive_infinity=never,
        negative_infinity=never,
        limit=limit,
    )


def _summation_error(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Float64:
    """Bound on |result before narrowing - S| of any order of additions: B1, B5 and B6."""
    accumulator = model.accumulator(output)
    additions = np.maximum(sums.count - 1, 0)
    growth = additions * accumulator.unit_roundoff
    if model.kind == "mixed" and output.precision <= FLOAT32.precision:
        tiles = np.clip(sums.count, 1, model.tiles)
        growth = (additions - (tiles - 1)) * FLOAT32.unit_roundoff + (2 * tiles - 1) * output.unit_roundoff
    magnitude = np.maximum(sums.positive, sums.negative)
    error = _subset_sum_bound(magnitude, sums.positive + sums.negative, growth)
    exact = magnitude <= np.ldexp(1.0, np.minimum(sums.lattice, 960) + accumulator.precision)
    error = np.where(exact | (sums.count <= 1), 0.0, error)
    if model.flushes_subnormals:
        error = error + np.where(sums.count > 0, 2 * sums.count - 1, 0) * accumulator.smallest_normal
    return error


def _subset_sum_bound(magnitude: Float64, total: Float64, growth: Float64) -> Float64:
    """min(B1, B5) for error growth ``growth`` = (roundings) * (unit roundoff), B1 where B5 does not close."""
    binade = _binade(magnitude + growth * _binade(magnitude))
    subset = growth * binade
    simple = growth * total
    return np.where(magnitude + subset < 2.0 * binade, np.minimum(subset, simple), simple)


def _binade(x: Float64) -> Float64:
    """2**floor(log2 x), zero for zero."""
    _, exponent = np.frexp(x)
    return np.where(x > 0.0, np.ldexp(1.0, exponent - 1), 0.0)


def _outward(sums: ExactSums, error: Float64) -> tuple[Float64, Float64]:
    """S - error and S + error as float64, rounded outward wherever anything was rounded at all."""
    inexact = (error > 0.0) | (sums.residue != 0.0)
    slack = (error + np.abs(sums.residue)) * (1.0 + 2.0**-50)
    low = np.where(inexact, np.nextafter(sums.sum - slack, -np.inf), sums.sum)
    high = np.where(inexact, np.nextafter(sums.sum + slack, np.inf), sums.sum)
    return low, high


def _needs_no_tolerance(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Bool:
    """Cells whose result is the exact sum rounded once, in every order and model: at most two terms (B7)."""
    few = sums.count <= 2
    if not model.flushes_subnormals:
        return few
    return (sums.count == 0) | (few & (sums.lattice >= model.accumulator(output).min_exponent))


def _with_special_terms(finite: Admissible, sums: ExactSums, up: Bool, down: Bool) -> Admissible:
    """NaN and infinite terms decide a cell before any arithmetic does.

    A NaN, or infinities of both signs, give NaN. Infinities of one sign give that infinity, or NaN where the
    finite terms could have overflowed to the other one first.
    """
    undefined = sums.nan | (sums.positive_infinity & sums.negative_infinity)
    plus = sums.positive_infinity & ~undefined
    minus = sums.negative_infinity & ~undefined
    special = undefined | plus | minus
    if not special.any():
        return finite
    low = np.where(undefined | plus, np.inf, np.where(minus, -np.inf, finite.low))
    high = np.where(undefined | minus, -np.inf, np.where(plus, np.inf, finite.high))
    return replace(
        finite,
        low=low,
        high=high,
        positive_infinity=finite.positive_infinity & ~special,
        negative_infinity=finite.negative_infinity & ~special,
        nan=undefined | (plus & down) | (minus & up) | (finite.nan & ~special),
        zero=finite.zero & ~special,
    )
