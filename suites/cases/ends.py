"""Calls in which one quantity is past what a field of some bits counts.

A kernel keeps lengths, kernels, strides, paddings, dilations, output sizes, gaps, offsets and products of them in
fields, and each field ends somewhere. Every quantity meets every end here, in each operator, dtype and index dtype. The
smoke plan asks a share of those that are cheap, another share in each pair of dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import NamedTuple
from zlib import crc32

from poolproof.references.geometry import expand, pooled_size
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.targets import ACCEPTANCE, SOAK, Target, target

BITS = (8, 12, 16, 20)
"""Ends that every quantity meets."""

PAST = {bits: (1 << bits) + 3 for bits in (7, 10, *BITS)}
"""Bits -> a number past them that is no multiple of a vector."""

CHEAP, AFFORDABLE = 1 << 18, 1 << 25
"""Cells in memory and in windows: the most in a call of a smoke plan, and of an acceptance plan."""

SHARES = 3
"""The smoke plan runs every third cheap call, others in each pair of dtypes."""


class Past(NamedTuple):
    """A call with one quantity past its end; ``name`` names both, ``gap`` counts unused cells between its own."""

    name: str
    shape: Lengths
    windows: Windows
    layouts: tuple[tuple[str, str], ...] = ()
    gap: int = 0

    @property
    def cost(self) -> int:
        """Count the cells in memory, and those that windows look at."""
        spatial = self.shape[2:]
        return prod(self.shape[:2]) * (prod(spatial) + prod(_taps(self.windows, spatial))) + self.gap


def ends(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the calls for an operator in one pair of dtypes."""
    operator, found = scope.operator, []
    data = {"values": "ties"}
    if operator.is_backward:
        data = {"values": "constant", "gradient": "integers", "indices": "in_window"}
    of_windows = _OF_WINDOWS[operator.windows](operator.spatial_rank)
    for past in (*_of_planes(operator), *of_windows, *_of_layouts(operator)):
        is_own = crc32(f"{operator.name} {dtype} {index_dtype} {past.name}".encode()) % SHARES == 0
        needed = 0 if is_own and past.cost <= CHEAP else ACCEPTANCE if past.cost <= AFFORDABLE else SOAK
        fields = {"shape": past.shape, "attributes": past.windows.passed(), "layouts": past.layouts}
        found.append(target(scope, dtype, index_dtype, past.name, 1, needed, **fields, **data))
    return found


def _taps(windows: Windows, spatial: Lengths) -> Iterator[int]:
    """Yield for each axis how many coordinates its windows visit, each as often as it is visited."""
    match windows:
        case Adaptive():
            for size, count in zip(spatial, windows.output_size, strict=True):
                yield size + 2 * count
        case Windowed():
            kernel = expand(windows.kernel_size, len(spatial))
            lists = windows.stride or kernel, windows.padding or (0,), windows.dilation or (1,)
            others = (expand(each, len(spatial)) for each in lists)
            for size, length, stride, padding, dilation in zip(spatial, kernel, *others, strict=True):
                yield length * pooled_size(size, length, stride, padding, dilation, windows.ceil_mode)


def _of_planes(operator: Operator) -> Iterator[Past]:
    spatial = (2,) * operator.spatial_rank
    for bits in BITS:
        end = PAST[bits]
        for name, planes in {"batch": (end, 1), "channels": (1, end), "planes": (5, end // 5 + 1)}.items():
            yield Past(f"{name} past {bits} bits", (*planes, *spatial), operator.windows.tiling(spatial, 2))


def _axes(rank: int) -> Iterator[tuple[str, Callable[..., Lengths]]]:
    """Yield for each axis its letter, and what makes a list of one value there and another elsewhere."""
    for axis, letter in enumerate("dhw"[-rank:]):
        yield letter, lambda own, others=1, axis=axis: (*(others,) * axis, own, *(others,) * (rank - 1 - axis))


def _windowed(rank: int) -> Iterator[Past]:
    for (letter, along), (bits, end) in product(_axes(rank), PAST.items()):
        calls = {
            "kernel": (end + 5, Windowed(along(end), along(end // 4))),
            "length": (end, Windowed(along(3), along(end // 4))),
            "windows": (end, Windowed((1,), (1,))),
            "stride": (end + 2, Windowed((1,), along(end))),
            "dilation": (end + 3, Windowed(along(2), (1,), (), along(end))),
            "padding": (5, Windowed(along(2 * end), along(2), along(end, 0))),
        }
        for name, (length, windows) in calls.items():
            if bits in BITS or name == "kernel":
                yield Past(f"{name} along {letter} past {bits} bits", (1, 2, *along(length, 2)), windows)
    flat = (1,) * (rank - 2)
    for bits in BITS:
        side = (1 << bits // 2) + 1
        plane = (1, 2, *flat, side, side)
        yield Past(f"cells of a plane past {bits} bits", plane, Windowed((*flat, 3, 3), (*flat, side // 2, side // 2)))
        yield Past(f"windows of a plane past {bits} bits", plane, Windowed((1,), (1,)))
        yield Past(f"cells of a window past {bits} bits", plane, Windowed((*flat, side, side)))


def _adaptive(rank: int) -> Iterator[Past]:
    for (letter, along), bits in product(_axes(rank), BITS):
        end, root = PAST[bits], (1 << bits // 2) + 1
        calls = {
            "length": (end, 3),
            "windows": (5, end),
            "length and windows": (end, end - 1),
            "length x windows": (root + 1, root),
        }
        for name, (length, windows) in calls.items():
            shape = (1, 2, *along(length, 2))
            yield Past(f"{name} along {letter} past {bits} bits", shape, Adaptive(along(windows)))
    for letter, along in _axes(rank):
        for bits, root in ((24, 4097), (31, 46_342), (32, 65_538)):
            shape = (1, 1, *along(root + 1, 1))
            yield Past(f"length x windows along {letter} past {bits} bits", shape, Adaptive(along(root)))
    flat = (1,) * (rank - 2)
    for bits in BITS:
        side = (1 << bits // 2) + 1
        plane = (1, 2, *flat, side, side)
        yield Past(f"cells of a plane past {bits} bits", plane, Adaptive((*flat, 3, 3)))
        yield Past(f"windows of a plane past {bits} bits", (1, 2, *flat, 5, 5), Adaptive((*flat, side, side)))


_OF_WINDOWS: Mapping[type[Windows], Callable[[int], Iterator[Past]]] = per_kind(
    "quantities", {Windowed: _windowed, Adaptive: _adaptive}
)


def _of_layouts(operator: Operator) -> Iterator[Past]:
    """Yield views with long gaps behind rows or planes, or a large offset, one tensor at a time."""
    spatial = (*(2,) * (operator.spatial_rank - 2), 4, 6)
    for tensor, bits in product(operator.strided, BITS):
        for name, layout, times in (
            ("gap behind rows", f"apart_w{bits}", 2 * prod(spatial[:-1])),
            ("gap behind planes", f"apart_h{bits}", 2 * spatial[-1]),
            ("offset", f"contiguous+{PAST[bits]}", 1),
        ):
            gap = times * PAST[bits]
            windows = operator.windows.tiling(spatial, 2)
            yield Past(f"{name} of {tensor} past {bits} bits", (1, 2, *spatial), windows, ((tensor, layout),), gap)
