"""From a case to memory: the data of its recipes, placed into poisoned and guarded buffers.

Deterministic from the case alone. Content (what the tensors mean) is kept apart from placement (where the
elements lie), so that a check can ask for the same content in another layout, dtype of indices or scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call, Tensor
from poolproof.references.formats import FORMATS, Float64
from poolproof.references.geometry import Int64
from poolproof.references.oracle import ExactSums, scatter_sums
from poolproof.references.summary import Slab
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.fence import fenced
from poolproof.suites.cases.layouts import CONTIGUOUS, Layout, extent
from poolproof.suites.cases.recipes.gradients import GRADIENTS, Landing
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import Stream
from poolproof.suites.cases.recipes.values import VALUES

GUARD_BYTES = 512
"""Length of a guard band; a multiple of every alignment a kernel might write in."""

SHIFT_BYTES = 64
"""By how much repetitions move their tensors: what the memory page guarantees of an address, and no more."""

POISONS = (0xFF, 0x5A)
"""Two byte patterns for memory nobody has written: a NaN (or -1) and a finite value in every dtype."""

SURROUNDINGS = 0x03
"""The byte around the elements of outputs: a small number in every dtype, which changes by whatever is added to it, as
a NaN would not."""


SLAB = 1 << 16
"""Elements of the planes that are judged at a time, where these are more than one."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What the input tensors of a case mean, in logical order.

    ``values`` (self) and ``gradient`` (grad_output) are float64 arrays of values that the case's dtype holds
    exactly; ``indices`` are int64 of shape (planes, *windows). Forward operators have no gradient and no indices.
    ``mask`` is what a forward made of the same windows, for cases whose mask nobody else can make
    (`Case.has_bit_mask`); zeros stand in for it where it is missing. Of windows without a cell only a forward can make
    the indices, too, inside the plane or not; zeros stand in for those of such a case.
    """

    case: Case
    values: Float64
    gradient: Float64 | None = None
    indices: Int64 | None = None
    mask: NDArray[np.int8] | None = None

    @cached_property
    def landing(self) -> Landing:
        """Cells that the gradients reach; backward operators only."""
        assert self.indices is not None
        case = self.case
        first_cells = np.arange(case.planes)[:, None] * case.plane_size
        cells = self.indices.reshape(case.planes, case.plane_windows) + first_cells
        return Landing(cells.ravel(), self.values.size, case.axes)

    @cached_property
    def sums(self) -> ExactSums:
        """The exact sum that belongs in each cell of grad_input, flat; of windows without a cell nothing is owed."""
        assert self.gradient is not None
        cells = self.landing.cells
        if self.case.has_empty_window():
            cells = np.where(self._placed, cells, -1)
        return scatter_sums(cells, self.gradient.ravel(), self.values.size)

    def slabs(self, outputs: NDArray) -> Iterator[Slab]:
        """What came out in grad_input beside what belongs there, some planes at a time."""
        assert self.gradient is not None
        assert self.indices is not None
        case, windows = self.case, (self.case.planes, self.case.plane_windows)
        cells, terms = self.indices.reshape(windows), self.gradient.reshape(windows)
        came_out = outputs.reshape(case.planes, case.plane_size)
        if case.has_empty_window():
            cells = np.where(self._placed.reshape(windows), cells, -1)
        step = max(1, SLAB // max(case.plane_size, case.plane_windows, 1))
        for first in range(0, case.planes, step):
            some = slice(first, first + step)
            flat = cells[some].ravel(), terms[some].ravel(), came_out[some].astype(np.float64).ravel()
            if case.has_empty_window():
                yield Slab(*flat, self.open_cells.reshape(came_out.shape)[some].ravel())
            else:
                yield Slab(*flat)

    @cached_property
    def open_cells(self) -> NDArray[np.bool_]:
        """Cells, flat, that windows without a cell have an index of: whether their gradients come, nobody says."""
        assert self.indices is not None
        indices, planes = self.indices.reshape(self.case.pooled_shape), self.landing.plane
        pointing = (~self._placed) & ((indices >= 0) & (indices < self.case.plane_size)).ravel()
        found = np.zeros(self.values.size, bool)
        found[planes[pointing] * self.case.plane_size + indices.ravel()[pointing]] = True
        return found

    @property
    def beyond(self) -> int:
        """How many elements past the last plane the indices point; only those of windows without a cell may."""
        if self.indices is None or not self.case.has_empty_window():
            return 0
        return max(int(self.landing.cells.max(initial=0)) + 1 - self.values.size, 0)

    def senders(self, cell: int) -> Int64:
        """The windows, flat, whose gradients belong in a cell."""
        return np.flatnonzero((self.landing.cells == cell) & self._placed)

    @property
    def _placed(self) -> NDArray[np.bool_]:
        """Which gradients, flat, are of a window that has a cell."""
        return ~self.case.empty_windows.ravel()

    def scaled(self, exponent: int) -> Contents:
        """The same with every gradient multiplied by 2**exponent; exact only where nothing leaves the normal range."""
        assert self.gradient is not None
        return replace(self, gradient=np.ldexp(self.gradient, exponent))


def contents(case: Case) -> Contents:
    """Build the data of ``case``; elements of a tensor that share memory have the value of the first of them."""
    fmt = FORMATS[case.dtype]
    size = int(np.prod(case.shape))
    literals = {name: fmt.round(np.array(given, np.float64)) for name, given in case.literals}
    values = literals.get("self")
    if values is None:
        values = VALUES[case.values](size, fmt, Stream(case.seed, "values"))
    values = _shared(values.reshape(case.shape), case, "self")
    if "grad_output" not in case.api.inputs:
        return Contents(case, values)
    planes = values.reshape(case.planes, *case.spatial_shape)
    spelled_out = dict(case.literals).get("indices")
    indices: Int64
    if case.has_empty_window():
        indices = np.zeros((case.planes, *(axis.windows for axis in case.axes)), np.int64)
    elif spelled_out is not None:
        indices = np.array(spelled_out, np.int64).reshape(case.planes, *(axis.windows for axis in case.axes))
    else:
        indices = INDICES[case.indices](case.axes, planes, Stream(case.seed, "indices"))
    if "indices" in case.api.strided:
        indices = _shared(indices.reshape(case.pooled_shape), case, "indices").reshape(indices.shape)
    drawn = Contents(case, values, indices=indices)
    gradient = literals.get("grad_output")
    if gradient is None:
        gradient = GRADIENTS[case.gradient](drawn.landing, fmt, Stream(case.seed, "gradient"))
    if case.scale:
        gradient = fmt.round(np.ldexp(gradient, case.scale))
    gradient = _shared(gradient.reshape(case.pooled_shape), case, "grad_output")
    return replace(drawn, gradient=gradient)


def allocate(
    content: Contents,
    poison: int,
    layouts: Mapping[str, Layout] | None = None,
    index_dtype: str | None = None,
    shift: int = 0,
) -> Call:
    """A call on fresh memory: inputs filled, outputs poisoned, and of inputs the gaps and guard bands, too.

    ``layouts`` and ``index_dtype`` replace the case's own. ``shift`` moves every storage by that many `SHIFT_BYTES`.
    What indices point past the last plane is fenced in, behind the guard band.
    """
    case = content.case
    tensors = {}
    for name in case.api.tensors:
        dtype = np.dtype(_numpy_name(index_dtype or case.index_dtype if name == "indices" else case.dtype))
        layout = layouts.get(name, CONTIGUOUS) if layouts is not None else case.layout(name)
        guard = GUARD_BYTES + shift * SHIFT_BYTES
        beyond = content.beyond if name in case.api.outputs else 0
        tensor = _empty(case.tensor_shape(name), dtype, layout, case.api.spatial_rank, poison, guard, beyond)
        if name in case.api.inputs:
            _fill(tensor, content, name)
        else:
            tensor.buffer[guard_and_gap_mask(tensor)] = SURROUNDINGS
        tensors[name] = tensor
    return Call(case.api, case.attributes, tensors, case.deterministic)


def guard_and_gap_mask(tensor: Tensor) -> NDArray[np.bool_]:
    """Which bytes of the buffer belong to no element of the view."""
    elements = np.zeros(tensor.storage_elements, bool)
    view = np.ndarray(tensor.shape, bool, elements.data, offset=tensor.offset, strides=tensor.strides)
    view[...] = True
    mask = np.ones(len(tensor.buffer), bool)
    mask[tensor.guard : len(tensor.buffer) - tensor.guard] = ~np.repeat(elements, tensor.dtype.itemsize)
    return mask


def _empty(
    shape: tuple[int, ...], dtype: np.dtype, layout: Layout, spatial_rank: int, poison: int, guard: int, beyond: int
) -> Tensor:
    placed = layout.place(shape, spatial_rank)
    storage = (placed.start + extent(shape, placed.strides)) * dtype.itemsize
    size = 2 * guard + storage
    buffer = fenced(size, beyond * dtype.itemsize) if beyond else np.empty(size, np.uint8)
    buffer[:] = poison
    return Tensor(buffer, guard, dtype, shape, placed.strides, placed.start, layout.tag)


def _fill(tensor: Tensor, content: Contents, name: str) -> None:
    if name == "self":
        tensor.array[...] = content.values
    elif name == "grad_output":
        tensor.array[...] = content.gradient
    elif content.case.has_bit_mask:
        tensor.array[...] = 0 if content.mask is None else content.mask
    else:
        assert content.indices is not None
        content.case.api.indices.encode(content.indices, tensor.array)


def _shared(content: NDArray, case: Case, name: str) -> NDArray:
    """The content with one value for all elements that share memory, that of the first in row-major order."""
    layout = case.layout(name)
    if not layout.repeats_elements:
        return content
    steps = zip(np.indices(content.shape), layout.place(content.shape, case.api.spatial_rank).strides, strict=True)
    places = sum(index * stride for index, stride in steps)
    _, first, shares = np.unique(places, return_index=True, return_inverse=True)
    return content.ravel()[first][shares].reshape(content.shape)


def _numpy_name(dtype: str) -> np.dtype:
    return FORMATS[dtype].dtype if dtype in FORMATS else np.dtype(dtype)
