"""The forward maximum and its index: which input cell each window's gradient belongs to.

The rule is torch's and the operator library's: visiting a window's cells in row-major order, a value replaces
the running maximum when it is greater *or* NaN. So the first maximum wins a tie, the last NaN wins over
everything, and a window of nothing but -inf keeps its first cell. Indices are flat over the unpadded plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.geometry import Axis, Int64

_CHUNK = 1 << 22
"""Elements gathered at a time: bounds memory for large kernels."""


def forward_maximum(values: NDArray, axes: Sequence[Axis]) -> tuple[NDArray, Int64]:
    """(maxima, flat indices), each of shape (planes, *windows), of ``values`` of shape (planes, *sizes).

    Every window must have a cell inside the input (`Axis.has_empty_window`).
    """
    cells, valid = window_cells(axes)
    planes = values.reshape(len(values), prod(values.shape[1:]))
    maxima = np.empty((len(planes), len(cells)), values.dtype)
    indices = np.empty((len(planes), len(cells)), np.int64)
    step = max(1, _CHUNK // max(1, len(planes) * cells.shape[1]))
    for start in range(0, len(cells), step):
        part = slice(start, start + step)
        maxima[:, part], indices[:, part] = _maximum(planes, cells[part], valid[part])
    shape = (len(planes), *(axis.windows for axis in axes))
    return maxima.reshape(shape), indices.reshape(shape)


def window_cells(axes: Sequence[Axis]) -> tuple[Int64, NDArray[np.bool_]]:
    """(cells, valid) of shape (all windows, all taps): flat plane index of every tap, in row-major order.

    Taps that are not valid carry some in-range index, so that they can be gathered and masked.
    """
    cells: Int64 = np.zeros((1, 1), np.int64)
    valid = np.ones((1, 1), bool)
    for axis in axes:
        windows, taps = axis.positions.shape
        coordinate = np.where(axis.valid, axis.positions, 0)
        shape = (len(cells) * windows, cells.shape[1] * taps)
        cells = (cells[:, None, :, None] * axis.size + coordinate[None, :, None, :]).reshape(shape)
        valid = (valid[:, None, :, None] & axis.valid[None, :, None, :]).reshape(shape)
    return cells, valid


def _maximum(planes: NDArray, cells: Int64, valid: NDArray[np.bool_]) -> tuple[NDArray, Int64]:
    gathered = planes[:, cells]
    exact = gathered.astype(np.float64)
    candidates = np.where(valid, exact, -np.inf)
    taps = candidates.argmax(axis=-1)
    nothing_greater = np.take_along_axis(candidates, taps[..., None], -1)[..., 0] == -np.inf
    if nothing_greater.any():
        taps = np.where(nothing_greater, valid.argmax(axis=-1), taps)
    nan = np.isnan(candidates)
    if nan.any():
        last_nan = nan.shape[-1] - 1 - nan[..., ::-1].argmax(axis=-1)
        taps = np.where(nan.any(axis=-1), last_nan, taps)
    return np.take_along_axis(gathered, taps[..., None], -1)[..., 0], cells[np.arange(len(cells)), taps]
