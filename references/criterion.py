"""The interval criterion on arrays: which outputs a kernel that obeys its accumulation model may produce.

`poolproof.references.kernels.criterion` derives them from the exact sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, Float64, FloatFormat
from poolproof.references.kernels.compiled import argument
from poolproof.references.kernels.criterion import (
    ZERO,
    AccumulationParameters,
    Bounds,
    accepted_cells,
    bounds_of_cells,
    empty_bounds,
    single_valued_cells,
)
from poolproof.references.kernels.facts import NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY
from poolproof.references.oracle import ExactSums

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
    def single_valued(self) -> Bool:
        """Cells with exactly one admissible value (a zero's sign apart)."""
        found = np.empty(len(self.low), bool)
        single_valued_cells(self._bounds, found)
        return found

    def accepts(self, outputs: Float64) -> Bool:
        """Check which of ``outputs`` (the kernel's results as float64, shape (cells,)) are admissible."""
        accepted = np.empty(len(self.low), bool)
        accepted_cells(self._bounds, self.limit, argument(outputs, np.float64), accepted)
        return accepted

    @property
    def _bounds(self) -> Bounds:
        specials = np.zeros(len(self.low), np.uint8)
        for kind, raised in (
            (NAN, self.nan),
            (POSITIVE_INFINITY, self.positive_infinity),
            (NEGATIVE_INFINITY, self.negative_infinity),
            (ZERO, self.zero),
        ):
            specials[raised] |= kind
        return Bounds(self.low, self.high, self.lattice, specials)


def admissible(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Admissible:
    """Derive what a kernel of that model may write into tensors of format ``output`` from the exact sums."""
    bounds = empty_bounds(len(sums.sum))
    bounds_of_cells(sums.facts, accumulation_parameters(output, model), bounds)
    return Admissible(
        low=bounds.low,
        high=bounds.high,
        lattice=bounds.lattice,
        positive_infinity=bounds.specials & POSITIVE_INFINITY != 0,
        negative_infinity=bounds.specials & NEGATIVE_INFINITY != 0,
        nan=bounds.specials & NAN != 0,
        zero=bounds.specials & ZERO != 0,
        limit=output.max if model.saturates else np.inf,
    )


@lru_cache(maxsize=256)
def accumulation_parameters(output: FloatFormat, model: AccumulationModel) -> AccumulationParameters:
    """Return the numbers of a model that writes the format ``output``."""
    accumulator = model.accumulator(output)
    return AccumulationParameters(
        precision=output.precision,
        min_exponent=output.min_exponent,
        largest=output.max,
        smallest_normal=output.smallest_normal,
        sum_precision=accumulator.precision,
        sum_min_exponent=accumulator.min_exponent,
        sum_smallest_normal=accumulator.smallest_normal,
        overflow_threshold=accumulator.overflow_threshold,
        roundoff=accumulator.unit_roundoff,
        narrows=accumulator is not output,
        tiles=model.tiles if model.kind == "mixed" and output.precision <= FLOAT32.precision else 0,
        tile_roundoff=FLOAT32.unit_roundoff,
        flushes=model.flushes_subnormals,
        cast_flushes=model.cast_flushes,
        saturates=model.saturates,
    )
