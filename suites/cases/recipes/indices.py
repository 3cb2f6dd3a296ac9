"""Recipes for indices: which cell of its window each gradient is sent to.

Any cell of its own window is a legal index (the library's pages demand no more), and no backward kernel reads
``self``. So maxima are put where defects live, instead of hoping that random data has one there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import forward_indices
from poolproof.references.geometry import Axis, Int64
from poolproof.suites.cases.recipes import described
from poolproof.suites.cases.recipes.stream import RandomStream

Recipe = Callable[[Sequence[Axis], NDArray, RandomStream], Int64]
"""(axes, self as (planes, *sizes), stream) -> flat indices of shape (planes, *windows); every window has a cell."""


def forward(axes: Sequence[Axis], values: NDArray, stream: RandomStream) -> Int64:
    """Take the indices of the forward maximum of ``self``."""
    return forward_indices(values, axes)


def in_window(axes: Sequence[Axis], values: NDArray, stream: RandomStream) -> Int64:
    """Draw any cell of the window, all equally likely."""
    indices = np.zeros((len(values), *(axis.windows for axis in axes)), np.int64)
    step = max(1, _AT_ONCE // max(prod(indices.shape[1:]), 1))
    for number, axis in enumerate(axes):
        along = (-1, *(1,) * (len(axes) - 1 - number))
        choices, firsts = axis.choices.reshape(along), axis.first_cells.reshape(along)
        for start in range(0, len(indices), step):
            part = indices[start : start + step]
            part *= axis.size
            part += firsts
            part += axis.step * stream.below(choices, part.shape)
    return indices


_AT_ONCE = 1 << 16
"""Indices that are drawn together, unless a plane has more: so many raw numbers are kept at a time."""


def shared(axes: Sequence[Axis], values: NDArray, stream: RandomStream) -> Int64:
    """Send all to one cell as far as windows reach it, the others to their nearest cell."""
    coordinates = [_nearest(axis, stream.one_below(axis.size), 2 * axis.size) for axis in axes]
    return _in_every_plane(axes, coordinates, len(values))


def lattice(axes: Sequence[Axis], values: NDArray, stream: RandomStream) -> Int64:
    """Send every window to its cell nearest to one of several peaks, one window apart.

    Those that can meet do so all over the plane, dilated windows whole strides apart included.
    """
    reaches = [max((axis.positions.shape[1] - 1) * axis.step, 1) for axis in axes]
    coordinates = map(_nearest, axes, map(stream.one_below, reaches), reaches)
    return _in_every_plane(axes, coordinates, len(values))


def _nearest(axis: Axis, peak: int, distance: int) -> Int64:
    """Find each window's coordinate that is nearest to one of the peaks, ``distance`` apart."""
    beyond = (np.arange(axis.size) - peak) % distance
    return _best(axis, -np.minimum(beyond, distance - beyond))


def _best(axis: Axis, score: Int64) -> Int64:
    """Find each window's first coordinate of highest score."""
    scores = np.where(axis.valid, score[np.where(axis.valid, axis.positions, 0)], np.iinfo(np.int64).min)
    return axis.positions[np.arange(axis.windows), scores.argmax(axis=1)]


def _by_place(score: Callable[[Axis], Int64]) -> Recipe:
    """Make a recipe that gives every window its cell of highest score along each axis, whatever is drawn."""

    @lru_cache(maxsize=1024)
    def best(axis: Axis) -> Int64:
        return _best(axis, score(axis))

    return lambda axes, values, stream: _in_every_plane(axes, map(best, axes), len(values))


def tile_borders(axis: Axis) -> Int64:
    """Prefer cells on either side of multiples of 64, 32, 16 and 8, the usual places to cut a plane, in that order."""
    coordinate = np.arange(axis.size)
    rank = np.zeros(axis.size, np.int64)
    for preference, tile in enumerate((8, 16, 32, 64), start=1):
        on_border = (coordinate > 0) & ((coordinate % tile == 0) | (coordinate % tile == tile - 1))
        rank[on_border] = preference
    return rank


def _in_every_plane(axes: Sequence[Axis], coordinates: Iterable[Int64], planes: int) -> Int64:
    """Fill every plane with the cells at the coordinates of each window along each axis."""
    cells = np.ravel_multi_index(np.ix_(*coordinates), [axis.size for axis in axes])
    return np.broadcast_to(cells, (planes, *cells.shape)).copy()


INDICES: dict[str, Recipe] = {
    "forward": forward,
    "in_window": in_window,
    "shared": shared,
    "crowded": described(
        "Take the cell that most windows visit: as many gradients meet as the geometry allows.",
        _by_place(lambda axis: axis.coverage()),
    ),
    "lattice": lattice,
    "first": described(
        "Take the first cell of the window, row 0 and column 0 included.", _by_place(lambda axis: -np.arange(axis.size))
    ),
    "last": described(
        "Take the last cell of the window, the last row and column included.",
        _by_place(lambda axis: np.arange(axis.size)),
    ),
    "plane_edges": described(
        "Take the cell nearest to the border of the plane along every axis.",
        _by_place(lambda axis: np.abs(2 * np.arange(axis.size) - (axis.size - 1))),
    ),
    "tile_borders": described(tile_borders.__doc__ or "", _by_place(tile_borders)),
}
"""The recipes by name; the docstring of each describes it."""
