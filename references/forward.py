"""Maxima of windows and their indices, for arrays of any dtype, under an implementation's `ForwardRule`.

The loops are in `kernels.forward`. They convert one chunk of planes at a time to float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import FORMATS, FloatFormat
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans, Nothing
from poolproof.references.geometry import Axis, Int64
from poolproof.references.kernels import forward as kernels
from poolproof.references.kernels.compiled import argument
from poolproof.references.kernels.forward import ForwardParameters, Spans, find_maxima, judge_maxima
from poolproof.references.threads import threaded_map

_CHUNK_CELLS = 1 << 16
"""Cells converted to float64 at a time. A plane is never split."""


Flags = NDArray[np.uint8]


def forward_maximum(values: NDArray, axes: Sequence[Axis], rule: ForwardRule = FAMILY_RULE) -> tuple[NDArray, Int64]:
    """Return (maxima, flat indices), each of shape (planes, *windows), of ``values`` of shape (planes, *sizes).

    Under `FAMILY_RULE`, a window without a cell has the index -1 and the maximum -inf.
    """
    indices, numbers = _found(values, axes, rule), _in_numbers(rule, values.dtype)
    flat, cells = _flat(values), _flat(indices)
    maxima = np.take_along_axis(flat, np.maximum(cells, 0), axis=1)
    if rule.nans is Nans.IGNORED:
        maxima[np.isnan(maxima)] = -np.inf  # the window begins with NaN, and no number of it exceeds -inf
    maxima[cells < 0] = numbers.nothing
    maxima[:, _without_cells(axes).ravel()] = numbers.empty
    return maxima.reshape(indices.shape), _placed(indices, axes, numbers)


def forward_indices(values: NDArray, axes: Sequence[Axis], rule: ForwardRule = FAMILY_RULE) -> Int64:
    return _placed(_found(values, axes, rule), axes, _in_numbers(rule, values.dtype))


def _placed(found: Int64, axes: Sequence[Axis], rule: ForwardParameters) -> Int64:
    """Replace -1 by the rule's index, except in windows without a cell."""
    if rule.nowhere < 0:
        return found
    return np.where((found < 0) & ~_without_cells(axes), rule.nowhere, found)


def _without_cells(axes: Sequence[Axis]) -> NDArray[np.bool_]:
    return reduce(np.logical_or.outer, (axis.choices == 0 for axis in axes))


def _found(values: NDArray, axes: Sequence[Axis], rule: ForwardRule) -> Int64:
    """Return the index of every window's maximum, -1 for none, of shape (planes, *windows)."""
    numbers = _in_numbers(rule, values.dtype)
    planes, windows = len(values), tuple(axis.windows for axis in axes)
    flat, indices, spans = _flat(values), np.empty((planes, prod(windows)), np.int64), _spans(axes)

    def find(chunk: slice) -> None:
        find_maxima(argument(flat[chunk], np.float64), *spans, numbers, indices[chunk].reshape(-1))

    threaded_map(find, _chunks(flat), flat.shape[1])
    return indices.reshape(planes, *windows)


def judge_forward(
    values: NDArray, axes: Sequence[Axis], outputs: NDArray, indices: NDArray, rule: ForwardRule = FAMILY_RULE
) -> Flags:
    """Judge each window's maximum and index; return flags of `kernels.forward`, of shape (planes, windows).

    ``values`` have the shape (planes, *sizes). ``outputs`` and ``indices`` have any shape with one element per window.
    """
    planes, numbers = len(values), _in_numbers(rule, values.dtype)
    flat, wrong = _flat(values), np.empty((planes, prod(axis.windows for axis in axes)), np.uint8)
    outputs, indices, spans = outputs.reshape(wrong.shape), indices.reshape(wrong.shape), _spans(axes)

    def judge(chunk: slice) -> None:
        cells, maxima = (argument(array[chunk], np.float64) for array in (flat, outputs))
        pointers = argument(indices[chunk], np.int64)
        judge_maxima(cells, *spans, numbers, maxima, pointers, wrong[chunk].reshape(-1))

    threaded_map(judge, _chunks(flat), flat.shape[1])
    return wrong


def window_cells(axes: Sequence[Axis]) -> tuple[Int64, NDArray[np.bool_]]:
    """Return (cells, valid) of shape (all windows, all taps): the flat plane index of every tap, in row-major order.

    The index of an invalid tap also lies within the plane, so that callers can gather first and mask later.
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


def _flat(values: NDArray) -> NDArray:
    return values.reshape(len(values), prod(values.shape[1:]))


def _chunks(planes: NDArray) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // max(1, planes.shape[1]))
    return (slice(start, start + step) for start in range(0, len(planes), step))


def maximum_without_cells(rule: ForwardRule, fmt: FloatFormat) -> float:
    return -fmt.max if rule.empty_is_lowest else -np.inf


@lru_cache(maxsize=256)
def _in_numbers(rule: ForwardRule, dtype: np.dtype) -> ForwardParameters:
    fmt = FORMATS[dtype.name]
    nothing = -fmt.max if rule.nothing.is_lowest else -np.inf
    empty = maximum_without_cells(rule, fmt)
    normal = fmt.smallest_normal if rule.flushes_subnormals else 0.0
    ties = kernels.FIRST if rule.ties.takes_several else getattr(kernels, rule.ties.name)
    nans = getattr(kernels, rule.nans.name)
    keeps_cell = rule.nothing is Nothing.CELL
    return ForwardParameters(ties, nans, nothing, rule.nothing.place, empty, keeps_cell, normal)


def _spans(axes: Sequence[Axis]) -> tuple[Spans, Spans, Spans]:
    """Return the windows along depth, height and width, as equally spaced cells; two axes get a depth of one cell."""
    spans = [Spans(axis.size, axis.step, axis.first_cells, axis.choices) for axis in axes]
    depth, height, width = [_ONE_CELL] * (3 - len(axes)) + spans
    return depth, height, width


_ONE_CELL = Spans(1, 1, np.zeros(1, np.int64), np.ones(1, np.int64))
