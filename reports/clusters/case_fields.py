"""The `case` of a row, read as data: the windows of a call along each axis, and how its tensors lie.

Nothing here knows how cases are made. A line that is no case, or one of another version, has fewer fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

AXES = "DHW"
"""Letters of the spatial axes; a 2-D call has the last two."""

Lengths = tuple[int, ...]

_SHARING = ("expanded", "overlapping")
_OFFSET = ("contiguous_slice", "channels_last_slice", "narrowed_")
_DENSE = ("contiguous", "contiguous_slice", "odd_units")
"""Names of layouts whose elements share memory, that have an offset of their own, that have no gap."""


@dataclass(frozen=True)
class Windows:
    """Lengths along each spatial axis; the four of ``kernel`` to ``dilation`` are empty where windows are adaptive."""

    size: Lengths
    count: Lengths
    kernel: Lengths = ()
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    ceil_mode: bool = False

    @property
    def is_adaptive(self) -> bool:
        return not self.kernel

    @cached_property
    def reach(self) -> Lengths:
        """Count the cells from the first to the last of a window: dilation (kernel - 1) + 1."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @cached_property
    def beyond(self) -> Lengths:
        """Count the cells by which the last window passes the end of the input; below 0 where cells remain."""
        axes = zip(self.count, self.stride, self.padding, self.reach, self.size, strict=True)
        return tuple((count - 1) * s - p + reach - size for count, s, p, reach, size in axes)


@dataclass(frozen=True)
class TensorLayout:
    """Layout of one tensor, by its name and the offset behind it."""

    text: str

    @property
    def name(self) -> str:
        return self.text.partition("+")[0]

    @property
    def has_gaps(self) -> bool:
        """Return whether its elements do not stand one behind the other in their order."""
        return self.name not in _DENSE

    @property
    def has_offset(self) -> bool:
        return "+" in self.text or self.name.startswith(_OFFSET)

    @property
    def repeats(self) -> bool:
        """Return whether several elements share memory."""
        return self.name.startswith(_SHARING)


def read_case(line: Any) -> Mapping[str, Any]:
    """Parse the JSON object of a `case`; empty where there is none."""
    try:
        case = json.loads(line)
    except (TypeError, ValueError, RecursionError):
        return {}
    return case if isinstance(case, dict) else {}


def windows_of(operator: str, case: Mapping[str, Any]) -> Windows | None:
    """Return the windows of a call of values; None for a call of the contract, and for fields that do not fit."""
    try:
        return _windows(case, 3 if "3d" in operator else 2)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def leading_of(operator: str, case: Mapping[str, Any]) -> Lengths:
    """Return ([N,] C) of a call that has windows."""
    return tuple(case["shape"][: -3 if "3d" in operator else -2])


def layouts_of(case: Mapping[str, Any]) -> dict[str, TensorLayout]:
    """Return the layouts of the tensors that are not contiguous."""
    layouts = case.get("layouts")
    return {tensor: TensorLayout(str(text)) for tensor, text in layouts.items()} if isinstance(layouts, dict) else {}


def _windows(case: Mapping[str, Any], rank: int) -> Windows:
    size = tuple(case["shape"][-rank:])
    if "output_size" in case:
        return Windows(size, tuple(case["output_size"]))
    kernel = _each(case["kernel_size"], rank)
    stride = _each(case.get("stride") or kernel, rank)
    padding, dilation = _each(case.get("padding") or (0,), rank), _each(case.get("dilation") or (1,), rank)
    ceil_mode = bool(case.get("ceil_mode"))
    axes = zip(size, kernel, stride, padding, dilation, strict=True)
    return Windows(size, tuple(_count(*axis, ceil_mode) for axis in axes), kernel, stride, padding, dilation, ceil_mode)


def _each(values: Sequence[int], rank: int) -> Lengths:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Count the windows along an axis (torch's ``pooling_output_shape``); with ceil_mode all begin in the input."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    count = -(-span // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def cells(lengths: Lengths) -> int:
    return prod(lengths)
