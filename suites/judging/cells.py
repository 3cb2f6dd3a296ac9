"""The cells of grad_input, one chunk at a time: their admissible values, and whether the output is one of them.

A passing output needs one counting pass only (`poolproof.references.summary`). This module finds the wrong cells of a
failure and their expected values. It needs the memory of one chunk, and one byte per cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import FORMATS, Float64
from poolproof.references.kernels.criterion import Admissible
from poolproof.references.kernels.sums import ExactSums
from poolproof.references.threads import threaded_map
from poolproof.suites.cases.operands import CHUNK_ELEMENTS, CHUNKS_OF_LARGE_PLANE, CaseOperands

REACHED, REJECTED, SINGLE_VALUED = 1, 2, 4
"""Flags of a cell: a gradient belongs there; its output is not admissible; only one value is admissible."""


class CellChunk(NamedTuple):
    """Consecutive ``cells`` of grad_input: their outputs, exact sums and admissible values."""

    cells: slice
    outputs: Float64
    sums: ExactSums
    admissible: Admissible


class CellChunks:
    """All chunks of ``outputs``, a grad_input of any shape, judged by an accumulation model."""

    def __init__(self, operands: CaseOperands, outputs: NDArray, model: AccumulationModel) -> None:
        self._operands = operands
        self._outputs = outputs.reshape(-1)
        self._model = model
        self._fmt = FORMATS[operands.case.dtype]
        self._last: CellChunk | None = None  # most cases have a single chunk

    def around(self, cell: int) -> CellChunk:
        return self.chunk(next(cells for cells in self._ranges() if cell < cells.stop))

    @cached_property
    def flags(self) -> NDArray[np.uint8]:
        flags = np.empty(len(self._outputs), np.uint8)

        def flag(cells: slice) -> None:
            _, outputs, sums, allowed = self.chunk(cells)
            is_so = {REACHED: sums.k > 0, REJECTED: ~allowed.accepts(outputs), SINGLE_VALUED: allowed.single_valued}
            np.bitwise_or.reduce([mask * np.uint8(each) for each, mask in is_so.items()], out=flags[cells])

        threaded_map(flag, self._ranges(), self._operands.case.plane_size)
        if self._operands.case.has_empty_window:
            flags[self._operands.unspecified_cells] &= REACHED
        return flags

    def worst(self, wrong: NDArray[np.bool_]) -> int:
        """Return the flat number of the first ``wrong`` cell with the largest error, in ulps of its exact sum."""
        farthest, worst = -1.0, -1
        self._last = None  # frees memory: the admissible values are not needed here
        for cells in self._ranges():
            among = np.flatnonzero(wrong[cells])
            if not len(among):
                continue
            outputs, sums = self._outputs_and_sums(cells)
            with np.errstate(invalid="ignore", over="ignore"):
                distances = np.abs(outputs[among] - sums.sum[among]) / self._fmt.ulp(sums.sum[among])
            distances = np.where(np.isfinite(distances), distances, np.inf)  # not finite: infinitely far
            nearby = int(distances.argmax())
            if distances[nearby] > farthest:
                farthest, worst = distances[nearby], cells.start + int(among[nearby])
        return worst

    def chunk(self, cells: slice) -> CellChunk:
        """Return the chunk of a range of cells: whole planes, or a part of one plane."""
        last = self._last
        if last is None or last.cells != cells:
            self._last = last = None
            outputs, sums = self._outputs_and_sums(cells)
            self._last = last = CellChunk(cells, outputs, sums, admissible(sums, self._fmt, self._model))
        return last

    def _outputs_and_sums(self, cells: slice) -> tuple[Float64, ExactSums]:
        outputs = self._outputs[cells].astype(np.float64)
        return outputs, scatter_sums(*self._operands.gradients_into(cells), len(outputs))

    def _ranges(self) -> Iterator[slice]:
        # the facts about each cell of a large plane need twice the memory of the counting pass
        return self._operands.chunk_ranges(CHUNK_ELEMENTS, 2 * CHUNKS_OF_LARGE_PLANE)
