"""Floating-point formats of the family's tensors, and exact rounding into them.

Everything is computed from precision and exponent range, so that no caller needs a tolerance or an epsilon of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.floating[Any]]
"""A float64 array: it can hold every value of every format, and exact sums of them."""


@dataclass(frozen=True)
class FloatFormat:
    """A binary IEEE-754 style format with gradual underflow, infinities and NaN.

    ``precision`` counts the significand's bits, including the implicit one. Exponents are those of 1.xxx * 2**e.
    """

    name: str
    precision: int
    min_exponent: int
    max_exponent: int
    dtype: np.dtype

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding to nearest, 2**-precision."""
        return 2.0**-self.precision

    @property
    def max(self) -> float:
        """Largest finite value."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.max_exponent

    @property
    def overflow_threshold(self) -> float:
        """Smallest magnitude that rounds to infinity. It is infinite for float64."""
        return (2.0 - 2.0**-self.precision) * 2.0**self.max_exponent

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.min_exponent

    @property
    def smallest_subnormal(self) -> float:
        return 2.0 ** (self.min_exponent - self.precision + 1)

    @property
    def largest_exact_integer(self) -> int:
        """The integer 2**precision: all integers up to it are representable."""
        return 2**self.precision

    def ulp(self, x: Float64) -> Float64:
        """Return the distance between neighbours in the binade of ``x``; the subnormal spacing at and near zero."""
        return np.ldexp(1.0, self._ulp_exponent(x))

    def round(self, x: Float64, residue: Float64 | None = None) -> Float64:
        """Round the real number ``x + residue`` to nearest, ties to even; the result is exact in float64.

        ``residue`` is the part of a sum that float64 cannot hold: ``|residue| <= ulp64(x) / 2``, of the shape of ``x``.
        Without it, a value that needs more than 53 bits would be rounded twice.
        """
        if self.precision == 53:
            return x
        with np.errstate(invalid="ignore", over="ignore"):
            if residue is not None:
                x = _round_to_odd(x, residue)
            if self.dtype.kind == "f":
                return x.astype(self.dtype).astype(np.float64)  # numpy rounds once to its own formats
            exponent = self._ulp_exponent(x)
            rounded = np.ldexp(np.rint(np.ldexp(x, -exponent)), exponent)
        return np.where(np.abs(rounded) > self.max, np.copysign(np.inf, x), rounded)

    def _ulp_exponent(self, x: Float64) -> NDArray[np.int32]:
        _, exponent = np.frexp(x)
        exponent = np.where(x == 0.0, self.min_exponent, exponent - 1)
        return np.maximum(exponent, self.min_exponent) - (self.precision - 1)


def _round_to_odd(x: Float64, residue: Float64) -> Float64:
    """Make the last bit of ``x`` sticky: odd wherever ``x + residue`` is not a float64.

    Rounding that to a format of at most 51 bits equals rounding the exact sum (Boldo and Melquiond, 2008).
    """
    is_even = (x.view(np.int64) & 1) == 0
    toward = np.where(residue > 0, np.inf, -np.inf)
    return np.where((residue != 0.0) & is_even, np.nextafter(x, toward), x)


FLOAT64 = FloatFormat("float64", 53, -1022, 1023, np.dtype(np.float64))
FLOAT32 = FloatFormat("float32", 24, -126, 127, np.dtype(np.float32))
FLOAT16 = FloatFormat("float16", 11, -14, 15, np.dtype(np.float16))
BFLOAT16 = FloatFormat("bfloat16", 8, -126, 127, np.dtype(ml_dtypes.bfloat16))

FORMATS = {f.name: f for f in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)}
