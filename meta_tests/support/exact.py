"""The criterion once more, one cell at a time in rational arithmetic: slow, and checkable by eye."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, FloatFormat

INFINITY = math.inf


def round_to_nearest_even(x: Fraction, fmt: FloatFormat) -> float:
    """``x`` in the format, ties to even, infinite beyond it."""
    if x == 0:
        return 0.0
    exponent = max(floor_log2(abs(x)), fmt.min_exponent)
    ulp = Fraction(2) ** (exponent - fmt.precision + 1)
    result = round(x / ulp) * ulp
    if abs(result) > Fraction(fmt.max):
        return math.copysign(INFINITY, x)
    return float(result)


def floor_log2(x: Fraction) -> int:
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= x else exponent - 1


def lattice_exponent(terms: list[Fraction]) -> int | None:
    """Exponent of the largest power of two that divides all non-zero terms."""
    exponents = []
    for term in filter(None, terms):
        exponents.append((term.numerator & -term.numerator).bit_length() - term.denominator.bit_length())
    return min(exponents, default=None)


def error_bound(terms: list[Fraction], fmt: FloatFormat, model: AccumulationModel) -> Fraction:
    """The bound on the error of any order of additions, before narrowing."""
    k = len(terms)
    accumulator = model.accumulator(fmt)
    positive = sum((term for term in terms if term > 0), Fraction(0))
    negative = sum((-term for term in terms if term < 0), Fraction(0))
    magnitude = max(positive, negative)
    growth = max(k - 1, 0) * Fraction(2) ** -accumulator.precision
    if model.kind == "mixed" and fmt.precision <= FLOAT32.precision:
        tiles = min(max(k, 1), model.tiles)
        growth = (k - tiles) * Fraction(2) ** -24 + (2 * tiles - 1) * Fraction(2) ** -fmt.precision
    lattice = lattice_exponent(terms)
    if k <= 1 or lattice is None or magnitude <= Fraction(2) ** (lattice + accumulator.precision):
        bound = Fraction(0)
    else:
        simple = growth * (positive + negative)
        binade = Fraction(2) ** floor_log2(magnitude)
        binade = Fraction(2) ** floor_log2(magnitude + growth * binade)
        subset = growth * binade
        bound = min(subset, simple) if magnitude + subset < 2 * binade else simple
    if model.flushes_subnormals and k:
        bound += (2 * k - 1) * Fraction(2) ** accumulator.min_exponent
    return bound


def interval(
    terms: list[Fraction], fmt: FloatFormat, model: AccumulationModel
) -> tuple[Fraction | float, Fraction | float]:
    """[low, high] of the finite results; a bound may be infinite."""
    total, bound = sum(terms, Fraction(0)), error_bound(terms, fmt, model)
    low: Fraction | float = total - bound
    high: Fraction | float = total + bound
    lattice = lattice_exponent(terms)
    no_flush = not model.flushes_subnormals or lattice is None or lattice >= model.accumulator(fmt).min_exponent
    if len(terms) <= 2 and no_flush:
        return (round_to_nearest_even(total, fmt),) * 2
    if model.kind == "acc32" and fmt.precision < FLOAT32.precision:
        return round_to_nearest_even(Fraction(low), fmt), round_to_nearest_even(Fraction(high), fmt)
    return low, high


def overflows(terms: list[Fraction], fmt: FloatFormat, model: AccumulationModel) -> tuple[bool, bool]:
    """Whether some order may reach +inf, -inf."""
    bound = error_bound(terms, fmt, model)
    threshold = model.accumulator(fmt).overflow_threshold
    positive = sum((term for term in terms if term > 0), Fraction(0))
    negative = sum((-term for term in terms if term < 0), Fraction(0))
    return positive + bound >= threshold, negative + bound >= threshold


def reachable(terms: list[Fraction], accumulator: FloatFormat) -> set[float]:
    """Every result that some sequential order of finite additions in ``accumulator`` can give."""
    results = set()
    for order in set(permutations(terms)):
        total: Fraction | float = Fraction(0)
        for term in order:
            if isinstance(total, float):
                break
            rounded = round_to_nearest_even(total + term, accumulator)
            total = Fraction(rounded) if math.isfinite(rounded) else rounded
        if isinstance(total, Fraction):
            results.add(float(total))
    return results
