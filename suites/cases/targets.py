"""Fixed calls: examples of the published pages, and geometries that kernels are suspected in.

An example that its page prints with an illegal index is made with a legal one instead. A target is the smallest call
that is known to reach the branch of its name; drawn cases reach most of these branches too, but not surely. The
layers of networks (`models`) and the sizes at which offsets overflow (`huge`) are targets, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.case import Case


@dataclass(frozen=True)
class Target:
    """A case under a name, repeated ``repeats`` times where the implementation claims to be deterministic.

    Plans with fewer than ``plan_cases`` cases leave it out.
    """

    name: str
    case: Case
    repeats: int = 1
    plan_cases: int = 0


def target(
    scope: Scope, dtype: str, index_dtype: str, name: str, repeats: int = 1, plan_cases: int = 0, **fields: Any
) -> Target:
    """Name the case of these fields."""
    case = Case(operator=scope.operator.name, dtype=dtype, index_dtype=index_dtype, **fields)
    return Target(name, case, repeats, plan_cases)


class KnownGeometry(NamedTuple):
    """A windowed geometry that somebody's tests take to reach one branch of a library."""

    branch: str
    spatial: tuple[int, ...]
    windows: Windowed


KNOWN_GEOMETRIES = (
    KnownGeometry("cut kernel", (5, 66, 132), Windowed((5, 1, 6), (8, 13, 18))),
    KnownGeometry("cut kernel", (10, 78, 146), Windowed((5, 1, 6), (8, 13, 18), (1, 0, 1))),
    KnownGeometry("normal, one plane at once", (1, 15, 15), Windowed((1, 9, 9), (1, 1, 1), (0, 4, 4))),
    KnownGeometry("normal, without overlap", (16, 90, 16), Windowed((1, 2, 2), (1, 2, 2))),
    KnownGeometry("normal, with overlap", (16, 9, 9), Windowed((1, 3, 3), (1, 2, 2))),
    KnownGeometry("scatter", (23, 20, 8), Windowed((22, 19, 4), (22, 19, 4))),
    KnownGeometry("scatter, rows cut", (40, 38, 16), Windowed((20, 19, 4), (20, 19, 4))),
    KnownGeometry("scatter, columns cut", (1, 40, 1200), Windowed((1, 40, 40), (1, 40, 40))),
    KnownGeometry("simd, aligned", (8, 10, 514), Windowed((2, 2, 2), (2, 2, 2))),
    KnownGeometry("simd, unaligned", (10, 11, 512), Windowed((2, 4, 5), (1, 2, 3), (1, 2, 2))),
    KnownGeometry("simd, unaligned", (9, 10, 480), Windowed((3, 2, 7), (1, 2, 4))),
    KnownGeometry("simd, whole planes", (4, 4, 4), Windowed((2, 2, 2), (2, 2, 2), (1, 1, 1))),
    KnownGeometry("simd, overhang", (2, 33, 257), Windowed((2, 2, 2), (2, 2, 2), ceil_mode=True)),
    KnownGeometry("scalar", (64, 64), Windowed((64, 64), (64, 64))),
    KnownGeometry("simt", (2, 22), Windowed((2, 6), (2, 6), ceil_mode=True)),
    KnownGeometry("simt, a large plane of few windows", (192, 192), Windowed((3, 3), (13, 13))),
    KnownGeometry("simt, a large plane of few windows", (256, 255), Windowed((2, 3), (17, 17))),
    KnownGeometry("vector", (64, 64), Windowed((3, 3), (2, 2), (1, 1))),
    KnownGeometry("channels last", (18, 30), Windowed((2, 2), (2, 2), (1, 1))),
    KnownGeometry("kernel of one", (64, 3), Windowed((1, 1), (1, 1))),
)
"""After the tiling tests that the operator library publishes, made smaller where the branch stays the same."""


def known_geometries(rank: int) -> list[KnownGeometry]:
    return [geometry for geometry in KNOWN_GEOMETRIES if len(geometry.spatial) == rank]


ACCEPTANCE, SOAK = 800, 8000
"""``plan_cases`` of targets too costly for the smoke plan, and of those that take gigabytes and minutes."""


def examples(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the example of the operator's own page, in any pair of dtypes."""
    printed = _EXAMPLES.get(scope.operator.name)
    return [target(scope, dtype, index_dtype, "page example", **printed)] if printed else []


def targets(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    return [target(scope, dtype, index_dtype, name, **fields) for name, fields in _targets_of(scope.operator)]


_PLANAR_SELF = (0.0850, -0.5147, -0.0212, -0.5654, -0.3222, 0.5847, 1.7510, 0.9954, 0.1842, 0.8392, 0.4835, 0.9213)
_PAIR = ("grad_output", (0.4757, 0.1726))
_SINGLE = ("grad_output", (0.4757,))
_PLANAR = {"shape": (1, 1, 4, 3), "attributes": Windowed((2, 2), (2, 2), (0, 0))}
_VOLUME = {"shape": (1, 1, 2, 2, 2), "attributes": Windowed((2, 2, 2), (2, 2, 2), (0, 0, 0))}
_ADAPTIVE_PLANE = {"shape": (1, 1, 2, 2), "attributes": Adaptive((1, 1))}
_ADAPTIVE_VOLUME = {"shape": (1, 1, 2, 2, 2), "attributes": Adaptive((1, 1, 1))}

_EXAMPLES: dict[str, dict[str, Any]] = {
    "MaxPool3dWithArgmaxBackward": {**_VOLUME, "literals": (_SINGLE, ("indices", (6,)))},
    "MaxPool2dWithIndicesBackward": {**_PLANAR, "literals": (_PAIR, ("indices", (0, 6)), ("self", _PLANAR_SELF))},
    # The page's mask is all ones, an index of -1; the indices of the page above stand in for it.
    "MaxPool2dWithMaskBackward": {**_PLANAR, "literals": (_PAIR, ("indices", (0, 6)), ("self", _PLANAR_SELF))},
    # The page's index is 6, in a plane of four cells.
    "AdaptiveMaxPool2dBackward": {**_ADAPTIVE_PLANE, "literals": (_SINGLE, ("indices", (3,)))},
    "AdaptiveMaxPool3dBackward": {**_ADAPTIVE_VOLUME, "literals": (_SINGLE, ("indices", (6,)))},
}
"""The pages print no more digits than these. Tags are those that this suite gives all tensors, not the pages' ND."""


Named = Iterator[tuple[str, dict[str, Any]]]
"""Names with the fields of a case, and ``repeats``."""


def _targets_of(operator: Operator) -> Named:
    rank, anywhere = operator.spatial_rank, _ANYWHERE[operator.windows]
    given = {"indices": "in_window"} if operator.is_backward else {}
    for name, fields in anywhere(rank):
        yield name, {**fields, **given}
    spatial = (2, *(1,) * (rank - 1))
    unit = {"shape": (1, *spatial), "attributes": operator.windows.tiling(spatial, 1)}
    odd = {**unit, "layouts": ((operator.inputs[0], "odd_units"),)}
    yield "strides of axes of length 1 that mean nothing", odd
    if operator.is_backward:
        backward, overlapping = _BACKWARD[operator.windows]
        yield from backward(rank)
        yield from _tagged(operator) if operator.takes_tags else ()
        rows = (*(1,) * (rank - 2), 64, 61)
        every = {"shape": (1, 1, *rows), "attributes": operator.windows.tiling(rows, 1), "indices": "in_window"}
        yield "an index in every cell, in rows of a length with a reciprocal rounded down", every
        usual = {"shape": (1, 2, *(7,) * rank), "attributes": overlapping(rank)}
        yield "gaps in grad_input", {**usual, "layouts": (("grad_input", "sliced"),)}
        yield "sums near the largest number", {**usual, "gradient": "near_overflow", "indices": "crowded"}
        yield "infinities, NaN and negative zeros", {**usual, "gradient": "special", "indices": "in_window"}
    else:
        spatial, layouts = (4,) * rank, tuple((name, "channels_last") for name in sorted(operator.strided))
        lost = {"attributes": operator.windows.tiling(spatial, 2), "values": "negative_infinity", "layouts": layouts}
        # more channels than a vector register holds, so that its tail takes part too
        yield "nothing but negative infinities, channels last", {"shape": (1, 33, *spatial), **lost}
        yield from _tagged_forward(operator) if operator.takes_tags else ()


def _planes() -> Named:
    for dilation in (2, 3):
        spread = {"shape": (1, 2, 64, 64), "attributes": Windowed((2, 2), (2, 2), dilation=(dilation,))}
        yield f"dilated kernel longer than the stride, {dilation}", {**spread, "indices": "crowded"}
    rows = {"shape": (1, 1, 12, 6000), "attributes": Windowed((3, 3), (1, 1), (1, 1))}
    order = {"gradient": "wide", "indices": "crowded", "deterministic": True, "repeats": 50}
    yield "rows cut across cores, deterministic", {**rows, **order}
    plane = {"shape": (2, 3, 64, 64), "attributes": Windowed((64, 64), (64, 64))}
    yield "one window over a plane, again and again", {**plane, "gradient": "uniform", "repeats": 200}
    usual = {"shape": (1, 1, 33, 33), "attributes": Windowed((3, 3), (2, 2), (1, 1), (2, 2))}
    yield "dilated kernel of a usual layer", {**usual, "indices": "crowded"}
    cut = {"shape": (1, 1, 300, 300), "attributes": Windowed((180, 180), (60, 60))}
    yield "large windows over a plane cut along its rows", {**cut, "indices": "in_window", "deterministic": True}
    steps = {"shape": (1, 2, 32, 32), "attributes": Windowed((3, 3), (1, 1), (1, 1))}
    yield "vectors that follow each other, again and again", {**steps, **order}


def _tagged(operator: Operator) -> Named:
    layouts = tuple((name, "nhwc") for name in sorted(operator.tensors))
    few = {"shape": (1, 2, 4, 4), "attributes": Windowed((2, 2), (2, 2))}
    yield "two channels, tagged as last", {**few, "layouts": layouts, "indices": "in_window"}
    spread = {"shape": (1, 40, 3, 1), "attributes": Windowed((2, 1), (1, 1), dilation=(2, 1))}
    yield "dilated kernel over a plane cut along its rows, tagged", {**spread, "layouts": layouts, "indices": "last"}


def _tagged_forward(operator: Operator) -> Named:
    flat = (1,) * (operator.spatial_rank - 2)
    many = {"layouts": tuple((name, "nhwc") for name in sorted(operator.tensors))}
    padded = Windowed((*flat, 1, 5), (1,), (*(0,) * len(flat), 0, 2))
    yield "padding larger than the stride, tagged", {**many, "shape": (1, 33, *flat, 64, 3), "attributes": padded}
    large = {**many, "shape": (1, 33, *flat, 40, 40), "attributes": Windowed((*flat, 30, 30), (*flat, 10, 10))}
    yield "large windows of negative infinities, tagged", {**large, "values": "negative_infinity"}


def _volumes() -> Named:
    spread = {"shape": (1, 2, 9, 9, 9), "attributes": Windowed((2,), (2,), dilation=(2,))}
    yield "dilated kernel longer than the stride", {**spread, "indices": "shared"}
    slices = {"shape": (1, 1, 8, 40, 40), "attributes": Windowed((3, 3, 3), (1,), (1,))}
    order = {"gradient": "wide", "indices": "crowded", "deterministic": True, "repeats": 50}
    yield "slices cut across cores, deterministic", {**slices, **order}
    ragged = {"shape": (1, 1, 33, 65, 66), "attributes": Windowed((2, 4, 8), ceil_mode=True)}
    yield "ragged last windows that do not overlap", {**ragged, "indices": "last"}
    for kernel in ((6, 6, 6), (5, 7, 7), (4, 8, 8), (6, 6, 8)):
        volume = {"shape": (1, 2, 8, 16, 16), "indices": "in_window"}
        side_by_side, overlapping = Windowed(kernel), Windowed(kernel, (1, 2, 2))
        yield f"kernel of {prod(kernel)} cells, side by side", {**volume, "attributes": side_by_side}
        yield f"kernel of {prod(kernel)} cells, overlapping", {**volume, "attributes": overlapping}
    for length in (24_573, 32_763):
        row = {"shape": (1, 1, 1, 1, length), "attributes": Windowed((1,), (1,), dilation=(1, 1, 2))}
        yield f"row of {length:,} windows", {**row, "indices": "in_window"}
    cut = {"shape": (1, 1, 5, 66, 132), "attributes": Windowed((5, 1, 6), (8, 13, 18)), "indices": "in_window"}
    yield "cut kernel, gradients near the largest number", {**cut, "gradient": "near_overflow"}


def _windowed_anywhere(rank: int) -> Named:
    for geometry in known_geometries(rank):
        yield geometry.branch, {"shape": (1, 2, *geometry.spatial), "attributes": geometry.windows.passed()}

    flat = (1,) * (rank - 2)
    rows, columns = Windowed((*flat, 1, 3), (1,)), Windowed((*flat, 3, 3), (*flat, 2, 2))
    yield from _long_planes(rank, rows, columns, Windowed((*flat, 1, 4200), (*flat, 1, 1050)))
    cut = Windowed((*flat, 32, 32), (*flat, 32, 32), ceil_mode=True)
    yield "few large windows, cut off by ceil_mode", {"shape": (1, 2, *flat, 40, 32), "attributes": cut}
    large = Windowed((*flat, 171, 172), padding=(0,) * (rank - 1) + (1,))  # unpadded, cores share it on 950
    parts = {"shape": (1, 1, *flat, 171, 172), "attributes": large, "values": "negative_infinity"}
    yield "a window of negative infinities, taken in parts", parts


def _long_planes(rank: int, rows: Windows, columns: Windows, windows: Windows) -> Named:
    """Yield planes that are long along one axis: past what 12, 15 and 16 bits count of windows, rows and cells."""
    flat = (1,) * (rank - 2)
    yield "rows of 32,770 windows, past 2^16 cells", {"shape": (1, 1, *flat, 3, 32_772), "attributes": rows}
    yield "rows of 17 cells, past 2^16 cells", {"shape": (1, 1, *flat, 4099, 17), "attributes": columns}
    long = {"shape": (1, 2, *flat, 1, 8400), "attributes": windows, "values": "ascending"}
    yield "windows of more than 2^12 cells", long


def _adaptive_anywhere(rank: int) -> Named:
    flat = (1,) * (rank - 2)
    yield from _long_planes(rank, *(Adaptive((*flat, *out)) for out in ((3, 32_770), (2050, 5), (1, 2))))
    deep = {"shape": (1, 1, *(3,) * (rank - 2), 3, 16), "attributes": Adaptive((*flat, 2, 16)), "values": "all_nan"}
    yield "windows of NaN, of several slices and rows, a whole block side by side", deep
    wide = {"shape": (1, 64, *flat, 13, 13), "attributes": Adaptive((*flat, 2, 2))}
    yield "windows of which one of as many planes as lanes fills a buffer", wide


def _adaptive_backward(rank: int) -> Named:
    for size, windows in ((1, 300), (2, 3000), (4, 300)):
        line = (*(1,) * (rank - 1), windows)
        many = {"shape": (1, 1, *(1,) * (rank - 1), size), "attributes": Adaptive(line), "indices": "first"}
        for gradient in ("ones", "uniform"):
            yield f"{windows} windows on {size} cells, {gradient}", {**many, "gradient": gradient}
    uneven = {"shape": (2, 3, *(7,) * rank), "attributes": Adaptive((5,) * rank), "indices": "crowded"}
    yield "windows that do not divide the plane", {**uneven, "gradient": "integers"}


_ANYWHERE = per_kind("targets", {Windowed: _windowed_anywhere, Adaptive: _adaptive_anywhere})
"""The targets of forwards and backwards, for a number of spatial axes."""

_BACKWARD: Mapping[type[Windows], tuple[Callable[[int], Named], Callable[[int], Windows]]] = per_kind(
    "targets of backwards",
    {
        Windowed: (lambda rank: _volumes() if rank == 3 else _planes(), lambda _: Windowed((3,), (1,))),
        Adaptive: (_adaptive_backward, lambda rank: Adaptive((9,) * rank)),
    },
)
"""The targets of backwards alone, and windows that overlap on a plane of 7 cells along each axis."""
