"""Operands: the data that the recipes of a case make of its seed.

They follow from the case alone. Their values are kept apart from their placement (`memory`: where the elements lie),
so that a check can place them in another layout, dtype of indices or scale.
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
"""Elements of the planes that are judged at a time, where these are more than one."""

MAX_WHOLE_PLANE = 1 << 20
"""Cells of a plane that is judged as a whole."""

CHUNKS_OF_LARGE_PLANE = 4
"""Of a larger plane, which takes more memory to judge than its tensors: all its windows are looked through for each."""


@dataclass(frozen=True, eq=False)
class CaseOperands:
    """What the input tensors of a case mean, in logical order.

    ``values`` (self) and ``gradient`` (grad_output) are of the case's dtype; ``indices`` are int64 of shape
    (planes, *windows). Both are empty for forward operators.
    ``mask`` is a forward's own, of the same windows, for cases with a mask that nobody else can make
    (`Case.has_bit_mask`); zeros stand in for it where it is missing. Of windows without a cell only a forward can make
    the indices, too, inside the plane or not; zeros stand in for those of such a case. ``first_maxima`` are the indices
    of the first maxima of ``values`` where the recipe has found them.
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
        """Cells that the gradients reach; backward operators only."""
        return _landing(self.case, self.indices, self.values)

    @property
    def terms(self) -> Float64:
        """The gradients as float64, flat; backward operators only."""
        return self.gradient.ravel().astype(np.float64)

    @cached_property
    def sums(self) -> ExactSums:
        """The exact sum that belongs in each cell of grad_input, flat; windows without a cell add nothing."""
        cells = self.landing.cells
        if self.case.has_empty_window:
            cells = np.where(self._placed.ravel(), cells, -1)
        return scatter_sums(cells, self.terms, self.values.size)

    def chunks(self, outputs: NDArray) -> Iterator[Callable[[], PlaneChunk]]:
        """Yield what came out in grad_input beside what belongs there, by chunks of whole planes or of one plane."""
        most = min(max(CHUNK_ELEMENTS, self.case.plane_size), MAX_WHOLE_PLANE)
        came_out = outputs.reshape(-1)

        def chunk(part: slice) -> PlaneChunk:
            unspecified = self.unspecified_cells[part] if self.case.has_empty_window else NOWHERE_OPEN
            return PlaneChunk(*self.gradients_into(part), came_out[part].astype(np.float64), unspecified)

        return (partial(chunk, part) for part in self.chunk_ranges(most, CHUNKS_OF_LARGE_PLANE))

    def chunk_ranges(self, most: int, count: int) -> Iterator[slice]:
        """Yield ranges of flat cells of grad_input: of whole planes, or of a plane of more than ``most`` cells.

        Whole planes have ``most`` cells, or windows, together. A larger plane is cut into at most ``count`` chunks, of
        ``most`` cells or more.
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
        """Cells, flat, that indices of windows without a cell name; no source says whether their gradients arrive."""
        indices, planes = self.indices.reshape(self.case.pooled_shape), self.landing.plane
        pointing = ~self._placed.ravel() & ((indices >= 0) & (indices < self.case.plane_size)).ravel()
        found = np.zeros(self.values.size, bool)
        found[planes[pointing] * self.case.plane_size + indices.ravel()[pointing]] = True
        return found

    @property
    def elements_past_end(self) -> int:
        """How many elements past the last plane the indices point; only those of windows without a cell may."""
        if not (self.case.api.is_backward and self.case.has_empty_window):
            return 0
        return max(int(self.landing.cells.max(initial=0)) + 1 - self.values.size, 0)

    def gradients_into(self, cells: slice) -> tuple[Int64, Float64]:
        """Return (cells, gradients) of what belongs into a range of cells, counted from the first of them.

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
        """Find the windows, flat, with gradients that belong in a cell."""
        placed = self._placed
        plane, cell_of_plane = divmod(cell, self.case.plane_size)
        belongs = (self.indices.reshape(placed.shape)[plane] == cell_of_plane) & placed[plane]
        return plane * self.case.plane_windows + np.flatnonzero(belongs)

    @property
    def _placed(self) -> NDArray[np.bool_]:
        """Which gradients, of shape (planes, windows), are of a window that has a cell."""
        placed = ~self.case.empty_windows_of_plane.ravel()
        return np.broadcast_to(placed, (self.case.planes, self.case.plane_windows))

    def with_indices(self, indices: Int64) -> CaseOperands:
        """Replace the indices, and the gradients by those that the recipe makes of where these lead."""
        return replace(self, indices=indices, gradient=_gradient(self.case, self.values, indices))

    def scaled(self, exponent: int) -> CaseOperands:
        """Multiply every gradient by 2**exponent; exact only where nothing leaves the normal range."""
        return replace(self, gradient=self.gradient * self.gradient.dtype.type(2.0**exponent))


def make_operands(case: Case) -> CaseOperands:
    """Make the data of ``case``; elements of a tensor that share memory have the value of the first of them."""
    fmt, literals = FORMATS[case.dtype], dict(case.literals)
    if "self" in literals:
        values = fmt.round(np.array(literals["self"], np.float64)).astype(fmt.dtype)
    else:
        values = draw_values(case.values, case.planes * case.plane_size, fmt, RandomStream(case.seed, "values"))
    values = _shared(values.reshape(case.shape), case, "self")
    if "grad_output" not in case.api.inputs:
        return CaseOperands(case, values)
    indices = _indices(case, values)
    others = case.has_empty_window or "indices" in literals or case.layout("indices").repeats_elements
    first_maxima = indices if case.indices == "forward" and not others else None
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
    """Give all elements that share memory one value, that of the first in row-major order."""
    layout = case.layout(name)
    if not layout.repeats_elements:
        return operands
    strides = layout.place(operands.shape, case.api.spatial_rank).strides
    steps = (np.arange(size) * stride for size, stride in zip(operands.shape, strides, strict=True))
    places = reduce(np.add.outer, steps)
    memory = np.empty(places.max(initial=0) + 1, operands.dtype)
    memory[places.ravel()[::-1]] = operands.ravel()[::-1]  # of several values for a place, the last stays
    return memory[places]
