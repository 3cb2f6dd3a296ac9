"""Operands: the data that the recipes of a case make from its seed.

They follow from the case only. Their values are separate from their placement (`memory`), so that a check can place
them in another layout, dtype of indices or scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce

import numpy as np
from numpy.typing import NDArray

from poolproof.references.criterion import scatter_sums
from poolproof.references.formats import FORMATS, Float64
from poolproof.references.geometry import Int64
from poolproof.references.kernels.sums import ExactSums
from poolproof.references.summary import NOWHERE_OPEN, PlaneChunk
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.recipes.gradients import Landing, gradient_recipe
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import RandomStream
from poolproof.suites.cases.recipes.values import draw_values

CHUNK_ELEMENTS = 1 << 16
"""Elements per chunk of several planes."""

MAX_WHOLE_PLANE = 1 << 20
"""Cells of the largest plane that is judged as a whole."""

CHUNKS_OF_LARGE_PLANE = 4
"""Chunks of a larger plane. Judging it takes more memory than its tensors, and each chunk searches all its windows."""


@dataclass(frozen=True, eq=False)
class CaseOperands:
    """The meaning of a case's input tensors, in logical order.

    ``values`` (self) and ``gradient`` (grad_output) have the case's dtype; ``indices`` are int64 of shape
    (planes, *windows). A forward has only ``values``. ``mask`` is a forward's result for the same windows, if only a
    forward can make it (`Case.has_bit_mask`). Zeros replace a missing mask, and the indices of a case with windows
    without a cell: only a forward makes these. ``first_maxima`` are their indices, if the recipe found them.
    """

    case: Case
    values: NDArray
    gradient: NDArray = field(default_factory=lambda: np.empty(0))
    indices: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    mask: NDArray[np.int8] | None = None
    first_maxima: Int64 | None = None

    @property
    def planes(self) -> NDArray:
        """``values`` of shape (planes, *spatial)."""
        return self.values.reshape(self.case.planes, *self.case.spatial_shape)

    @cached_property
    def landing(self) -> Landing:
        """Cells that the gradients reach, for backwards only."""
        return _landing(self.case, self.indices, self.values)

    @property
    def terms(self) -> Float64:
        """The gradients as float64, flat, for backwards only."""
        return self.gradient.ravel().astype(np.float64)

    @cached_property
    def sums(self) -> ExactSums:
        """The exact sum of each cell of grad_input, flat; windows without a cell add nothing."""
        cells = self.landing.cells
        if self.case.has_empty_window:
            cells = np.where(self._placed.ravel(), cells, -1)
        return scatter_sums(cells, self.terms, self.values.size)

    def chunks(self, outputs: NDArray) -> Iterator[Callable[[], PlaneChunk]]:
        """Yield the outputs in grad_input with what they should be, by chunks of whole planes or of one plane."""
        most = min(max(CHUNK_ELEMENTS, self.case.plane_size), MAX_WHOLE_PLANE)
        flat = outputs.reshape(-1)

        def chunk(part: slice) -> PlaneChunk:
            unspecified = self.unspecified_cells[part] if self.case.has_empty_window else NOWHERE_OPEN
            return PlaneChunk(*self.gradients_into(part), flat[part].astype(np.float64), unspecified)

        return (partial(chunk, part) for part in self.chunk_ranges(most, CHUNKS_OF_LARGE_PLANE))

    def chunk_ranges(self, most: int, count: int) -> Iterator[slice]:
        """Yield ranges of flat cells of grad_input: of whole planes, or of a plane of more than ``most`` cells.

        Whole planes of a range have at most ``most`` cells, or windows, together. A larger plane is split into at most
        ``count`` chunks of at least ``most`` cells.
        """
        size, total = self.case.plane_size, self.case.planes * self.case.plane_size
        if size > most:
            step = max(most, -(-size // count))
            starts = (first for plane in range(0, total, size) for first in range(plane, plane + size, step))
            return (slice(first, min(first + step, first - first % size + size)) for first in starts)
        step = max(1, size * max(1, most // max(size, self.case.plane_windows, 1)))
        return (slice(first, min(first + step, total)) for first in range(0, total, step))

    @cached_property
    def unspecified_cells(self) -> NDArray[np.bool_]:
        """Cells, flat, with an index from a window without a cell: no document says whether that gradient arrives."""
        indices, planes = self.indices.reshape(self.case.pooled_shape), self.landing.plane
        pointing = ~self._placed.ravel() & ((indices >= 0) & (indices < self.case.plane_size)).ravel()
        unspecified = np.zeros(self.values.size, bool)
        unspecified[planes[pointing] * self.case.plane_size + indices.ravel()[pointing]] = True
        return unspecified

    @property
    def elements_past_end(self) -> int:
        """Elements past the last plane up to the farthest index; only windows without a cell may have such indices."""
        if not (self.case.api.is_backward and self.case.has_empty_window):
            return 0
        return max(int(self.landing.cells.max(initial=0)) + 1 - self.values.size, 0)

    def gradients_into(self, cells: slice) -> tuple[Int64, Float64]:
        """Return (cells, gradients) that belong into a range of cells, counted from its first.

        A gradient that belongs nowhere has a negative cell, or is left out.
        """
        size, windows = self.case.plane_size, (self.case.planes, self.case.plane_windows)
        planes = slice(cells.start // size, -(-cells.stop // size))
        indices, gradients = self.indices.reshape(windows)[planes], self.gradient.reshape(windows)[planes]
        if self.case.has_empty_window:
            indices = np.where(self._placed[planes], indices, -1)
        if cells.stop - cells.start >= size:
            belongs_in = indices + size * np.arange(len(indices))[:, None]
            if indices.min(initial=0) < 0:
                belongs_in[indices < 0] = -1
            return belongs_in.ravel(), gradients.ravel().astype(np.float64)
        first, stop = cells.start - planes.start * size, cells.stop - planes.start * size
        inside = (indices >= first) & (indices < stop)
        return indices[inside].astype(np.int64) - first, gradients[inside].astype(np.float64)

    def senders(self, cell: int) -> Int64:
        """Return the windows, flat, with gradients that belong in a cell."""
        placed = self._placed
        plane, cell_of_plane = divmod(cell, self.case.plane_size)
        belongs = (self.indices.reshape(placed.shape)[plane] == cell_of_plane) & placed[plane]
        return plane * self.case.plane_windows + np.flatnonzero(belongs)

    @property
    def _placed(self) -> NDArray[np.bool_]:
        """Which gradients, of shape (planes, windows), have a window with a cell."""
        placed = ~self.case.empty_windows_of_plane.ravel()
        return np.broadcast_to(placed, (self.case.planes, self.case.plane_windows))

    def with_indices(self, indices: Int64) -> CaseOperands:
        """Replace the indices, and remake the gradients by the recipe for these indices."""
        return replace(self, indices=indices, gradient=_gradient(self.case, self.values, indices))

    def scaled(self, exponent: int) -> CaseOperands:
        """Multiply every gradient by 2**exponent; exact only within the normal range."""
        return replace(self, gradient=self.gradient * self.gradient.dtype.type(2.0**exponent))


def make_operands(case: Case) -> CaseOperands:
    """Make the data of ``case``; elements that share memory have the value of the first of them."""
    fmt, literals = FORMATS[case.dtype], dict(case.literals)
    if "self" in literals:
        values = fmt.round(np.array(literals["self"], np.float64)).astype(fmt.dtype)
    else:
        values = draw_values(case.values, case.planes * case.plane_size, fmt, RandomStream(case.seed, "values"))
    values = _shared(values.reshape(case.shape), case, "self")
    if "grad_output" not in case.api.inputs:
        return CaseOperands(case, values)
    indices = _indices(case, values)
    may_differ = case.has_empty_window or "indices" in literals or case.layout("indices").repeats_elements
    first_maxima = indices if case.indices == "forward" and not may_differ else None
    return CaseOperands(case, values, _gradient(case, values, indices), indices, first_maxima=first_maxima)


def _indices(case: Case, values: NDArray) -> Int64:
    shape, literal = (case.planes, *(axis.windows for axis in case.axes)), dict(case.literals).get("indices")
    indices: Int64
    if case.has_empty_window:
        indices = np.zeros(shape, np.int64)
    elif literal is not None:
        indices = np.array(literal, np.int64).reshape(shape)
    else:
        planes = values.reshape(case.planes, *case.spatial_shape)
        indices = INDICES[case.indices](case.axes, planes, RandomStream(case.seed, "indices"))
    if "indices" in case.api.strided:
        return _shared(indices.reshape(case.pooled_shape), case, "indices").reshape(indices.shape)
    return indices


def _gradient(case: Case, values: NDArray, indices: Int64) -> NDArray:
    fmt, literal = FORMATS[case.dtype], dict(case.literals).get("grad_output")
    if literal is None:
        stream = RandomStream(case.seed, "gradient")
        gradient = gradient_recipe(case.gradient)(_landing(case, indices, values), fmt, stream)
    else:
        gradient = fmt.round(np.array(literal, np.float64))
    if case.scale:
        gradient = fmt.round(np.ldexp(gradient.astype(np.float64), case.scale))
    return _shared(gradient.astype(fmt.dtype, copy=False).reshape(case.pooled_shape), case, "grad_output")


def _landing(case: Case, indices: Int64, values: NDArray) -> Landing:
    return Landing(indices.reshape(case.planes, case.plane_windows), case.plane_size, case.axes, values)


def _shared(operands: NDArray, case: Case, name: str) -> NDArray:
    """Give all elements that share memory the value of the first one in row-major order."""
    layout = case.layout(name)
    if not layout.repeats_elements:
        return operands
    strides = layout.place(operands.shape, case.api.spatial_rank).strides
    steps = (np.arange(size) * stride for size, stride in zip(operands.shape, strides, strict=True))
    places = reduce(np.add.outer, steps)
    memory = np.empty(places.max(initial=0) + 1, operands.dtype)
    memory[places.ravel()[::-1]] = operands.ravel()[::-1]  # the last of several values for a place stays
    return memory[places]
