"""Geometry of windows along one spatial axis: which input coordinates each output cell reads.

Windowed and adaptive pooling differ only here. Both become an `Axis`, a table of the coordinates of every window.
Everything else works on that table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.integer[Any]]
"""An array of integers, always int64."""


@dataclass(frozen=True, eq=False)
class Axis:
    """The windows along one spatial axis.

    Attributes:
        size: Input length.
        positions: Input coordinate of tap ``j`` of window ``o`` at [o, j], of shape (windows, taps), read-only.
        valid: Whether that coordinate lies inside the input, of the same shape, read-only. A tap is not valid in the
            padding, past the end, or beyond an adaptive window's own length.
    """

    size: int
    positions: Int64
    valid: NDArray[np.bool_]

    @cached_property
    def windows(self) -> int:
        """Output length along this axis."""
        return self.positions.shape[0]

    def coverage(self) -> Int64:
        """Count the windows that visit each coordinate, shape (size,)."""
        return np.bincount(self.positions[self.valid], minlength=self.size)

    @cached_property
    def is_overlapping(self) -> bool:
        """Whether several windows visit some coordinate."""
        return bool(self.coverage().max(initial=0) > 1)

    @cached_property
    def overlap(self) -> int:
        """The widest range of windows that visit one coordinate: window numbers modulo this tell them apart."""
        cells, window = self.positions[self.valid], self.valid.nonzero()[0]
        first, last = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        last[cells] = window  # the last assignment to a repeated cell counts
        first[cells[::-1]] = window[::-1]
        return int((last[cells] - first[cells]).max(initial=0)) + 1

    @cached_property
    def residues(self) -> Int64:
        """The windows' numbers modulo `overlap`; shape (windows,)."""
        return np.arange(self.windows) % self.overlap

    @cached_property
    def has_empty_window(self) -> bool:
        """Whether some window has no coordinate inside the input."""
        return bool(np.count_nonzero(self.choices) < self.windows)

    @cached_property
    def choices(self) -> Int64:
        """Coordinates inside the input that each window visits, counted, of shape (windows,)."""
        return np.add.reduce(self.valid, axis=1, dtype=np.int64)

    @cached_property
    def first_cells(self) -> Int64:
        """First coordinate inside the input of each window, of shape (windows,); arbitrary for a window without one."""
        return self.positions[:, 0] + self.step * self.valid.argmax(axis=1)

    @cached_property
    def step(self) -> int:
        """Distance between consecutive coordinates of a window."""
        return int(self.positions[0, 1] - self.positions[0, 0]) if self.positions.shape[1] > 1 else 1


_MOST_TAPS = 1 << 28
"""Most table entries of one axis. An int64 table of this size takes 2 GiB, and its mask as much while it is
computed."""


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Compute the output length of a windowed pool. It may be zero or negative, which no API accepts.

    The length is floor((size + 2 padding - dilation (kernel - 1) - 1 [+ stride - 1 with ceil_mode]) / stride) + 1. With
    ceil_mode, a last window that would start in the trailing padding is dropped. Sources: torch
    ``pooling_output_shape``, the operator library's ``PoolingOutShape``.
    """
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if ceil_mode:
        span += stride - 1
    windows = span // stride + 1
    if ceil_mode and (windows - 1) * stride >= size + padding:
        windows -= 1
    return windows


@lru_cache(maxsize=1024)
def windowed_axis(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Axis:
    """Lay out a windowed pool: tap j of window o sits at o * stride - padding + j * dilation.

    Raises ValueError if the output would be empty.
    """
    windows = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    if windows <= 0:
        raise ValueError(
            f"a kernel of {kernel} (dilation {dilation}) over {size} cells with padding {padding} has no window"
        )
    _check_taps(size, windows, kernel)
    starts = np.arange(-padding, windows * stride - padding, stride)
    positions = starts[:, None] + np.arange(0, kernel * dilation, dilation)
    return _read_only(size, positions, (positions >= 0) & (positions < size))


@lru_cache(maxsize=1024)
def adaptive_axis(size: int, windows: int) -> Axis:
    """Lay out an adaptive pool: o covers floor(o size / windows) to ceil((o + 1) size / windows), end excluded."""
    if windows <= 0:
        raise ValueError(f"an adaptive pool over {size} cells cannot have {windows} windows")
    _check_taps(size, windows, -(-size // windows) + 1)
    output = np.arange(windows)
    starts = output * size // windows
    ends = -(-(output + 1) * size // windows)
    taps = np.arange(int((ends - starts).max()))
    positions = starts[:, None] + taps
    return _read_only(size, positions, positions < ends[:, None])


def taps(axes: Sequence[Axis]) -> int:
    """Count the cells of the largest window, including those outside the input."""
    return prod(axis.positions.shape[1] for axis in axes)


def expand(values: Sequence[int], rank: int, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Expand an attribute list to one value per axis: empty means ``default``, a single value is repeated."""
    chosen = tuple(values) or tuple(default)
    return chosen * rank if len(chosen) == 1 else chosen


def _check_taps(size: int, windows: int, taps: int) -> None:
    """Raise ValueError if the table of an axis would be too large."""
    if max(size, windows * taps) > _MOST_TAPS:
        raise ValueError(f"{windows} windows of {taps} over {size} cells are more than fit an axis here ({_MOST_TAPS})")


def _read_only(size: int, positions: Int64, valid: NDArray[np.bool_]) -> Axis:
    positions.flags.writeable = valid.flags.writeable = False
    return Axis(size, positions, valid)
