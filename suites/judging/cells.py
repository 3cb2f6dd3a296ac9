"""The cells of grad_input, a chunk of the tensor at a time: what each may hold, and whether it does.

A passing output is counted in one pass (`poolproof.references.summary`). Which cell is wrong, and what was expected
there, is worked out here once something is, in the memory of a chunk and a byte for each cell of the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.kernels.criterion import Admissible
from poolproof.references.kernels.sums import ExactSums
from poolproof.suites.cases.operands import CHUNKS_OF_LARGE_PLANE, CaseOperands

REACHED, REJECTED, SINGLE_VALUED = 1, 2, 4
"""Flags of one cell: a gradient belongs there; its output is not admissible; it can hold one value only."""

Flags = NDArray[np.uint8]

_MAX_CELLS = 1 << 17
"""Cells, or windows, of the planes of a chunk, where these are more than one."""

_CHUNKS_OF_LARGE_PLANE = 2 * CHUNKS_OF_LARGE_PLANE
"""Of a larger plane: what is known of each cell is twice as much as passing takes."""


@dataclass(frozen=True, eq=False)
class CellChunk:
    """Consecutive ``cells`` of grad_input, by their flat numbers; all arrays are of shape (cells,).

    outputs
        What came out.
    sums
        The exact sums that belong there.
    unspecified_cells
        Where whatever comes out is right; None where that is nowhere.
    """

    cells: slice
    outputs: Float64
    sums: ExactSums
    unspecified_cells: NDArray[np.bool_] | None
    fmt: FloatFormat
    model: AccumulationModel

    @cached_property
    def admissible(self) -> Admissible:
        return admissible(self.sums, self.fmt, self.model)

    @cached_property
    def flags(self) -> Flags:
        is_rejected, single_valued = ~self.admissible.accepts(self.outputs), self.admissible.single_valued
        if self.unspecified_cells is not None:
            is_rejected &= ~self.unspecified_cells
            single_valued &= ~self.unspecified_cells
        flags = np.zeros(len(self.outputs), np.uint8)
        for flag, where in ((REACHED, self.sums.k > 0), (REJECTED, is_rejected), (SINGLE_VALUED, single_valued)):
            flags[where] |= flag
        return flags

    def distances(self, among: Int64) -> Float64:
        """Measure how far outputs are from their exact sums, in ulps of these; infinite where that is not finite."""
        sums = self.sums.sum[among]
        with np.errstate(invalid="ignore", over="ignore"):
            distances = np.abs(self.outputs[among] - sums) / self.fmt.ulp(sums)
        return np.where(np.isfinite(distances), distances, np.inf)


class CellChunks:
    """All chunks of what came out as grad_input, an array of any shape, of a kernel of that accumulation model.

    The last chunk is cached: most cases have no other.
    """

    def __init__(self, operands: CaseOperands, outputs: NDArray, model: AccumulationModel) -> None:
        self._operands = operands
        self._outputs = outputs.reshape(-1)
        self._model = model
        self._last: CellChunk | None = None

    def __iter__(self) -> Iterator[CellChunk]:
        return map(self._chunk, self._ranges())

    def around(self, cell: int) -> CellChunk:
        """Return the chunk in which a cell lies."""
        return self._chunk(next(cells for cells in self._ranges() if cell < cells.stop))

    @cached_property
    def flags(self) -> Flags:
        """The flags of every cell, flat."""
        flags = np.empty(len(self._outputs), np.uint8)
        for chunk in self:
            flags[chunk.cells] = chunk.flags
        return flags

    def worst(self, wrong: NDArray[np.bool_]) -> int:
        """Find the first of those ``wrong`` cells, flat, that are farthest from their exact sums in ulps."""
        farthest, worst = -1.0, -1
        for cells in self._ranges():
            among = np.flatnonzero(wrong[cells])
            if len(among):
                distances = self._chunk(cells).distances(among)
                nearby = int(distances.argmax())
                if distances[nearby] > farthest:
                    farthest, worst = distances[nearby], cells.start + int(among[nearby])
        return worst

    def _ranges(self) -> Iterator[slice]:
        return self._operands.chunk_ranges(_MAX_CELLS, _CHUNKS_OF_LARGE_PLANE)

    def _chunk(self, cells: slice) -> CellChunk:
        if self._last is None or self._last.cells != cells:
            self._last = None
            operands, outputs = self._operands, self._outputs[cells].astype(np.float64)
            unspecified_cells = operands.unspecified_cells[cells] if operands.case.has_empty_window() else None
            sums = scatter_sums(*operands.gradients_into(cells), len(outputs))
            self._last = CellChunk(cells, outputs, sums, unspecified_cells, FORMATS[operands.case.dtype], self._model)
        return self._last


def plane_sums(operands: CaseOperands, outputs: NDArray) -> tuple[Float64, Float64]:
    """Return (what was sent to each plane, what came out there), summed, both of shape (planes,)."""
    assert operands.gradient is not None
    planes = operands.case.planes
    return _row_sums(operands.gradient.reshape(planes, -1)), _row_sums(outputs.reshape(planes, -1))


def _row_sums(rows: NDArray) -> Float64:
    """Sum in float64, some rows at a time."""
    step = max(1, _MAX_CELLS // max(rows.shape[1], 1))
    with np.errstate(invalid="ignore"):
        sums = [rows[first : first + step].astype(np.float64).sum(axis=1) for first in range(0, len(rows), step)]
    return np.concatenate(sums)
