"""Rules by which classes of factors cannot meet in one call: `pairs.py` seeks a case for all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, permutations

import numpy as np

from poolproof.references.windows import Windowed
from poolproof.reports.rows.factors import BY_NAME, FACTORS, LAYOUTS, SHARED, Factor, Scope
from poolproof.reports.rows.features import GAP
from poolproof.reports.rows.meetings import PLACES, TOGETHER, Flags

Parts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Rule:
    """Classes that no call has together, by factor: one of each; ``holds`` for the calls of a scope."""

    reason: str
    parts: Parts
    holds: Callable[[Scope], bool] = lambda _: True


def _whole(name: str) -> dict[str, Sequence[str]]:
    return {name: BY_NAME[name].classes}


def _others(name: str, *classes: str) -> dict[str, list[str]]:
    """Return all classes of a factor but these."""
    return {name: [own for own in BY_NAME[name].classes if own not in classes]}


def _is_windowed(scope: Scope) -> bool:
    return scope.operator.windows is Windowed


def _is_adaptive(scope: Scope) -> bool:
    return not _is_windowed(scope)


def _is_forward(scope: Scope) -> bool:
    return not scope.operator.is_backward


def _is_planar(scope: Scope) -> bool:
    return scope.operator.spatial_rank == 2


def _has_tag(scope: Scope) -> bool:
    return scope.operator.takes_tags and "NHWC" in scope.tags


def _has_no_tag(scope: Scope) -> bool:
    return not _has_tag(scope)


def _dilates_nothing(scope: Scope) -> bool:
    return ("dilation", "past the stride") in scope.lacking


_WINDOWED = (
    *("kernel against stride", "dilation", "padding", "last window", "stride list", "stride along W"),
    *(f"a {name} that differs by axis" for name in ("kernel", "stride", "padding", "dilation")),
)
_ONE_PLANE, _ONE_WINDOW, _TAGGED = {"N*C": ["1"]}, {"windows per plane": ["1"]}, {"tensors tagged NHWC": ["yes"]}
_UNBATCHED, _ONE_CELL = {"batch": ["unbatched"]}, {"axis of length 1": ["all"]}
_SEVERAL = _others("windows over one cell", "1")
_DROPPED = "dropped in spite of ceil_mode"
_STAY_APART = "undilated windows that are not longer than their stride stay apart"
_TWO_AT_MOST = "over one cell lie two windows at most"


def _of_operators() -> Iterator[Rule]:
    for name in _WINDOWED:
        yield Rule("adaptive windows follow from the shapes", _whole(name), _is_adaptive)
    yield Rule("windows of one size have a stride", _whole("output against input"), _is_windowed)
    for name in ("indices", "gradients"):
        yield Rule("a forward takes no gradient", _whole(name), _is_forward)
    yield Rule("a plane of two axes", {"axis of length 1": ["D"]}, _is_planar)
    yield Rule("elements of an output have a place each", {"layout of indices": [SHARED]}, _is_forward)


def _of_undilated_windows() -> Iterator[Rule]:
    half = {"padding": ["half of an even kernel"], "last window": ["as without ceil_mode"]}
    for reason, parts in (
        (_STAY_APART, _SEVERAL | {"kernel against stride": ["<", "="]}),
        (_STAY_APART, _SEVERAL | {"stride list": ["empty"]}),
        ("undilated, the only window of an even kernel padded by half of it begins another", _ONE_WINDOW | half),
    ):
        yield Rule(reason, parts, _dilates_nothing)


def _of_windows() -> Iterator[Rule]:
    """Yield what follows from the arithmetic of windows of one size."""
    relation, dilation = "kernel against stride", "dilation"
    kernel, row, unlisted = {"kernel cells": ["1"]}, {"axis of length 1": ["W"]}, {"stride list": ["empty"]}
    longer, apart, meeting = [">", "differs by axis"], "within the stride", "of overlapping windows"
    long_row, multiple = _others("windows per row", "1 to 254"), _others("windows per row as a multiple", "of none")
    for reason, parts in (
        ("a kernel of one cell is not longer than its stride", kernel | {relation: longer}),
        ("a kernel of one cell cannot be dilated", kernel | _others(dilation, "none")),
        ("padding is at most half of a kernel", kernel | _others("padding", "none")),
        ("padding is at most half of a kernel", kernel | {"a padding that differs by axis": ["yes"]}),
        ("a kernel of one cell has one length", kernel | {"a kernel that differs by axis": ["yes"]}),
        ("a window of one cell lies inside or is dropped", kernel | {"last window": ["added by ceil_mode"]}),
        ("windows of one cell do not meet", kernel | _SEVERAL),
        ("windows that stay apart do not meet", _SEVERAL | {dilation: [apart]}),
        ("a kernel that is not longer than its stride does not overlap", {relation: ["<", "="], dilation: [meeting]}),
        ("a kernel that is longer than its stride overlaps", {relation: longer, dilation: [apart, "past the stride"]}),
        ("a dilated kernel is longer than the kernel", {relation: ["="], dilation: [apart]}),
        ("no stride means that of the kernel", unlisted | _others(relation, "=")),
        ("no stride means that of the kernel", unlisted | {dilation: [apart, meeting]}),
        ("one value is for all axes", {"stride list": ["one value"], "a stride that differs by axis": ["yes"]}),
        ("no padding does not differ", {"padding": ["none"], "a padding that differs by axis": ["yes"]}),
        (_TWO_AT_MOST, row | long_row),
        (_TWO_AT_MOST, row | multiple),
        (_TWO_AT_MOST, _ONE_CELL | long_row),
        (_TWO_AT_MOST, _ONE_CELL | multiple),
        (_TWO_AT_MOST, _ONE_CELL | {"windows per plane": ["256", "257 and more"]}),
        (_TWO_AT_MOST, _ONE_CELL | {"windows over one cell": ["17 and more"]}),
        ("a window holds the only cell", _ONE_CELL | {"last window": ["cells behind it"]}),
        (_STAY_APART, _SEVERAL | {relation: ["<", "="], dilation: ["none"]}),
        (
            "windows of one cell, one cell apart, cover a plane",
            kernel | {relation: ["="], "last window": ["cells behind it", _DROPPED]},
        ),
        (
            "without padding a window that is dropped is behind a gap",
            {relation: ["=", ">"], "padding": ["none"], "last window": [_DROPPED]},
        ),
        (
            "along a row lies a window more than cells at most",
            {"plane cells": ["1 to 255"], "windows per row": ["257 and more"]},
        ),
    ):
        yield Rule(reason, parts, _is_windowed)
    corner = _ONE_CELL | {"windows over one cell": ["5 to 16"]}
    yield Rule(_TWO_AT_MOST, corner, lambda scope: _is_windowed(scope) and _is_planar(scope))
    cube = {"kernel cells": ["256"], "a kernel that differs by axis": ["no"]}
    yield Rule("256 is no cube", cube, lambda scope: _is_windowed(scope) and not _is_planar(scope))


def _of_adaptive_windows() -> Iterator[Rule]:
    output, meeting, kernel = "output against input", "windows over one cell", "kernel cells"
    ragged, longer = "does not divide it", "longer along some axis"
    two = "two windows at most meet along an axis that is no shorter"
    for reason, parts in (
        ("windows that divide a plane do not meet", {output: ["divides it"]} | _SEVERAL),
        ("windows that do not divide a plane meet", {output: [ragged, longer], meeting: ["1"]}),
        (two, {output: [ragged], meeting: ["17 and more"]}),
        ("one window is the plane", _ONE_WINDOW | {output: [ragged, longer]}),
        ("one window is the plane", _ONE_WINDOW | {kernel: ["1"]} | _others("W as a multiple", "of none")),
        ("windows of one cell divide a plane or are more than it has cells", {output: [ragged], kernel: ["1"]}),
        ("one cell is divided or shared", _ONE_CELL | {output: [ragged]}),
        ("a window has no more cells than its plane", _ONE_CELL | _others(kernel, "1")),
        (
            "a window has no more cells than its plane",
            {"plane cells": ["1 to 255"]} | _others(kernel, "1", "2 to 127", "128 to 255"),
        ),
    ):
        yield Rule(reason, parts, _is_adaptive)
    corner = {output: [ragged], meeting: ["5 to 16"]}
    yield Rule(two, corner, lambda scope: _is_adaptive(scope) and _is_planar(scope))


def _of_numbers() -> Iterator[Rule]:
    """Yield what follows from the meaning of the classes, whatever the windows."""
    row, plane, multiple = "windows per row", "windows per plane", "windows per row as a multiple"
    axis, shape = "axis of length 1", "shape of a plane"
    for reason, parts in (
        ("one window does not meet others", _ONE_WINDOW | _SEVERAL),
        ("a row has no more windows than a plane", _ONE_WINDOW | {row: ["255", "256", "257 and more"]}),
        ("a row has no more windows than a plane", {row: ["256", "257 and more"], plane: ["2 to 255"]}),
        ("windows per plane are rows of windows", {row: ["255", "257 and more"], plane: ["256"]}),
        ("1 is no multiple", _ONE_WINDOW | _others(multiple, "of none")),
        ("255 is no multiple", {row: ["255"]} | _others(multiple, "of none")),
        ("256 is a multiple of 32", {row: ["256"]} | _others(multiple, "of 32")),
        ("1 is no multiple", {axis: ["W", "all"]} | _others("W as a multiple", "of none")),
        ("a cell is no large plane", _ONE_CELL | _others("plane cells", "1 to 255")),
        ("lengths of 1 are the same", _ONE_CELL | {shape: ["H > W", "H < W"]}),
        ("nothing is shorter than 1", {axis: ["H"], shape: ["H = W", "H > W"]}),
        ("nothing is shorter than 1", {axis: ["W"], shape: ["H < W"]}),
        ("an empty batch has no planes", {"batch": ["empty"]} | _whole("N*C")),
        ("an empty batch has no planes", {"batch": ["empty"]} | _whole("N*C as a multiple")),
        ("several batches are several planes", {"batch": ["several"]} | _ONE_PLANE),
        ("one plane has one channel", _others("channels", "1") | _ONE_PLANE),
        ("64 has no odd divisor", {"channels": ["odd, below 32", "odd, above 32"], "N*C": ["64"]}),
        ("64 is a multiple of 32", {"N*C": ["64"]} | _others("N*C as a multiple", "of 32")),
        ("1 is no multiple", _ONE_PLANE | _others("N*C as a multiple", "of none")),
        ("32 is a multiple of 32", {"channels": ["32"]} | _others("N*C as a multiple", "of 32")),
        ("a tag names a batch axis", _TAGGED | _UNBATCHED),
        ("indices of one plane have a place each", _ONE_PLANE | {"layout of indices": [SHARED]}),
    ):
        yield Rule(reason, parts)
    yield Rule("a plane of one row and one column is one cell", {axis: ["W"], shape: ["H = W"]}, _is_planar)


def _of_layout(factor: Factor) -> Iterator[Rule]:
    """Yield what follows for a tensor from how it, and others, lie."""
    name, tensor = factor.name, factor.name.removeprefix("layout of ")
    yield Rule(f"no {tensor}", _whole(name), lambda scope: tensor not in scope.operator.tensors)
    yield Rule("a plane of two axes", {name: [f"{GAP}D"]}, _is_planar)
    yield Rule(
        "a mask has no strides",
        _others(name, "packed"),
        lambda scope: tensor in scope.operator.tensors and tensor not in scope.operator.strided,
    )
    yield Rule("a gap along N lies between batches", {name: [f"{GAP}N"], "batch": ["unbatched", "empty", "one"]})
    yield Rule("a gap along N lies between planes", {name: [f"{GAP}N"]} | _ONE_PLANE)
    gap = {name: [f"{GAP}C"]} | _ONE_PLANE
    yield Rule("a gap along C lies between planes", gap, _has_no_tag)
    yield Rule("a gap along C lies between planes", gap | {"tensors tagged NHWC": ["no"]}, _has_tag)
    yield Rule("a tag says itself that channels are last", {name: ["channels last"]} | _TAGGED)
    if tensor in ("grad_output", "indices", "out"):
        element = _ONE_WINDOW | _ONE_PLANE
        yield Rule("one element has no row or slice behind it", {name: [f"{GAP}D", f"{GAP}H"]} | element)
        yield Rule("one element has no channel behind it", gap | element, _has_tag)
        if SHARED in factor.classes:
            yield Rule("one element has its place", {name: [SHARED]} | element)
    if SHARED in factor.classes:
        yield Rule("a tagged plane has a place for each element", _TAGGED | {name: [SHARED]} | _ONE_PLANE, _has_tag)
    yield Rule("a gap along C of one plane takes a tag", gap | _UNBATCHED, _has_tag)
    for other in (each for each in LAYOUTS if each is not factor):
        untagged = {other.name: [own for own in ("channels last", SHARED) if own in other.classes]}
        yield Rule("a gap along C of one plane takes a tag", gap | untagged, _has_tag)


RULES = (
    *(*_of_operators(), *_of_undilated_windows(), *_of_windows(), *_of_adaptive_windows(), *_of_numbers()),
    *chain.from_iterable(map(_of_layout, LAYOUTS)),
)


class Rules:
    """The rules that hold in a scope, and what they leave."""

    def __init__(self, scope: Scope) -> None:
        absent: list[Parts] = [{name: [own]} for name, own in scope.lacking]
        self._parts = [*absent, *(rule.parts for rule in RULES if rule.holds(scope))]

    def excluded(self, classes: Mapping[str, str]) -> bool:
        """Tell whether no call has these classes together."""
        return any(all(classes.get(name) in own for name, own in parts.items()) for parts in self._parts)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The factors that have several classes."""
        absent = self.impossible(1)
        kept = Counter(name for (name, _), gone in zip(PLACES, absent, strict=True) if not gone)
        return tuple(factor for factor in FACTORS if kept[factor.name] > 1)

    def impossible(self, size: int) -> Flags:
        """Flag the classes that the rules keep apart, as `meetings.met_in` does, but in every order."""
        flags, anything = np.zeros((len(PLACES),) * size, np.bool_), range(len(PLACES))
        for parts in self._parts:
            if len(parts) <= size:
                places = [[PLACES.index((name, each)) for each in own] for name, own in parts.items()]
                flags[np.ix_(*places, *[anything] * (size - len(places)))] = True
        return np.logical_or.reduce([flags.transpose(order) for order in permutations(range(size))])

    def possible(self, size: int) -> Flags:
        """Flag what is left for different factors that have several classes; of three, for those that matter."""
        chosen = [factor.name for factor in self.factors if size < max(TOGETHER) or factor.matters]
        numbers = np.array([chosen.index(name) if name in chosen else -1 for name, _ in PLACES])
        flags = ~self.impossible(size)
        axes = np.ix_(*[numbers] * size)
        for axis, other in combinations(axes, 2):
            flags &= axis != other
        for axis in axes:
            flags &= axis >= 0
        return flags
