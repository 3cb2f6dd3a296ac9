"""The specification: windows, maxima, sums and admissible results, in plain loops and fractions.

It is short enough to be checked by eye, and slow. Tests compare all fast code with it (``meta_tests/references``). A
plane is a flat list in row-major order, and an index is a place in it. A correct kernel is always inside the admissible
results, whatever its order of additions. No tolerance is chosen. The results rest on the bounds below, for the k terms
g of a cell. S is their sum, P = sum of max(g, 0), N = sum of max(-g, 0). Partial sums are rounded to nearest, to p
bits, and u = 2**-p.

    B1  any order of k terms: |error| <= (k - 1) u (P + N)  (Jeannerod and Rump 2013)
    B4  an addition with a subnormal result is exact, so gradual underflow adds nothing  (Hauser 1996)
    B5  every partial sum is a subset sum, hence within [-N, P], plus the error so far. With M = max(P, N) and the
        smallest L such that M + (k - 1) u 2**L < 2**(L + 1), each of the k - 1 roundings is at most u 2**L:
        |error| <= (k - 1) u 2**L
    B6  M <= 2**(q + p) with all terms multiples of 2**q: every partial sum is representable, the error is zero
    B7  two terms: rounding to float32 first and to float16 or bfloat16 then equals rounding once  (Figueroa 1995)
    B8  every result is a multiple of 2**q
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import copysign, inf, isfinite, isinf, isnan
from typing import NamedTuple

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, FloatFormat

Windows = list[list[int]]
"""The cells that each window visits, in order."""


def windowed(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Windows:
    """List the windows along one axis: tap j of window o lies at o * stride - padding + j * dilation.

    There are as many as fit into the padded axis. With ceil_mode there is one more, unless it would begin behind the
    input.
    """
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    windows = (-(-span // stride) if ceil_mode else span // stride) + 1
    if ceil_mode and (windows - 1) * stride - padding >= size:
        windows -= 1
    starts = [o * stride - padding for o in range(windows)]
    return [[start + j * dilation for j in range(kernel) if 0 <= start + j * dilation < size] for start in starts]


def adaptive(size: int, windows: int) -> Windows:
    """List the windows along one axis: floor(o size / windows) to ceil((o + 1) size / windows), end excluded."""
    return [list(range(o * size // windows, -(-(o + 1) * size // windows))) for o in range(windows)]


def windows_of_plane(axes: Sequence[tuple[int, Windows]]) -> Windows:
    """List the windows of a plane from the size of each axis and the windows along it."""
    plane: Windows = [[0]]
    for size, along in axes:
        plane = [[cell * size + place for cell in window for place in places] for window in plane for places in along]
    return plane


def forward(plane: Sequence[float], window: Sequence[int]) -> tuple[float, int]:
    """Return maximum and index of a window: a greater value, or NaN, replaces the running maximum.

    The running maximum begins with -inf at the first cell. A window without a cell has the index -1.
    """
    maximum, index = -inf, window[0] if window else -1
    for cell in window:
        if plane[cell] > maximum or isnan(plane[cell]):
            maximum, index = plane[cell], cell
    return maximum, index


def backward(gradients: Sequence[float], indices: Sequence[int], size: int) -> list[list[float]]:
    """List the terms of each cell of a plane: the gradients with its index."""
    terms: list[list[float]] = [[] for _ in range(size)]
    for gradient, index in zip(gradients, indices, strict=True):
        terms[index].append(gradient)
    return terms


class Sum(NamedTuple):
    """Exact facts about the finite ones of ``k`` terms; ``lattice`` is q of B6 and B8, None if all are zero."""

    k: int
    exact: Fraction
    positive: Fraction
    negative: Fraction
    lattice: int | None


def summed(terms: Sequence[float]) -> Sum:
    exact = [Fraction(term) for term in terms if isfinite(term)]
    positive = sum((term for term in exact if term > 0), Fraction(0))
    negative = sum((-term for term in exact if term < 0), Fraction(0))
    bits = [(g.numerator & -g.numerator).bit_length() - g.denominator.bit_length() for g in exact if g != 0]
    return Sum(len(terms), positive - negative, positive, negative, min(bits, default=None))


def floor_log2(x: Fraction) -> int:
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= x else exponent - 1


def rounded(x: Fraction | float, fmt: FloatFormat) -> float:
    """Round to nearest, ties to even; return infinity beyond the format's greatest number."""
    x = Fraction(x)
    if x == 0:
        return 0.0
    ulp = Fraction(2) ** (max(floor_log2(abs(x)), fmt.min_exponent) - fmt.precision + 1)
    nearest = round(x / ulp) * ulp
    return copysign(inf, x) if abs(nearest) > Fraction(fmt.max) else float(nearest)


def error_bound(facts: Sum, fmt: FloatFormat, model: AccumulationModel) -> Fraction:
    """Bound the error before narrowing, for any order of additions (B1, B4, B5 and B6)."""
    k, magnitude, accumulator = facts.k, max(facts.positive, facts.negative), model.accumulator(fmt)
    growth = max(k - 1, 0) * Fraction(2) ** -accumulator.precision
    if model.kind == "mixed" and fmt.precision <= FLOAT32.precision:
        tiles = min(max(k, 1), model.tiles)
        growth = (k - tiles) * Fraction(2) ** -FLOAT32.precision + (2 * tiles - 1) * Fraction(2) ** -fmt.precision
    bound = Fraction(0)
    if k > 1 and facts.lattice is not None and magnitude > Fraction(2) ** (facts.lattice + accumulator.precision):
        binade = Fraction(2) ** floor_log2(magnitude)
        binade = Fraction(2) ** floor_log2(magnitude + growth * binade)
        simple, subset = growth * (facts.positive + facts.negative), growth * binade
        bound = min(subset, simple) if magnitude + subset < 2 * binade else simple
    if model.flushes_subnormals:
        bound += max(2 * k - 1, 0) * Fraction(2) ** accumulator.min_exponent
    return bound


class AdmissibleResults(NamedTuple):
    """What a kernel may write into one cell: numbers of [low, high], including infinite bounds, and ``others``.

    Attributes:
        others: Further results, of "nan", "inf", "-inf" and "0".
        step: Numbers must be multiples of it; None allows any.
        limit: This magnitude need not be a multiple: a saturating cast clamps to it.
    """

    low: Fraction | float
    high: Fraction | float
    others: frozenset[str] = frozenset()
    step: Fraction | None = None
    limit: float = inf

    def accepts(self, output: float) -> bool:
        if ("0" if output == 0 else str(output)) in self.others:
            return True
        if not self.low <= output <= self.high:
            return False
        is_exempt = isinf(output) or abs(output) == self.limit
        return is_exempt or self.step is None or Fraction(output) % self.step == 0


def interval(facts: Sum, fmt: FloatFormat, model: AccumulationModel) -> tuple[Fraction | float, Fraction | float]:
    """Bound the result of finite terms: one value where S is rounded once in every order and model (B7)."""
    accumulator = model.accumulator(fmt)
    is_flushed = model.flushes_subnormals and facts.lattice is not None and facts.lattice < accumulator.min_exponent
    if facts.k <= 2 and not is_flushed:
        return rounded(facts.exact, fmt), rounded(facts.exact, fmt)
    bound = error_bound(facts, fmt, model)
    low, high = facts.exact - bound, facts.exact + bound
    return (low, high) if accumulator is fmt else (rounded(low, fmt), rounded(high, fmt))


def clamped(x: Fraction | float, limit: float) -> Fraction | float:
    return limit if x > limit else -limit if x < -limit else x


def admissible(terms: Sequence[float], fmt: FloatFormat, model: AccumulationModel) -> AdmissibleResults:
    """Derive what a kernel of ``model`` may write into a cell of format ``fmt`` with these terms.

    NaN and infinite terms decide before any arithmetic. A finite part that can overflow to the other infinity first
    leaves NaN.
    """
    if not terms:
        return AdmissibleResults(0, 0)
    facts = summed(terms)
    error, threshold = error_bound(facts, fmt, model), model.accumulator(fmt).overflow_threshold
    up, down = facts.positive + error >= threshold, facts.negative + error >= threshold
    infinities = {term for term in terms if isinf(term)}
    if any(map(isnan, terms)) or len(infinities) == 2:
        return AdmissibleResults(inf, -inf, frozenset({"nan"}))
    if infinities:
        only = infinities.pop()
        return AdmissibleResults(only, only, frozenset({"nan"} if (down if only > 0 else up) else ()))
    low, high = interval(facts, fmt, model)
    others = {name for name, reached in (("inf", up), ("-inf", down), ("nan", up and down)) if reached}
    if model.saturates:
        low, high = clamped(-inf if down else low, fmt.max), clamped(inf if up else high, fmt.max)
        others -= {"inf", "-inf"}
    least = fmt.smallest_normal
    if model.cast_flushes and (-least < low < least or -least < high < least):
        others.add("0")
    step = None if facts.lattice is None else Fraction(2) ** facts.lattice  # B8
    return AdmissibleResults(low, high, frozenset(others), step, fmt.max if model.saturates else inf)
