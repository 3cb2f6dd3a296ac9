"""Recipes for indices: which cell of its window each gradient is sent to.

Any cell of its own window is a legal index (the library's pages demand no more), and no backward kernel reads
``self``. So maxima are put where defects live, instead of hoping that random data has one there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import forward_indices
from poolproof.references.geometry import Axis, Int64
from poolproof.suites.cases.recipes.stream import Stream

Recipe = Callable[[Sequence[Axis], NDArray, Stream], Int64]
"""(axes, self as (planes, *sizes), stream) -> flat indices of shape (planes, *windows); every window has a cell."""


def forward(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """The indices of the forward maximum of ``self``."""
    return forward_indices(values, axes)


def in_window(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """Any cell of the window, all equally likely."""
    windows = tuple(axis.windows for axis in axes)
    indices = np.empty((len(values), *windows), np.int64)
    flat = indices.reshape(-1)
    for part, own in stream.parts(flat.size, prod(windows)):
        flat[part] = _in_window(axes, ((part.stop - part.start) // prod(windows), *windows), own)
    return indices


def _in_window(axes: Sequence[Axis], shape: tuple[int, ...], stream: Stream) -> Int64:
    """The same, flat, for some planes; ``shape`` is (planes, *windows)."""
    flat = np.zeros(prod(shape), np.int64)
    for number, axis in enumerate(axes):
        choices = axis.choices
        window = np.arange(axis.windows).reshape(-1, *(1,) * (len(axes) - 1 - number))
        window = np.broadcast_to(window, shape).ravel()
        tap = axis.first_taps[window] + stream.below(choices[window], window.size)
        flat = flat * axis.size + axis.positions[window, tap]
    return flat


def shared(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """All on one cell as far as windows reach it, the others on their nearest cell."""
    anchors = [int(stream.below(axis.size, 1)[0]) for axis in axes]
    distances = [-np.abs(np.arange(axis.size) - anchor) for axis, anchor in zip(axes, anchors, strict=True)]
    return _best(axes, distances, len(values))


def crowded(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """Each window on its most visited cell: the highest multiplicities the geometry allows, all over the plane."""
    return _best(axes, [axis.coverage() for axis in axes], len(values))


def lattice(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """Peaks one window apart, every window on its cell nearest to one: those that can meet do so all over the plane,
    dilated windows whole strides apart included.
    """
    distances = []
    for axis in axes:
        reach = max(int(axis.positions[0][-1] - axis.positions[0][0]), 1)
        beyond = (np.arange(axis.size) - stream.below(reach, 1)[0]) % reach
        distances.append(-np.minimum(beyond, reach - beyond))
    return _best(axes, distances, len(values))


def first(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """The first cell of each window: column 0 and row 0 of the plane included."""
    return _best(axes, [-np.arange(axis.size) for axis in axes], len(values))


def last(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """The last cell of each window: the plane's last row and column included."""
    return _best(axes, [np.arange(axis.size) for axis in axes], len(values))


def plane_edges(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """The cell nearest to the plane's border along every axis."""
    return _best(axes, [np.abs(2 * np.arange(axis.size) - (axis.size - 1)) for axis in axes], len(values))


def tile_borders(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """Cells on either side of multiples of 64, 32, 16 and 8, the usual places to cut a plane, in that preference."""
    return _best(axes, [_border_rank(axis.size) for axis in axes], len(values))


def _border_rank(size: int) -> Int64:
    coordinate = np.arange(size)
    rank = np.zeros(size, np.int64)
    for preference, tile in enumerate((8, 16, 32, 64), start=1):
        on_border = (coordinate > 0) & ((coordinate % tile == 0) | (coordinate % tile == tile - 1))
        rank[on_border] = preference
    return rank


_NONE = np.iinfo(np.int64).min
"""A score below all others."""


def _best(axes: Sequence[Axis], scores: Sequence[Int64], planes: int) -> Int64:
    """The same choice in every plane: along each axis the window's first cell of highest score."""
    flat = np.zeros((), np.int64)
    for axis, score in zip(axes, scores, strict=True):
        taps = np.where(axis.valid, score[axis.reachable], _NONE)
        coordinate = axis.positions[np.arange(axis.windows), taps.argmax(axis=1)]
        flat = flat[..., None] * axis.size + coordinate
    return np.broadcast_to(flat, (planes, *flat.shape)).copy()


INDICES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (forward, in_window, shared, crowded, lattice, first, last, plane_edges, tile_borders)
}
