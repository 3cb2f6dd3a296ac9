"""Recipes for indices: which cell of its window each gradient is sent to.

Any cell of its own window is a legal index (the library's pages demand no more), and no backward kernel reads
``self``. So maxima are put where defects live, instead of hoping that random data has one there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
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
    flat = np.zeros(shape, np.int64)
    for number, axis in enumerate(axes):
        along = (-1, *(1,) * (len(axes) - 1 - number))
        drawn = stream.below_each(axis.choices.reshape(along), shape)
        drawn *= axis.step
        drawn += axis.first_cells.reshape(along)
        flat *= axis.size
        flat += drawn
    return flat.ravel()


def shared(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """All on one cell as far as windows reach it, the others on their nearest cell."""
    anchors = stream.below(np.array([axis.size for axis in axes]), len(axes)).tolist()
    distances = [-np.abs(np.arange(axis.size) - anchor) for axis, anchor in zip(axes, anchors, strict=True)]
    return _in_every_plane(axes, map(_best, axes, distances), len(values))


def lattice(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
    """Peaks one window apart, every window on its cell nearest to one: those that can meet do so all over the plane,
    dilated windows whole strides apart included.
    """
    reaches = [max(int(axis.positions[0, -1] - axis.positions[0, 0]), 1) for axis in axes]
    distances = []
    for axis, reach, peak in zip(axes, reaches, stream.below(np.array(reaches), len(axes)).tolist(), strict=True):
        beyond = (np.arange(axis.size) - peak) % reach
        distances.append(-np.minimum(beyond, reach - beyond))
    return _in_every_plane(axes, map(_best, axes, distances), len(values))


def _by_place(score: Callable[[Axis], Int64]) -> Recipe:
    """A recipe that gives every window its cell of highest score along each axis, whatever is drawn."""

    @lru_cache(maxsize=1024)
    def best(axis: Axis) -> Int64:
        return _best(axis, score(axis))

    @wraps(score)
    def recipe(axes: Sequence[Axis], values: NDArray, stream: Stream) -> Int64:
        return _in_every_plane(axes, map(best, axes), len(values))

    return recipe


@_by_place
def crowded(axis: Axis) -> Int64:
    """Each window on its most visited cell: the highest multiplicities the geometry allows, all over the plane."""
    return axis.coverage()


@_by_place
def first(axis: Axis) -> Int64:
    """The first cell of each window: column 0 and row 0 of the plane included."""
    return -np.arange(axis.size)


@_by_place
def last(axis: Axis) -> Int64:
    """The last cell of each window: the plane's last row and column included."""
    return np.arange(axis.size)


@_by_place
def plane_edges(axis: Axis) -> Int64:
    """The cell nearest to the plane's border along every axis."""
    return np.abs(2 * np.arange(axis.size) - (axis.size - 1))


@_by_place
def tile_borders(axis: Axis) -> Int64:
    """Cells on either side of multiples of 64, 32, 16 and 8, the usual places to cut a plane, in that preference."""
    coordinate = np.arange(axis.size)
    rank = np.zeros(axis.size, np.int64)
    for preference, tile in enumerate((8, 16, 32, 64), start=1):
        on_border = (coordinate > 0) & ((coordinate % tile == 0) | (coordinate % tile == tile - 1))
        rank[on_border] = preference
    return rank


_NONE = np.iinfo(np.int64).min
"""A score below all others."""


def _best(axis: Axis, score: Int64) -> Int64:
    """Each window's first coordinate of highest score."""
    taps = np.where(axis.valid, score[axis.reachable], _NONE)
    return axis.positions[np.arange(axis.windows), taps.argmax(axis=1)]


def _in_every_plane(axes: Sequence[Axis], coordinates: Iterable[Int64], planes: int) -> Int64:
    """The same cells in every plane, of which each window has a coordinate along each axis."""
    flat = np.zeros((), np.int64)
    for axis, coordinate in zip(axes, coordinates, strict=True):
        flat = flat[..., None] * axis.size + coordinate
    cells = np.empty((planes, *flat.shape), np.int64)
    cells[...] = flat
    return cells


INDICES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (forward, in_window, shared, crowded, lattice, first, last, plane_edges, tile_borders)
}
