"""The exact gradient: all facts about each cell's sum that the criterion needs.

The backward operators are one scatter-add, so the truth about a cell is a few exact facts about its terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64
from poolproof.references.kernels.compiled import argument
from poolproof.references.kernels.facts import (
    NAN,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    Facts,
    facts_of_plane,
)
from poolproof.references.kernels.numbers import NO_LATTICE

__all__ = ["NO_LATTICE", "ExactSums", "scatter_sums"]


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

    @property
    def facts(self) -> Facts:
        """These facts as compiled functions take them."""
        kinds = self.nan * NAN + self.positive_infinity * POSITIVE_INFINITY + self.negative_infinity * NEGATIVE_INFINITY
        sums = self.sum, self.residue, self.positive, self.negative
        return Facts(self.count, *sums, self.lattice, kinds.astype(np.uint8))


def scatter_sums(cells: Int64, terms: Float64, size: int) -> ExactSums:
    """Sum ``terms`` into ``cells`` exactly.

    ``cells`` and ``terms`` are flat and of equal length; cells lie below ``size``, and a term with a negative cell is
    dropped. IndexError for a cell beyond; OverflowError where the finite terms of a cell add up to 2**960 or more, so
    that bounds on their sums have no place in float64.
    """
    facts = facts_of_plane(argument(cells, np.int64), argument(terms, np.float64), size)
    return ExactSums(
        count=facts.k,
        sum=facts.sum,
        residue=facts.residue,
        positive=facts.positive,
        negative=facts.negative,
        lattice=facts.lattice,
        nan=facts.kinds & NAN != 0,
        positive_infinity=facts.kinds & POSITIVE_INFINITY != 0,
        negative_infinity=facts.kinds & NEGATIVE_INFINITY != 0,
    )
