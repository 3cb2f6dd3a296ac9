"""grad_input cell by cell, a part of the tensor at a time: what each cell may hold, and whether it does.

A passing output is counted in one pass (`poolproof.references.summary`). Which cell is wrong, and what it was owed, is
asked here once something is, in the memory of a part and a byte for each cell of the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import Admissible, admissible
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.oracle import ExactSums, scatter_sums
from poolproof.suites.cases.operands import PIECES, Contents

REACHED, REJECTED, OWES_BITS = 1, 2, 4
"""Flags of one cell: a gradient belongs there; its output is not admissible; it can hold one value only."""

Flags = NDArray[np.uint8]

_MOST_CELLS = 1 << 17
"""Cells, or windows, of the planes of a part, where these are more than one."""

_PIECES = 2 * PIECES
"""Of a larger plane: what is known of each cell is twice as much as passing takes."""


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive ``cells`` of grad_input, by their flat numbers; all arrays are of shape (cells,).

    outputs
        What came out.
    sums
        The exact sums that belong there.
    open_cells
        Where whatever comes out is right; None where that is nowhere.
    """

    cells: slice
    outputs: Float64
    sums: ExactSums
    open_cells: NDArray[np.bool_] | None
    fmt: FloatFormat
    model: AccumulationModel

    @cached_property
    def admissible(self) -> Admissible:
        return admissible(self.sums, self.fmt, self.model)

    @cached_property
    def flags(self) -> Flags:
        is_rejected, owes_bits = ~self.admissible.accepts(self.outputs), self.admissible.single_valued
        if self.open_cells is not None:
            is_rejected &= ~self.open_cells
            owes_bits &= ~self.open_cells
        flags = np.zeros(len(self.outputs), np.uint8)
        for flag, where in ((REACHED, self.sums.count > 0), (REJECTED, is_rejected), (OWES_BITS, owes_bits)):
            flags[where] |= flag
        return flags

    def distances(self, among: Int64) -> Float64:
        """How far outputs are from their exact sums, in ulps of these; infinite where that is no finite number."""
        sums = self.sums.sum[among]
        with np.errstate(invalid="ignore", over="ignore"):
            distances = np.abs(self.outputs[among] - sums) / self.fmt.ulp(sums)
        return np.where(np.isfinite(distances), distances, np.inf)


class Parts:
    """All parts of what came out as grad_input, an array of any shape, of a kernel of that accumulation model.

    The part that was made last is kept: most cases have no other.
    """

    def __init__(self, content: Contents, outputs: NDArray, model: AccumulationModel) -> None:
        self._content = content
        self._outputs = outputs.reshape(-1)
        self._model = model
        self._last: Part | None = None

    def __iter__(self) -> Iterator[Part]:
        return map(self._part, self._stretches())

    def around(self, cell: int) -> Part:
        """The part in which a cell lies."""
        return self._part(next(some for some in self._stretches() if cell < some.stop))

    @cached_property
    def flags(self) -> Flags:
        """The flags of every cell, flat."""
        flags = np.empty(len(self._outputs), np.uint8)
        for part in self:
            flags[part.cells] = part.flags
        return flags

    def worst(self, wrong: NDArray[np.bool_]) -> int:
        """Of the ``wrong`` cells, flat, the first of those farthest from their exact sums in ulps."""
        farthest, worst = -1.0, -1
        for cells in self._stretches():
            among = np.flatnonzero(wrong[cells])
            if len(among):
                distances = self._part(cells).distances(among)
                nearby = int(distances.argmax())
                if distances[nearby] > farthest:
                    farthest, worst = distances[nearby], cells.start + int(among[nearby])
        return worst

    def _stretches(self) -> Iterator[slice]:
        return self._content.stretches(_MOST_CELLS, _PIECES)

    def _part(self, cells: slice) -> Part:
        if self._last is None or self._last.cells != cells:
            self._last = None
            content, outputs = self._content, self._outputs[cells].astype(np.float64)
            open_cells = content.open_cells[cells] if content.case.has_empty_window() else None
            sums = scatter_sums(*content.belonging(cells), len(outputs))
            self._last = Part(cells, outputs, sums, open_cells, FORMATS[content.case.dtype], self._model)
        return self._last


def plane_sums(content: Contents, outputs: NDArray) -> tuple[Float64, Float64]:
    """(What was sent to each plane, what came out there), summed, both of shape (planes,)."""
    assert content.gradient is not None
    planes = content.case.planes
    return _row_sums(content.gradient.reshape(planes, -1)), _row_sums(outputs.reshape(planes, -1))


def _row_sums(rows: NDArray) -> Float64:
    """In float64, some rows at a time."""
    step = max(1, _MOST_CELLS // max(rows.shape[1], 1))
    with np.errstate(invalid="ignore"):
        sums = [rows[first : first + step].astype(np.float64).sum(axis=1) for first in range(0, len(rows), step)]
    return np.concatenate(sums)
