"""Arithmetic of single numbers: powers of two, units in the last place, rounding into a format."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolproof.references.kernels.compiled import helper

NO_LATTICE = np.iinfo(np.int32).max // 2
"""The lattice exponent of a sum of zeros, or without a finite term."""


class FormatNumbers(NamedTuple):
    """The numbers of a `poolproof.references.formats.FloatFormat`."""

    precision: int
    min_exponent: int
    max: float
    smallest_normal: float
    overflow_threshold: float
    unit_roundoff: float


_FRACTION_BITS, _BIAS = 52, 1023
_EXPONENTS, _FRACTIONS = 0x7FF, (1 << 52) - 1
_LEAST, _LEAST_NORMAL, _GREATEST = -1074, -1022, 1023


@helper
def _bits(x: float) -> int:
    return int(np.float64(x).view(np.int64))


@helper
def _number(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))


@helper
def power(exponent: int) -> float:
    """Return 2**exponent; zero or infinite outside float64's range."""
    if exponent > _GREATEST:
        return math.inf
    if exponent >= _LEAST_NORMAL:
        return _number((int(exponent) + _BIAS) << _FRACTION_BITS)
    return _number(1 << (int(exponent) - _LEAST)) if exponent >= _LEAST else 0.0


@helper
def exponent_of(x: float) -> int:
    """Return floor(log2 |x|) of a finite, non-zero number."""
    stored = (_bits(x) >> _FRACTION_BITS) & _EXPONENTS
    return stored - _BIAS if stored else math.frexp(x)[1] - 1


@helper
def lowest_bit(x: float) -> int:
    """Return the exponent of the lowest set bit of a finite, non-zero number (1.5 -> -1, 8 -> 3)."""
    bits = _bits(x)
    stored, fraction = (bits >> _FRACTION_BITS) & _EXPONENTS, bits & _FRACTIONS
    if fraction == 0:
        return stored - _BIAS
    lowest = exponent_of(float(fraction & -fraction))
    return lowest + _LEAST + max(stored - 1, 0)


@helper
def binade(x: float) -> float:
    """Return 2**floor(log2 x) of a finite x >= 0, zero for zero."""
    return power(exponent_of(x)) if x > 0.0 else 0.0


@helper
def ulp(x: float, fmt: FormatNumbers) -> float:
    """Return the distance between neighbours of the format in the binade of a finite x."""
    exponent = fmt.min_exponent if x == 0.0 else max(exponent_of(x), fmt.min_exponent)
    return power(exponent - (fmt.precision - 1))


@helper
def rounded(x: float, residue: float, fmt: FormatNumbers) -> float:
    """Round the real number x + residue to nearest, ties to even; |residue| is at most half an ulp of x in float64."""
    if fmt.precision == 53 or not math.isfinite(x):
        return x
    if residue != 0.0:
        x = _to_odd(x, residue)
    unit = ulp(x, fmt)
    nearest = np.rint(x / unit) * unit
    return math.copysign(math.inf, x) if abs(nearest) > fmt.max else nearest


@helper
def _to_odd(x: float, residue: float) -> float:
    """Make the last bit of ``x`` sticky: odd if a residue is left.

    Rounding the result to a format of at most 51 bits equals rounding the exact sum (Boldo and Melquiond, 2008).
    """
    if _bits(x) & 1:
        return x
    return np.nextafter(x, math.inf if residue > 0.0 else -math.inf)
