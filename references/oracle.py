"""The exact gradient: everything the criterion needs to know about the sum that belongs in each cell.

The backward operators are one scatter-add, so the truth about a cell is a handful of exact facts about the
terms that land there. Sums are error-free for any data that float64 holds; no rounding of ours enters a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64

NO_LATTICE = np.iinfo(np.int32).max // 2


@dataclass(frozen=True)
class ExactSums:
    """Facts about the terms that land in each cell; all arrays have shape (cells,).

    count
        k, how many terms land here, whatever their value.
    sum, residue
        The finite terms' exact sum S: ``sum`` is S rounded to float64, ``residue`` is S - ``sum`` rounded likewise
        (so it is zero only where ``sum`` is S).
    positive, negative
        P = sum of max(g, 0) and N = sum of max(-g, 0) over finite terms, rounded up where float64 is too short.
    lattice
        q, the exponent of the largest power of two that divides all finite non-zero terms, and so every sum of
        them in any order and precision; `NO_LATTICE` where there is none.
    nan, positive_infinity, negative_infinity
        Whether a term of that kind lands here.
    """

    count: Int64
    sum: Float64
    residue: Float64
    positive: Float64
    negative: Float64
    lattice: NDArray[np.int32]
    nan: NDArray[np.bool_]
    positive_infinity: NDArray[np.bool_]
    negative_infinity: NDArray[np.bool_]


def scatter_sums(cells: Int64, terms: Float64, size: int) -> ExactSums:
    """Sum ``terms`` into ``cells`` exactly.

    ``cells`` and ``terms`` are flat and of equal length, cells lie in [0, size). OverflowError when finite
    terms come within 2**64 of float64's own limit, where an exact sum has no float64 to live in.
    """
    count = np.bincount(cells, minlength=size)
    finite = np.isfinite(terms)
    all_finite = bool(finite.all())
    landing, values = (cells, terms) if all_finite else (cells[finite], terms[finite])
    total, residue = _exact_sum(landing, values, size)
    lattice = np.full(size, NO_LATTICE, np.int32)
    np.minimum.at(lattice, landing, lowest_bit_exponent(values))
    return ExactSums(
        count=count,
        sum=total,
        residue=residue,
        positive=_rounded_up_sum(landing, np.maximum(values, 0.0), lattice, count),
        negative=_rounded_up_sum(landing, np.maximum(-values, 0.0), lattice, count),
        lattice=lattice,
        nan=_lands(cells, np.isnan(terms), size, all_finite),
        positive_infinity=_lands(cells, terms == np.inf, size, all_finite),
        negative_infinity=_lands(cells, terms == -np.inf, size, all_finite),
    )


def lowest_bit_exponent(values: Float64) -> NDArray[np.int32]:
    """Exponent of the lowest set bit of each finite value (1.5 -> -1, 8 -> 3); `NO_LATTICE` for zero."""
    fraction, exponent = np.frexp(values)
    integer = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    _, lowest = np.frexp((integer & -integer).astype(np.float64))
    return np.where(integer == 0, NO_LATTICE, exponent - 53 + lowest - 1).astype(np.int32)


def _exact_sum(cells: Int64, values: Float64, size: int) -> tuple[Float64, Float64]:
    """(S rounded to float64, S - that) per cell, by error-free extraction.

    Each round cuts the leading bits of all values at one common place, so that their float64 sum is exact
    whatever the order (Rump, Ogita and Oishi, "Accurate floating-point summation part I", 2008).
    """
    total, rest = np.zeros(size), values
    parts: list[NDArray[Any]] = []
    headroom = int(len(values) + 2).bit_length()
    while rest.size and (largest := float(np.abs(rest).max())) > 0.0:
        exponent = int(np.frexp(largest)[1]) + headroom
        if exponent > 960:
            raise OverflowError("gradients this close to float64's limit have no exact float64 sum")
        anchor = 2.0**exponent
        leading = (anchor + rest) - anchor
        parts.append(np.bincount(cells, leading, size))
        rest = rest - leading
    if not parts:
        return total, np.zeros(size)
    if len(parts) == 1:
        return parts[0], np.zeros(size)
    return _renormalise(parts)


def _renormalise(parts: list[Float64]) -> tuple[Float64, Float64]:
    """Turn a sum of exact parts into (rounded sum, remainder) without losing a bit."""
    for _ in range(len(parts) - 1):
        for i in range(len(parts) - 2, -1, -1):
            parts[i], parts[i + 1] = _two_sum(parts[i], parts[i + 1])
    return parts[0], parts[1]


def _two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """A + b as (rounded sum, exact error) (Knuth)."""
    s = a + b
    from_b = s - a
    return s, (a - (s - from_b)) + (b - from_b)


def _rounded_up_sum(cells: Int64, values: Float64, lattice: NDArray[np.int32], count: Int64) -> Float64:
    """Sums of non-negative values: exact where they fit into 53 bits above the lattice, else an upper bound."""
    sums = np.bincount(cells, weights=values, minlength=len(count))
    with np.errstate(over="ignore"):
        exact = np.ldexp(sums, -np.minimum(lattice, 1000)) < 2.0**53
    return np.where(exact, sums, sums * (1.0 + count * 2.0**-50))


def _lands(cells: Int64, selected: NDArray[np.bool_], size: int, none: bool) -> NDArray[np.bool_]:
    landed = np.zeros(size, bool)
    if not none:
        landed[cells[selected]] = True
    return landed
