"""Factors: what kernels branch on, each with its classes, and the rules by which classes cannot meet in one call.

A factor reads its class from the features of a row (`features`), which diagnosis reads, too; a call that lacks one of
them has no class of it. A class or a combination that no rule excludes can be: a test makes a case of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from poolproof.references.contract.expectation import CONTRACTS
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.references.windows import Windowed
from poolproof.reports.rows.features import GAP, TensorLayout, Value

Features = Mapping[str, Value]
ClassOf = Callable[[Features], str | None]


@dataclass(frozen=True)
class Factor:
    """One thing that kernels branch on; ``matters``: it chooses their path or cuts their tiles, and counts in triples.

    ``class_of`` returns None, or raises KeyError, where a call has no such thing. ``words``: those by which a case says
    a class, where it has a word for it.
    """

    name: str
    classes: tuple[str, ...]
    class_of: ClassOf
    matters: bool = False
    words: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def _flag(feature: str, *, matters: bool = False) -> Factor:
    return Factor(feature, ("no", "yes"), lambda features: "yes" if features[feature] else "no", matters)


def _sizes(feature: str, *begins: int, matters: bool = False) -> Factor:
    """Cut a number into classes, each of which begins at one of ``begins``."""
    named = [str(low) if high - low == 1 else f"{low:,} to {high - 1:,}" for low, high in pairwise(begins)]
    classes = (*named, f"{begins[-1]:,} and more")

    def class_of(features: Features) -> str | None:
        number = int(features[feature])
        return classes[sum(begin <= number for begin in begins) - 1] if number else None

    return Factor(feature, classes, class_of, matters)


def _multiple(feature: str, *, matters: bool = False) -> Factor:
    """Say of what a number is a multiple: of the lanes of a vector, of a half or of a quarter of them."""
    divisors = {f"of {divisor}": divisor for divisor in (32, 16, 8)}

    def class_of(features: Features) -> str | None:
        number = int(features[feature])
        return (
            next((name for name, divisor in divisors.items() if number % divisor == 0), "of none") if number else None
        )

    return Factor(f"{feature} as a multiple", (*divisors, "of none"), class_of, matters)


def _words(name: str, classes: Mapping[str, Sequence[str]], feature: str = "") -> Factor:
    """Group the words of a feature; a spelling with numbers counts by the word before them."""
    grouped = {word: own for own, words in classes.items() for word in words}

    def class_of(features: Features) -> str | None:
        word = str(features.get(feature or name))
        return grouped.get(word, grouped.get(word.partition("(")[0]))

    return Factor(name, tuple(classes), class_of, words=classes)


def _relation(features: Features) -> str:
    found = bool(features["stride < kernel"]), bool(features["stride > kernel"])
    return {(False, False): "=", (True, False): ">", (False, True): "<", (True, True): "differs by axis"}[found]


def _dilation(features: Features) -> str:
    if not features["dilation > 1"]:
        return "none"
    if features["kernel <= stride < dilated kernel"]:
        return "past the stride"
    return "of overlapping windows" if features["stride < dilated kernel"] else "within the stride"


def _padding(features: Features) -> str:
    if features["an even kernel padded by half of it"]:
        return "half of an even kernel"
    return "less" if features["padding"] else "none"


def _last_window(features: Features) -> str:
    if not features["ceil_mode"]:
        return "cells behind it" if features["cells behind the last window"] else "no cell behind it"
    if features["a window that ceil_mode adds"]:
        return "added by ceil_mode"
    return "dropped in spite of ceil_mode" if features["a window that ceil_mode drops"] else "as without ceil_mode"


def _output(features: Features) -> str:
    if features["an output longer than the input"]:
        return "longer along some axis"
    return "divides it" if features["an output that divides the input"] else "does not divide it"


def _batch(features: Features) -> str:
    if not features.get("a batch axis"):
        return "unbatched"
    return ("empty", "one", "several")[min(int(features["N"]), 2)]


def _channels(features: Features) -> str:
    number = int(features["C"])
    if number in (1, 32):
        return str(number)
    return f"{('even', 'odd')[number % 2]}, {('below', 'above')[number > 32]} 32"


def _shape(features: Features) -> str:
    height, width = int(features["H"]), int(features["W"])
    return f"H {'=' if height == width else '>' if height > width else '<'} W"


def _unit_axis(features: Features) -> str:
    short = [axis for axis in "WHD" if features.get(axis, 1) == 1]
    if {*short} >= {*"WH", *({"D"} & features.keys())}:
        return "all"
    return next((axis for axis in "WHD" if features.get(axis) == 1), "none")


def _layout(tensor: str) -> Factor:
    gaps = (f"{GAP}{axis}" for axis in "NCDHW")
    classes = ("packed", "packed, offset", "odd units", "channels last", "axes exchanged", *gaps)
    if tensor not in ("grad_input", "out"):
        classes = (*classes, _SHARED)
    return Factor(
        f"layout of {tensor}", classes, lambda features: str(features[f"arrangement of {tensor}"]), matters=True
    )


_SHARED = "elements shared"

EMPTY = ("batch", "empty")
"""The factor and the class of calls that have no elements."""

LAYOUTS = tuple(map(_layout, ("grad_output", "self", "indices", "grad_input", "out")))

FACTORS = (
    _words("index dtype", {name: (name,) for name in ("int32", "int64", "int8")}),
    _flag("deterministic mode"),
    _flag("tensors tagged NHWC", matters=True),
    Factor("batch", ("unbatched", "empty", "one", "several"), _batch, matters=True),
    Factor("channels", ("1", "odd, below 32", "even, below 32", "32", "odd, above 32", "even, above 32"), _channels),
    _sizes("N*C", 1, 2, 64, 65, matters=True),
    _multiple("N*C"),
    Factor("shape of a plane", ("H = W", "H > W", "H < W"), _shape),
    Factor("axis of length 1", ("none", "W", "H", "D", "all"), _unit_axis),
    _multiple("W", matters=True),
    _sizes("plane cells", 1, 256, 1 << 16),
    _sizes("windows per plane", 1, 2, 256, 257, matters=True),
    _sizes("windows per row", 1, 255, 256, 257),
    _multiple("windows per row"),
    _sizes("windows over one cell", 1, 2, 5, 17, matters=True),
    _sizes("kernel cells", 1, 2, 128, 256, 257, 1024, 4097, matters=True),
    Factor("kernel against stride", ("<", "=", ">", "differs by axis"), _relation, matters=True),
    Factor(
        "dilation", ("none", "within the stride", "past the stride", "of overlapping windows"), _dilation, matters=True
    ),
    Factor("padding", ("none", "less", "half of an even kernel"), _padding, matters=True),
    Factor(
        "last window",
        (
            *("no cell behind it", "cells behind it"),
            *("as without ceil_mode", "added by ceil_mode", "dropped in spite of ceil_mode"),
        ),
        _last_window,
        matters=True,
    ),
    *(_flag(f"a {name} that differs by axis") for name in ("kernel", "stride", "padding", "dilation")),
    _words("stride list", {name: (name,) for name in ("empty", "one value", "a value per axis")}),
    _sizes("stride along W", 1, 32, 33),
    Factor(
        "output against input", ("divides it", "does not divide it", "longer along some axis"), _output, matters=True
    ),
    _words(
        "indices",
        {
            "of a forward": ("forward",),
            "anywhere": ("in_window",),
            "meeting": ("crowded", "shared", "lattice"),
            "at edges": ("first", "last", "plane_edges", "tile_borders"),
        },
        "indices recipe",
    ),
    _words(
        "gradients",
        {
            "exact": (
                *("integers", "one_hot", "ones", "colour_ids", "binary_weights", "base_four_weights"),
                *("whole", "filled"),
            ),
            "rounded": (
                *("pointed", "uniform", "positive", "wide", "big_among_ones", "cancellation", "rounding_probe"),
                *("backpropagated", "between", "gaussian"),
            ),
            "subnormal": ("subnormal",),
            "near overflow": ("near_overflow",),
            "NaN and infinities": ("special", "filled(nan)", "filled(inf)", "filled(-inf)"),
            "zeros of both signs": ("signed_zeros",),
        },
        "gradient recipe",
    ),
    _words(
        "self",
        {
            "finite": ("normal", "negative", "ascending", "descending", "batch_normalised", "between", "gaussian"),
            "tied": ("ties", "constant", "after_relu", "saturated", "whole", "filled"),
            "NaN": ("nan", "all_nan", "filled(nan)"),
            "infinite": (
                *("infinities", "negative_infinity", "mostly_negative_infinity", "filled(inf)", "filled(-inf)"),
            ),
            "subnormal": ("subnormals",),
        },
        "values recipe",
    ),
    *LAYOUTS,
)
"""Thresholds are those of known kernels: 64 lanes, repeat counters of 8 bits, fewer than 256 windows or cells of a
kernel, kernels of 128, 1,024 and 4,096 cells in forwards, strides of 32."""


@dataclass(frozen=True)
class Scope:
    """Calls of one operator: on a product or anywhere, with the tags that a backend takes and what it lacks.

    ``abilities`` are the items of those of a backend, as a run records them: what they do not name, it has.
    """

    operator: Operator
    index_dtypes: tuple[str, ...]
    tags: tuple[str, ...] = ("NHWC",)
    product: Product | None = None
    abilities: tuple[tuple[str, Any], ...] = ()

    def lacks(self, ability: str) -> bool:
        return (ability, False) in self.abilities

    @property
    def layouts(self) -> Sequence[str] | None:
        """Return the names of those that reach the implementation; None for all."""
        return dict(self.abilities).get("layouts")


Parts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Rule:
    """Classes that no call has together, by factor: one of each; ``holds`` for the calls of a scope."""

    reason: str
    parts: Parts
    holds: Callable[[Scope], bool] = lambda _: True


BY_NAME = {factor.name: factor for factor in FACTORS}


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
    clauses = CONTRACTS[f"aclnn{scope.operator.name}"].on(scope.product) if scope.product else ()
    wants_one = any(clause.name == "dilation.one" and clause.status is not None for clause in clauses)
    return wants_one or scope.lacks("dilation")


def _without_index_dtype(name: str) -> Callable[[Scope], bool]:
    return lambda scope: name not in scope.index_dtypes


def _without_ability(name: str) -> Callable[[Scope], bool]:
    return lambda scope: scope.lacks(name)


def _without_layout(kind: str) -> Callable[[Scope], bool]:
    return lambda scope: scope.layouts is not None and all(TensorLayout(name).kind != kind for name in scope.layouts)


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
    for index_dtype in BY_NAME["index dtype"].classes:
        yield Rule(f"no {index_dtype} indices here", {"index dtype": [index_dtype]}, _without_index_dtype(index_dtype))
    yield Rule("a plane of two axes", {"axis of length 1": ["D"]}, _is_planar)
    yield Rule("elements of an output have a place each", {"layout of indices": [_SHARED]}, _is_forward)


def _of_backends() -> Iterator[Rule]:
    yield Rule("no format tag here", _TAGGED, _has_no_tag)
    half = {"padding": ["half of an even kernel"], "last window": ["as without ceil_mode"]}
    for reason, parts in (
        ("no dilation here", _others("dilation", "none")),
        ("no dilation here", {"a dilation that differs by axis": ["yes"]}),
        (_STAY_APART, _SEVERAL | {"kernel against stride": ["<", "="]}),
        (_STAY_APART, _SEVERAL | {"stride list": ["empty"]}),
        ("undilated, the only window of an even kernel padded by half of it begins another", _ONE_WINDOW | half),
    ):
        yield Rule(reason, parts, _dilates_nothing)
    for reason, parts, ability in (
        ("no padding here", _others("padding", "none"), "padding"),
        ("no padding here", {"a padding that differs by axis": ["yes"]}, "padding"),
        ("no ceil_mode here", _others("last window", "no cell behind it", "cells behind it"), "ceil_mode"),
        ("a batch axis is needed here", _UNBATCHED, "unbatched"),
        ("no empty batch here", {"batch": ["empty"]}, "empty_batch"),
        ("a forward finds the indices here", _others("indices", "of a forward"), "indices"),
    ):
        yield Rule(reason, parts, _without_ability(ability))


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
        ("indices of one plane have a place each", _ONE_PLANE | {"layout of indices": [_SHARED]}),
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
    for kind in factor.classes[1:]:
        yield Rule("such a layout does not reach the implementation", {name: [kind]}, _without_layout(kind))
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
        if _SHARED in factor.classes:
            yield Rule("one element has its place", {name: [_SHARED]} | element)
    if _SHARED in factor.classes:
        yield Rule("a tagged plane has a place for each element", _TAGGED | {name: [_SHARED]} | _ONE_PLANE, _has_tag)
    yield Rule("a gap along C of one plane takes a tag", gap | _UNBATCHED, _has_tag)
    for other in (each for each in LAYOUTS if each is not factor):
        untagged = {other.name: [own for own in ("channels last", _SHARED) if own in other.classes]}
        yield Rule("a gap along C of one plane takes a tag", gap | untagged, _has_tag)


RULES = (
    *(*_of_operators(), *_of_backends(), *_of_windows(), *_of_adaptive_windows(), *_of_numbers()),
    *chain.from_iterable(map(_of_layout, LAYOUTS)),
)


def classes_of(features: Features) -> dict[str, str]:
    """Return the class of each factor that a row has."""
    classes = {}
    for factor in FACTORS:
        with suppress(KeyError):
            if (own := factor.class_of(features)) is not None:
                classes[factor.name] = own
    return classes
