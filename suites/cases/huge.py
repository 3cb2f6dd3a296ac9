"""Calls at the sizes where counters and offsets of kernels end: 16, 20, 24 and 31 bits.

What each plan can afford differs: the smallest has these totals in float16 alone. Of tensors that 31 bits cannot count
in bytes, elements or windows the largest has all, the one before it what 12 GiB are enough to judge; where there is
less memory, a row says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from poolproof.references.formats import FORMATS
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.targets import ACCEPTANCE, SOAK, Target, target

CHEAPEST, COMMON = "float16", "float32"
"""The dtypes that stand for all where a plan can afford but one: the smallest, and the one that every product has."""

_PAST_24_BITS = (1 << 24) + 19


def huge(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the calls for an operator in one pair of dtypes.

    Their data cost little to make, and no plane is like the next: a lost one is missed.
    """
    operator, data = scope.operator, {"values": "ties"}
    if operator.is_backward:
        data = {"values": "constant", "gradient": "integers", "indices": "in_window"}
    return [
        target(scope, dtype, index_dtype, name, 1, plan_cases, shape=shape, attributes=windows.passed(), **data)
        for name, plan_cases, shape, windows in _calls(operator, dtype)
    ]


def _calls(operator: Operator, dtype: str) -> Iterator[tuple[str, int, Lengths, Windows]]:
    """Yield (name, ``plan_cases``, shape of ``self``, windows)."""
    always = 0 if dtype == CHEAPEST else ACCEPTANCE
    for planes in (65535, 65536):
        yield f"{planes:,} planes", ACCEPTANCE, *_planes(operator, planes, 4, 2)
    yield "65,537 planes, past 2^20 elements", always, *_planes(operator, 65537, 16, 2)
    yield "planes past 2^24 elements", always, *_planes(operator, 4099, 4096, 8)
    line = (*(1,) * (operator.spatial_rank - 1), _PAST_24_BITS)
    yield "an axis past 2^24", ACCEPTANCE, (1, 1, *line), _ALONG[operator.windows](operator.spatial_rank)
    planes = 2048 // FORMATS[dtype].dtype.itemsize + 1
    past = ACCEPTANCE if dtype == COMMON and not operator.is_backward and operator.indices.has_layout else SOAK
    yield "a tensor past 2^31 bytes", past, *_planes(operator, planes, 1 << 20, 64)
    if dtype == COMMON:
        yield "windows past 2^31 bytes", SOAK, *_windows(operator, planes)
    if dtype == CHEAPEST:
        yield "a tensor past 2^31 elements", SOAK, *_planes(operator, 2049, 1 << 20, 64)
        yield "windows past 2^31", SOAK, *_windows(operator, 2049)


def _windows(operator: Operator, planes: int) -> tuple[Lengths, Windows]:
    """Lay out so many planes of 2^20 windows each, of as few cells as they can have."""
    flat, side = (1,) * (operator.spatial_rank - 2), 1 << 10
    of_kind: Mapping[type[Windows], tuple[Lengths, Windows]] = {
        Windowed: ((*flat, side, side + 1), Windowed((*flat, 1, 2), (1,))),
        Adaptive: ((*flat, 2, 2), Adaptive((*flat, side, side))),
    }
    spatial, windows = of_kind[operator.windows]
    return (1, planes, *spatial), windows


def _planes(operator: Operator, planes: int, cells: int, window: int) -> tuple[Lengths, Windows]:
    """Lay out so many planes of so many cells, in windows of some cells along each axis, side by side."""
    spatial = _plane(operator.spatial_rank, cells, window)
    windows: Windows = operator.windows.tiling(spatial, window)
    return (1, planes, *spatial), windows


def _plane(rank: int, cells: int, window: int) -> Lengths:
    """Choose lengths that are multiples of the window, the last axis the longest."""
    shortest = (window,) * (rank - 2)
    side = window
    while side * side * prod(shortest) < cells:
        side *= 2
    return *shortest, max(cells // side // prod(shortest), window), side


_ALONG: Mapping[type[Windows], Callable[[int], Windows]] = per_kind(
    "windows along one axis",
    {
        Windowed: lambda rank: Windowed((*(1,) * (rank - 1), 3), (*(1,) * (rank - 1), 64)),
        Adaptive: lambda rank: Adaptive((*(1,) * (rank - 1), 4097)),
    },
)
