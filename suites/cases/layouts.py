"""Memory layouts: how a tensor's elements are spread over its storage.

A layout is written as a name, optionally with a storage offset in elements: ``channels_last``, ``sliced+17``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Shape = tuple[int, ...]
Strides = tuple[int, ...]

_SPELLING = re.compile(r"(?P<name>[a-z_]+)(?:\+(?P<offset>\d+))?")


@dataclass(frozen=True)
class Layout:
    """A named arrangement of axes and gaps, and the offset of the first element in its storage."""

    name: str
    offset: int = 0

    @classmethod
    def parse(cls, text: str) -> Layout:
        match = _SPELLING.fullmatch(text)
        if match is None or match["name"] not in LAYOUTS:
            raise ValueError(f"unknown layout {text!r}: NAME or NAME+OFFSET with NAME one of {', '.join(LAYOUTS)}")
        return cls(match["name"], int(match["offset"] or 0))

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name

    @property
    def tag(self) -> str:
        """The format tag that says how the axes are to be read, empty for the usual one."""
        return TAGS.get(self.name, "")

    @property
    def repeats_elements(self) -> bool:
        """Whether several elements share memory, which only an input may do."""
        return self.name == "expanded"

    def strides(self, shape: Shape, spatial_rank: int) -> Strides:
        """Strides in elements for a tensor of ``shape`` ([N,] C, *spatial)."""
        return LAYOUTS[self.name](shape, spatial_rank)


def extent(shape: Shape, strides: Strides) -> int:
    """Number of storage elements from the first to the last one that the view touches."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def expanded_axis(shape: Shape, spatial_rank: int) -> int | None:
    """The axis that an expanded tensor repeats: the first of N and C that has more than one element."""
    for axis in range(max(len(shape) - spatial_rank, 0)):
        if shape[axis] > 1:
            return axis
    return None


def _nested(shape: Shape, order: tuple[int, ...], pitch: int = 1, widen: int = 0) -> Strides:
    """Strides of axes nested in ``order``, outermost first, the innermost of stride ``pitch`` and ``widen`` longer."""
    strides = [0] * len(shape)
    step = pitch
    for position, axis in enumerate(reversed(order)):
        strides[axis] = step
        step *= max(shape[axis], 1)
        if position == 0:
            step += widen
    return tuple(strides)


def _in_order(shape: Shape) -> tuple[int, ...]:
    return tuple(range(len(shape)))


def _contiguous(shape: Shape, spatial_rank: int) -> Strides:
    return _nested(shape, _in_order(shape))


def _channels_last(shape: Shape, spatial_rank: int) -> Strides:
    channel = len(shape) - spatial_rank - 1
    return _nested(shape, (*range(channel), *range(channel + 1, len(shape)), channel))


def _transposed(shape: Shape, spatial_rank: int) -> Strides:
    *outer, rows, columns = _in_order(shape)
    return _nested(shape, (*outer, columns, rows))


def _reversed(shape: Shape, spatial_rank: int) -> Strides:
    return _nested(shape, _in_order(shape)[::-1])


def _sliced(shape: Shape, spatial_rank: int) -> Strides:
    return _nested(shape, _in_order(shape), pitch=2)


def _padded_rows(shape: Shape, spatial_rank: int) -> Strides:
    return _nested(shape, _in_order(shape), widen=3)


def _odd_units(shape: Shape, spatial_rank: int) -> Strides:
    dense = _nested(shape, _in_order(shape))
    return tuple(7 if size == 1 else stride for size, stride in zip(shape, dense, strict=True))


def _expanded(shape: Shape, spatial_rank: int) -> Strides:
    repeated = expanded_axis(shape, spatial_rank)
    stored = tuple(1 if axis == repeated else size for axis, size in enumerate(shape))
    dense = _nested(stored, _in_order(shape))
    return tuple(0 if axis == repeated else stride for axis, stride in enumerate(dense))


LAYOUTS: dict[str, Callable[[Shape, int], Strides]] = {
    "contiguous": _contiguous,
    "channels_last": _channels_last,
    "nhwc": _channels_last,
    "transposed": _transposed,
    "reversed": _reversed,
    "sliced": _sliced,
    "padded_rows": _padded_rows,
    "odd_units": _odd_units,
    "expanded": _expanded,
}
"""nhwc: channels last, and handed over as such, four axes in that order under a tag that says so. transposed: last
two axes exchanged. reversed: all axes (column-major). sliced: every second element of a row. padded_rows: three unused
elements after each row. odd_units: contiguous, but axes of length 1 carry stride 7. expanded: one of N, C repeated
with stride 0."""

TAGS = {"nhwc": "NHWC"}
"""Layouts that come with a format tag; all tensors of a call share it."""

CONTIGUOUS = Layout("contiguous")
