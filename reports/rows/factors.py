"""Factors: properties that kernels branch on, each with its classes.

A factor computes its class from the features of a row (`features`), as diagnosis does. A call without one of these
features has no class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from poolproof.references.contract.expectation import CONTRACTS
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.reports.rows.features import GAP, TensorLayout, Value

Features = Mapping[str, Value]
ClassOf = Callable[[Features], str | None]


@dataclass(frozen=True)
class Factor:
    """A property that kernels branch on.

    Attributes:
        class_of: Returns None, or raises KeyError, if a call has no class.
        matters: It chooses a path or cuts tiles, and counts in triples.
        words: The values of a case's field for each class, if a field decides.
    """

    name: str
    classes: tuple[str, ...]
    class_of: ClassOf
    matters: bool = False
    words: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def _flag(feature: str, *, matters: bool = False) -> Factor:
    return Factor(feature, ("no", "yes"), lambda features: "yes" if features[feature] else "no", matters)


def _sizes(feature: str, *begins: int, matters: bool = False) -> Factor:
    """Create classes of a number, each of which begins at one of ``begins``."""
    named = [str(low) if high - low == 1 else f"{low:,} to {high - 1:,}" for low, high in pairwise(begins)]
    classes = (*named, f"{begins[-1]:,} and more")

    def class_of(features: Features) -> str | None:
        number = int(features[feature])
        return classes[sum(begin <= number for begin in begins) - 1] if number else None

    return Factor(feature, classes, class_of, matters)


def _multiple(feature: str, *, matters: bool = False) -> Factor:
    """Create classes of multiples: of the lanes of a vector, of half, or of a quarter of them."""
    divisors = {f"of {divisor}": divisor for divisor in (32, 16, 8)}

    def class_of(features: Features) -> str | None:
        number = int(features[feature])
        return (
            next((name for name, divisor in divisors.items() if number % divisor == 0), "of none") if number else None
        )

    return Factor(f"{feature} as a multiple", (*divisors, "of none"), class_of, matters)


def _words(name: str, classes: Mapping[str, Sequence[str]], feature: str = "") -> Factor:
    """Group the words of a feature; a word with numbers in brackets counts without them."""
    grouped = {word: own for own, words in classes.items() for word in words}

    def class_of(features: Features) -> str | None:
        word = str(features.get(feature or name))
        return grouped.get(word, grouped.get(word.partition("(")[0]))

    return Factor(name, tuple(classes), class_of, words=classes)


def _relation(features: Features) -> str:
    sides = bool(features["stride < kernel"]), bool(features["stride > kernel"])
    return {(False, False): "=", (True, False): ">", (False, True): "<", (True, True): "differs by axis"}[sides]


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
        classes = (*classes, SHARED)
    return Factor(
        f"layout of {tensor}", classes, lambda features: str(features[f"arrangement of {tensor}"]), matters=True
    )


SHARED = "elements shared"

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
"""All factors. Thresholds are those of known kernels: 64 lanes, repeat counters of 8 bits, fewer than 256 windows.
Others are kernels of 256 cells, in forwards of 128, 1,024 and 4,096, and strides of 32."""


BY_NAME = {factor.name: factor for factor in FACTORS}

_NEEDING: Mapping[str, Mapping[str, Sequence[str]]] = {
    "padding": {"padding": ("less", "half of an even kernel"), "a padding that differs by axis": ("yes",)},
    "dilation": {
        "dilation": ("within the stride", "past the stride", "of overlapping windows"),
        "a dilation that differs by axis": ("yes",),
    },
    "ceil_mode": {"last window": ("as without ceil_mode", "added by ceil_mode", "dropped in spite of ceil_mode")},
    "unbatched": {"batch": ("unbatched",)},
    "empty_batch": {"batch": ("empty",)},
    "indices": {"indices": ("anywhere", "meeting", "at edges")},
    "tag": {"tensors tagged NHWC": ("yes",)},
}
"""Ability -> the classes, by factor, that no call has without it."""


@dataclass(frozen=True)
class Scope:
    """Calls of one operator: on a product or anywhere, with the tags of a backend and without its missing abilities.

    ``abilities`` are recorded (name, value); a backend has those that are not named.
    """

    operator: Operator
    index_dtypes: tuple[str, ...]
    tags: tuple[str, ...] = ("NHWC",)
    product: Product | None = None
    abilities: tuple[tuple[str, Any], ...] = ()

    @property
    def lacking(self) -> Iterator[tuple[str, str]]:
        """Yield (factor, class) of the classes that none of its calls has."""
        able = dict(self.abilities) | {"tag": self.operator.takes_tags and "NHWC" in self.tags}
        if self.product and not _dilates(self.operator, self.product):
            able["dilation"] = False
        for ability, classes in _NEEDING.items():
            if able.get(ability) is False:
                yield from ((name, own) for name, having in classes.items() for own in having)
        yield from (("index dtype", own) for own in BY_NAME["index dtype"].classes if own not in self.index_dtypes)
        if (layouts := able.get("layouts")) is not None:
            kinds = {"packed", *(TensorLayout(name).kind for name in layouts)}
            yield from ((factor.name, own) for factor in LAYOUTS for own in factor.classes if own not in kinds)


def _dilates(operator: Operator, product: Product) -> bool:
    clauses = CONTRACTS[f"aclnn{operator.name}"].on(product)
    return not any(clause.name == "dilation.one" and clause.status is not None for clause in clauses)


def classes_of(features: Features) -> dict[str, str]:
    """Return the class of each factor that a row has."""
    classes = {}
    for factor in FACTORS:
        try:
            own = factor.class_of(features)
        except KeyError:
            continue
        if own is not None:
            classes[factor.name] = own
    return classes
