"""Recipes for ``self``: a forward takes the maxima of these data, and no backward may look at them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64, FloatFormat
from poolproof.suites.cases.recipes import described
from poolproof.suites.cases.recipes.spreads import parse_spread
from poolproof.suites.cases.recipes.stream import RandomStream, draw_bulk

Recipe = Callable[[int, FloatFormat, RandomStream], Float64]
"""(how many, format, stream) -> values."""


def draw_values(recipe: str, size: int, fmt: FloatFormat, stream: RandomStream) -> NDArray:
    """Draw ``size`` values of a recipe, flat, in the format's own dtype."""
    spread = parse_spread(recipe)
    draw = spread.draw if spread else VALUES[recipe]
    if recipe in _BY_PLACE:
        return draw(size, fmt, stream).astype(fmt.dtype)
    return draw_bulk(size, fmt, stream, draw)


def ties(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw integers in [-2, 2]: almost every window has several maxima."""
    return stream.below(5, size) - 2.0


def infinities(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw ties mixed with infinities of both signs and NaN."""
    special = np.array([np.inf, -np.inf, np.nan, fmt.max, -fmt.max, 0.0, -0.0, fmt.smallest_subnormal])
    return np.where(stream.below(2, size) == 0, special[stream.below(len(special), size)], ties(size, fmt, stream))


def batch_normalised(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw what a trained batch normalisation gives: normal values, with gains and shifts of several channels."""
    gain, shift = np.exp2(stream.below(4, size) - 2.0), 0.25 * (stream.below(9, size) - 4.0)
    return fmt.round(gain * stream.normal(size) + shift)


VALUES: dict[str, Recipe] = {
    "normal": described(
        "Normal values: ties are rare in float32 and common in bfloat16.",
        lambda size, fmt, stream: fmt.round(stream.normal(size)),
    ),
    "ties": ties,
    "constant": described("1.5 everywhere.", lambda size, fmt, stream: np.full(size, 1.5)),
    "negative": described(
        "Values below -1: padding that enters as zero would win.",
        lambda size, fmt, stream: fmt.round(-1.0 - 8.0 * stream.uniform(size)),
    ),
    "negative_infinity": described(
        "-inf everywhere: no value exceeds the usual initial maximum.", lambda size, fmt, stream: np.full(size, -np.inf)
    ),
    "mostly_negative_infinity": described(
        "The lowest finite value in one place of eight, else -inf.",
        lambda size, fmt, stream: np.where(stream.below(8, size) == 0, -fmt.max, -np.inf),
    ),
    "nan": described(
        "NaN in one place of eight, among ties: windows have none, one or several NaN.",
        lambda size, fmt, stream: np.where(stream.below(8, size) == 0, np.nan, ties(size, fmt, stream)),
    ),
    "all_nan": described("NaN everywhere.", lambda size, fmt, stream: np.full(size, np.nan)),
    "infinities": infinities,
    "ascending": described(
        "Values that grow along memory: the last cell of each window wins.",
        lambda size, fmt, stream: fmt.round(np.arange(size) - size / 2.0),
    ),
    "descending": described(
        "Values that fall along memory: the first cell of each window wins.",
        lambda size, fmt, stream: fmt.round(size / 2.0 - np.arange(size)),
    ),
    "after_relu": described(
        "Normal values after a ReLU: half of them are zeros, in which windows tie.",
        lambda size, fmt, stream: np.maximum(fmt.round(stream.normal(size)), 0.0),
    ),
    "batch_normalised": batch_normalised,
    "saturated": described(
        "Values up to the largest: one in twenty is clamped to it, where windows tie.",
        lambda size, fmt, stream: fmt.round(np.clip(stream.normal(size), -2.0, 2.0) * (fmt.max / 2.0)),
    ),
    "subnormals": described(
        "Zeros and subnormals of both signs: all equal where comparisons flush to zero.",
        lambda size, fmt, stream: fmt.smallest_subnormal * (stream.below(5, size) - 2.0),
    ),
}
"""The recipes by name; the docstring of each describes it."""

_BY_PLACE = ("ascending", "descending")
"""Recipes with values that depend on their place, so that a value of another place is wrong."""
