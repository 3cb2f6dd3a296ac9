"""Recipes for ``self``: the data whose maximum a forward takes, and which no backward may look at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64, FloatFormat
from poolproof.suites.cases.recipes.spreads import parse_spread
from poolproof.suites.cases.recipes.stream import RandomStream, draw_all, draw_bulk

Recipe = Callable[[int, FloatFormat, RandomStream], Float64]
"""(how many, format, stream) -> values, of which each takes one number in every draw (`RandomStream.chunks`)."""


def draw_values(recipe: str, size: int, fmt: FloatFormat, stream: RandomStream) -> NDArray:
    """Draw ``size`` values of a recipe, flat, in the format's own dtype."""
    spread = parse_spread(recipe)
    own_recipe = spread.draw if spread else VALUES[recipe]
    draw = draw_all if own_recipe in _BY_PLACE else draw_bulk
    return draw(size, fmt.dtype, stream, lambda count, own: own_recipe(count, fmt, own))


def normal(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw from a normal distribution; ties are rare in float32 and common in bfloat16."""
    return fmt.round(stream.normal(size))


def ties(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw integers in [-2, 2]: almost every window has several maxima."""
    return stream.below(5, size) - 2.0


def constant(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    return np.full(size, 1.5)


def negative(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw below -1: padding that enters as zero would win."""
    return fmt.round(-1.0 - 8.0 * stream.uniform(size))


def negative_infinity(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Fill with -inf: no value ever exceeds the usual initial maximum."""
    return np.full(size, -np.inf)


def mostly_negative_infinity(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw -inf with one finite lowest value in eight."""
    return np.where(stream.below(8, size) == 0, -fmt.max, -np.inf)


def nan(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw ties with a NaN in one place of eight: windows with none, one and several."""
    return np.where(stream.below(8, size) == 0, np.nan, ties(size, fmt, stream))


def all_nan(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    return np.full(size, np.nan)


def infinities(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw ties mixed with infinities of both signs and NaN."""
    special = np.array([np.inf, -np.inf, np.nan, fmt.max, -fmt.max, 0.0, -0.0, fmt.smallest_subnormal])
    return np.where(stream.below(2, size) == 0, special[stream.below(len(special), size)], ties(size, fmt, stream))


def subnormals(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw zeros and subnormal numbers of both signs: one value where comparisons take these for zero."""
    return fmt.smallest_subnormal * (stream.below(5, size) - 2.0)


def ascending(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Grow along memory: each window's last cell wins."""
    return fmt.round(stream.from_middle(size))


def descending(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Fall along memory: each window's first cell wins."""
    return fmt.round(0.0 - stream.from_middle(size))


def after_relu(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw what a rectifier leaves of normally distributed values: half of them are zeros, in which windows tie."""
    return np.maximum(normal(size, fmt, stream), 0.0)


def batch_normalised(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw what a trained batch normalisation gives: normal values, with gains and shifts of several channels."""
    gain, shift = np.exp2(stream.below(4, size) - 2.0), 0.25 * (stream.below(9, size) - 4.0)
    return fmt.round(gain * stream.normal(size) + shift)


def saturated(size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw as large as the format allows: one value in twenty is clamped to the largest, where windows tie."""
    return fmt.round(np.clip(stream.normal(size), -2.0, 2.0) * (fmt.max / 2.0))


VALUES: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        normal,
        ties,
        constant,
        negative,
        negative_infinity,
        mostly_negative_infinity,
        nan,
        all_nan,
        infinities,
        ascending,
        descending,
        after_relu,
        batch_normalised,
        saturated,
        subnormals,
    )
}

_BY_PLACE = (ascending, descending)
"""Recipes whose values depend on where they lie, so that no other place can lend its own."""
