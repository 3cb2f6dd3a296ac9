"""Recipes with numbers in them, as case lists of others have them: ``between(-5,5)``, ``filled(nan)``.

A spelling names the distribution that elements are drawn from, and is a recipe of values and of gradients alike. It
must not know where the elements go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from poolproof.references.formats import Float64, FloatFormat
from poolproof.suites.cases.recipes.stream import RandomStream

_SPELLING = re.compile(r"([a-z]+)\(([^()]*)\)")
_MAX_INTEGERS = 1 << 32
"""The largest bound of `RandomStream.below`."""


@dataclass(frozen=True)
class Spread:
    """One of `SPREADS` with its numbers; ValueError where these mean nothing."""

    name: str
    numbers: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.numbers) != (1 if self.name == "filled" else 2):
            raise ValueError(f"{self} is none of {', '.join(SPREADS)}")
        if self.name == "filled":
            return
        low, high = self.numbers
        if not (isfinite(low) and isfinite(high)):
            raise ValueError(f"{self} needs finite numbers")
        if self.name == "gaussian" and high < 0.0:
            raise ValueError(f"{self} has a deviation below zero")
        if self.name != "gaussian" and low > high:
            raise ValueError(f"{self} has its bounds the wrong way round")
        if self.name == "whole" and (low != int(low) or high != int(high) or high - low >= _MAX_INTEGERS):
            raise ValueError(f"{self} needs integers, fewer than 2**32 apart")

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(spelled, self.numbers))})"

    @property
    def largest(self) -> float:
        """The largest finite magnitude that the format must have for it."""
        return max((abs(number) for number in self.numbers if isfinite(number)), default=0.0)

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
        """Draw so many elements, each a value of the format."""
        return fmt.round(_DRAWS[self.name](size, fmt, stream, *self.numbers))


def _between(size: int, _: FloatFormat, stream: RandomStream, low: float, high: float) -> Float64:
    share = stream.uniform(size)
    return low * (1.0 - share) + high * share


_DRAWS: dict[str, Callable[..., Float64]] = {
    "between": _between,
    "whole": lambda size, _, stream, low, high: low + stream.below(int(high - low) + 1, size),
    "gaussian": lambda size, fmt, stream, mean, std: np.clip(mean + std * stream.normal(size), -fmt.max, fmt.max),
    "filled": lambda size, _, __, value: np.full(size, value),
}

SPREADS = {
    "between(low,high)": "Uniform in [low, high].",
    "whole(low,high)": "Integers in [low, high], all equally likely.",
    "gaussian(mean,deviation)": "Close to normally distributed, clamped to the format's largest number.",
    "filled(value)": "One value everywhere, which may be NaN or infinite.",
}
"""Distributions of single elements, by their spelling."""


def parse_spread(text: str) -> Spread | None:
    """Read a spelling, None where it is none; ValueError says what is wrong with its numbers."""
    match = _SPELLING.fullmatch(text)
    if match is None or match[1] not in _DRAWS:
        return None
    try:
        return Spread(match[1], tuple(map(float, match[2].split(","))))
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error


def spelled(number: float) -> str:
    """Write a number as briefly as it can be read back."""
    return str(int(number)) if isfinite(number) and number == int(number) and abs(number) < 1e15 else repr(number)
