"""Draws calls for the emulator's own tests, and holds what came back against the references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from emulator_driver import LISTS, Emulator, Outcome, PreparedCall, View, dense, fresh
from poolproof.backends.emulator import library
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import FORMATS
from poolproof.references.forward import forward_maximum
from poolproof.references.geometry import Axis, adaptive_axis, windowed_axis
from poolproof.references.indices import FLAT, MASK
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Adaptive

POISON = 0xA5

API_3D = "aclnnMaxPool3dWithArgmaxBackward"
API_2D = "aclnnMaxPool2dWithIndicesBackward"
API_MASK = "aclnnMaxPool2dWithMaskBackward"
API_ADAPTIVE_2D = "aclnnAdaptiveMaxPool2dBackward"
API_ADAPTIVE_3D = "aclnnAdaptiveMaxPool3dBackward"


@dataclass
class Geometry:
    """Leading sizes, one `Axis` per spatial axis, and the attribute lists that describe them."""

    leading: tuple[int, ...]
    axes: list[Axis]
    lists: dict[str, list[int]] = field(default_factory=dict)
    ceil_mode: bool = False

    def __str__(self) -> str:
        """Shapes and lists, short enough for the name of a test."""
        lists = "".join(f" {name[0]}{values}" for name, values in self.lists.items())
        return f"{self.input_shape}->{self.output_shape}{lists}".replace(" ", "")

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (*self.leading, *(axis.size for axis in self.axes))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (*self.leading, *(axis.windows for axis in self.axes))


def windowed(
    leading: Sequence[int],
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Geometry:
    rank = len(sizes)
    stride, padding, dilation = stride or kernel, padding or [0] * rank, dilation or [1] * rank
    per_axis = zip(sizes, kernel, stride, padding, dilation, strict=True)
    axes = [windowed_axis(*values, ceil_mode) for values in per_axis]
    lists = dict(zip(LISTS, map(list, (kernel, stride, padding, dilation)), strict=True))
    return Geometry(tuple(leading), axes, lists, ceil_mode)


def adaptive(leading: Sequence[int], sizes: Sequence[int], outputs: Sequence[int]) -> Geometry:
    axes = [adaptive_axis(size, output) for size, output in zip(sizes, outputs, strict=True)]
    return Geometry(tuple(leading), axes)


def draw_geometry(rng: np.random.Generator, operator: Operator, dilates: bool) -> Geometry:
    """A small legal geometry in which every window has a cell."""
    rank = operator.spatial_rank
    leading = [int(n) for n in rng.integers(1, 6, size=rng.integers(1, 3))]
    while True:
        sizes = [int(n) for n in rng.integers(1, 15 if rank == 2 else 9, size=rank)]
        if operator.windows is Adaptive:
            return adaptive(leading, sizes, [int(n) for n in rng.integers(1, 12, size=rank)])
        kernel = [int(n) for n in rng.integers(1, 5, size=rank)]
        if operator.indices is MASK and set(kernel) == {1}:
            continue  # this path has another mask
        stride = [int(n) for n in rng.integers(1, 5, size=rank)]
        padding = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        dilation = [int(n) for n in rng.integers(1, 4, size=rank)] if dilates and rng.random() < 0.5 else [1] * rank
        try:
            geometry = windowed(leading, sizes, kernel, stride, padding, dilation, bool(rng.random() < 0.5))
        except ValueError:
            continue
        if not any(axis.has_empty_window for axis in geometry.axes):
            return geometry


def draw_indices(rng: np.random.Generator, geometry: Geometry) -> NDArray[np.int64]:
    """For every window any one of its cells, as flat indices over the plane."""
    flat = np.zeros(geometry.output_shape, np.int64)
    first = len(geometry.leading)
    for number, axis in enumerate(geometry.axes):
        shape = [1] * flat.ndim + [axis.positions.shape[1]]
        shape[first + number] = axis.windows
        lots = rng.random((*flat.shape, axis.positions.shape[1])) + axis.valid.reshape(shape)
        taps = lots.argmax(axis=-1)
        windows = np.arange(axis.windows).reshape(shape[:-1])
        flat = flat * axis.size + axis.positions[windows, taps]
    return flat


def draw_gradients(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Values over many magnitudes, some of them special."""
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, size=shape)
    if rng.random() < 0.3:
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e-7], size=shape)
        values = np.where(rng.random(shape) < 0.1, special, values)
    return values.astype(FORMATS[dtype].dtype)


def spread(rng: np.random.Generator, array: NDArray, is_input: bool) -> View:
    """``array`` as a view that is dense, permuted, gapped, offset or, for an input, expanded."""
    layout = rng.choice(["dense", "permuted", "gapped", "expanded"])
    offset = int(rng.choice([0, 0, 1, 17]))
    if layout == "expanded" and is_input and array.shape[0] > 1:
        array = np.broadcast_to(array[:1], array.shape)
        inner = _strides(array.shape[1:], range(array.ndim - 1), 1)
        strides: tuple[int, ...] = (0, *inner)
    else:
        order = rng.permutation(array.ndim).tolist() if layout == "permuted" else range(array.ndim)
        strides = _strides(array.shape, order, 2 if layout == "gapped" else 1)
    extent = offset + 1 + sum((size - 1) * stride for size, stride in zip(array.shape, strides, strict=True))
    storage = np.full(extent * array.itemsize, POISON, np.uint8).view(array.dtype)
    view = View(storage, array.shape, strides, offset)
    view.array[...] = array
    return view


def _strides(shape: Sequence[int], order: Sequence[int], pitch: int) -> tuple[int, ...]:
    strides, step = [0] * len(shape), pitch
    for axis in reversed(list(order)):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@dataclass
class BackwardCase:
    """A backward call with all its operands."""

    operator: Operator
    geometry: Geometry
    views: dict[str, View]

    @property
    def gradients(self) -> NDArray:
        return self.views["gradOutput"].array

    def run(self, emulator: Emulator) -> Outcome:
        api = f"aclnn{self.operator.name}"
        return emulator.run(api, self.views, self.geometry.lists, self.geometry.ceil_mode)

    def rejected(self, indices: NDArray, model: AccumulationModel) -> NDArray[np.bool_]:
        """Cells of gradInput that a kernel of that model may not hold."""
        shape = self.geometry.input_shape
        plane = prod(axis.size for axis in self.geometry.axes)
        planes = prod(self.geometry.leading)
        cells = indices.reshape(planes, -1) + np.arange(planes)[:, None] * plane
        terms = self.gradients.astype(np.float64).reshape(-1)
        fmt = FORMATS[self.gradients.dtype.name]
        accepted = admissible(scatter_sums(cells.reshape(-1), terms, planes * plane), fmt, model)
        outputs = self.views["gradInput"].array.astype(np.float64).reshape(-1)
        return ~accepted.accepts(outputs).reshape(shape)


def backward_case(
    rng: np.random.Generator, name: str, geometry: Geometry, dtype: str, index_dtype: str, spreads: bool = True
) -> tuple[BackwardCase, NDArray[np.int64]]:
    """A case with drawn operands, and its indices as flat numbers."""
    operator = OPERATORS[name]
    indices = draw_indices(rng, geometry)
    gradients = draw_gradients(rng, geometry.output_shape, dtype)
    values = np.full(geometry.input_shape, np.nan, FORMATS[dtype].dtype)
    place = spread if spreads else _dense
    views = {
        "gradOutput": place(rng, gradients, True),
        "self": place(rng, values, True),
        "indices": _mask(indices, geometry)
        if operator.indices is MASK
        else place(rng, indices.astype(index_dtype), True),
        "gradInput": place(rng, np.full(geometry.input_shape, np.nan, FORMATS[dtype].dtype), False),
    }
    if operator.indices is FLAT:
        indices = views["indices"].array.astype(np.int64)
    return BackwardCase(operator, geometry, views), indices


def _dense(rng: np.random.Generator, array: NDArray, is_input: bool) -> View:
    return View(array.reshape(-1).copy(), array.shape)


def mask_shape(geometry: Geometry) -> tuple[int, ...]:
    kernel = prod(geometry.lists["kernelSize"])
    return MASK.tensor_shape(geometry.leading, tuple(axis.windows for axis in geometry.axes), kernel)


def _mask(indices: NDArray[np.int64], geometry: Geometry) -> View:
    mask = np.full(mask_shape(geometry), -1, np.int8)
    flat = mask.reshape(-1)
    flat[: indices.size * 4] = indices.astype(np.int32).reshape(-1).view(np.int8)
    return View(flat, mask.shape)


def untouched(view: View, before: NDArray) -> bool:
    """Whether everything outside the view's elements still holds what it held before."""
    mine = np.ones(view.storage.shape, bool)
    View(mine, view.shape, view.strides, view.offset).array[...] = False
    now, then = (storage.view(np.uint8).reshape(len(mine), -1) for storage in (view.storage, before))
    return bool((now == then)[mine].all())


def expected_forward(values: NDArray, geometry: Geometry) -> tuple[NDArray, NDArray[np.int64]]:
    planes = values.reshape(-1, *(axis.size for axis in geometry.axes))
    maxima, indices = forward_maximum(planes, geometry.axes)
    return maxima.reshape(geometry.output_shape), indices.reshape(geometry.output_shape)


@contextmanager
def current_products(**settings: str) -> Iterator[dict[str, Emulator]]:
    """One emulator for each product that runs the family, with the executor cache off."""
    with ExitStack() as stack:
        path = library()
        names = ("A2", "A3", "950")
        yield {name: stack.enter_context(fresh(path, name, DISABLE_L2_CACHE="1", **settings)) for name in names}


def draws(seed: int, count: int) -> Iterator[np.random.Generator]:
    """Independent generators, one per case, so that a failing case can be rerun alone."""
    for number in range(count):
        yield np.random.default_rng([seed, number])


# Windows that overlap in a plane too large for one tile: half precision then needs a workspace.
OVERLAPPING = windowed((1, 2), [16, 9, 9], [1, 3, 3], [1, 2, 2])


def prepared(emulator: Emulator, dtype: str = "float32") -> PreparedCall:
    """A legal call of the 3-D backward, its operands on the device."""
    case, _ = backward_case(
        np.random.default_rng(0), API_3D.removeprefix("aclnn"), OVERLAPPING, dtype, "int32", spreads=False
    )
    return PreparedCall(emulator, API_3D, case.views, OVERLAPPING.lists, False)


def poison(call: PreparedCall) -> None:
    """Fill the call's gradInput on the device, so that one that is not written shows."""
    pointer, size = call.buffers["gradInput"], call.views["gradInput"].storage.nbytes
    call.emulator.call("aclrtMemset", pointer, size, 0x7F, size)


def views_of(gradient: list[int], self: list[int], indices: list[int], tag: str, api: str) -> dict[str, View]:
    """Dense float32 views of those shapes, all tagged ``tag``; gradInput holds sevens."""
    return {
        "gradOutput": dense(np.zeros(gradient, np.float32), tag),
        "self": dense(np.zeros(self, np.float32), tag),
        "indices": dense(np.zeros(indices, np.int8 if api == API_MASK else np.int32), tag),
        "gradInput": dense(np.full(self, 7, np.float32), tag),
    }
