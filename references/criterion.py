"""The verdict on values: which outputs a kernel that obeys its accumulation model may produce.

How that follows from the exact sums is `poolproof.references.core.criterion`; here it is an object of arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.core.compiled import argument
from poolproof.references.core.criterion import (
    ZERO,
    Bounds,
    Rules,
    accepted_cells,
    bounds_of_cells,
    cells_owed_bits,
    empty_bounds,
)
from poolproof.references.core.facts import NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY
from poolproof.references.formats import FLOAT32, Float64, FloatFormat
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
    def demands_bits(self) -> Bool:
        """Where exactly one value is admissible (a zero's sign apart)."""
        owed = np.empty(len(self.low), bool)
        cells_owed_bits(self._bounds, owed)
        return owed

    def accepts(self, outputs: Float64) -> Bool:
        """Which of ``outputs`` (float64 values of the kernel's results, shape (cells,)) are admissible."""
        accepted = np.empty(len(self.low), bool)
        accepted_cells(self._bounds, self.limit, argument(outputs, np.float64), accepted)
        return accepted

    @property
    def _bounds(self) -> Bounds:
        others = np.zeros(len(self.low), np.uint8)
        for kind, raised in (
            (NAN, self.nan),
            (POSITIVE_INFINITY, self.positive_infinity),
            (NEGATIVE_INFINITY, self.negative_infinity),
            (ZERO, self.zero),
        ):
            others[raised] |= kind
        return Bounds(self.low, self.high, self.lattice, others)


def admissible(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Admissible:
    """What a kernel of that model may write, given the exact sums, into tensors of format ``output``."""
    bounds = empty_bounds(len(sums.sum))
    bounds_of_cells(sums.facts, rules(output, model), bounds)
    return Admissible(
        low=bounds.low,
        high=bounds.high,
        lattice=bounds.lattice,
        positive_infinity=bounds.others & POSITIVE_INFINITY != 0,
        negative_infinity=bounds.others & NEGATIVE_INFINITY != 0,
        nan=bounds.others & NAN != 0,
        zero=bounds.others & ZERO != 0,
        limit=output.max if model.saturates else np.inf,
    )


@lru_cache(maxsize=256)
def rules(output: FloatFormat, model: AccumulationModel) -> Rules:
    """The model, putting out that format, in numbers."""
    accumulator = model.accumulator(output)
    return Rules(
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
