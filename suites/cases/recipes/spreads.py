"""Recipes with numbers in them, as case lists of others have them: ``between(-5,5)``, ``filled(nan)``.

A spelling names the distribution that elements are drawn from, and is a recipe of values and of gradients alike. It
must not know where the elements go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from math import isfinite
from typing import ClassVar

import numpy as np

from poolproof.references.formats import Float64, FloatFormat
from poolproof.suites.cases.recipes.stream import RandomStream

_SPELLING = re.compile(r"([a-z]+)\(([^()]*)\)")
_MAX_INTEGERS = 1 << 32
"""The largest bound of `RandomStream.below`."""


@dataclass(frozen=True)
class Spread:
    """What elements are drawn from, each by itself; ValueError where its numbers mean nothing."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not all(map(isfinite, astuple(self))):
            raise ValueError(f"{self} needs finite numbers")

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(spelled, astuple(self)))})"

    @property
    def largest(self) -> float:
        """The largest finite magnitude that the format must have for it."""
        return max(map(abs, astuple(self)))

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
        """Draw so many elements, each a value of the format."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Bounded(Spread):
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ValueError(f"{self} has its bounds the wrong way round")


class Between(_Bounded):
    """Uniform in [low, high]."""

    name = "between"

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
        share = stream.uniform(size)
        return fmt.round(self.low * (1.0 - share) + self.high * share)


class Whole(_Bounded):
    """Integers in [low, high], all equally likely."""

    name = "whole"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != int(self.low) or self.high != int(self.high) or self.high - self.low >= _MAX_INTEGERS:
            raise ValueError(f"{self} needs integers, fewer than 2**32 apart")

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
        return fmt.round(self.low + stream.below(int(self.high - self.low) + 1, size))


@dataclass(frozen=True)
class Gaussian(Spread):
    """Close to normally distributed; what would exceed the format's largest number is that."""

    mean: float
    deviation: float
    name = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deviation < 0.0:
            raise ValueError(f"{self} has a deviation below zero")

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
        return fmt.round(np.clip(self.mean + self.deviation * stream.normal(size), -fmt.max, fmt.max))


@dataclass(frozen=True)
class Filled(Spread):
    """One value everywhere, which may be NaN or infinite."""

    value: float
    name = "filled"

    def __post_init__(self) -> None:
        """Accept any number."""

    @property
    def largest(self) -> float:
        return abs(self.value) if isfinite(self.value) else 0.0

    def draw(self, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:  # noqa: ARG002
        return fmt.round(np.full(size, self.value))


_SPREADS: dict[str, Callable[..., Spread]] = {kind.name: kind for kind in (Between, Whole, Gaussian, Filled)}
_COUNTS = {kind.name: len(fields(kind)) for kind in (Between, Whole, Gaussian, Filled)}

SPELLINGS = "between(low,high), whole(low,high), gaussian(mean,deviation), filled(value)"


def parse_spread(text: str) -> Spread | None:
    """Read a spelling, None where it is none; ValueError says what is wrong with its numbers."""
    match = _SPELLING.fullmatch(text)
    if match is None or match[1] not in _SPREADS:
        return None
    numbers = [number.strip() for number in match[2].split(",")]
    if len(numbers) != _COUNTS[match[1]]:
        raise ValueError(f"{text} is none of {SPELLINGS}")
    try:
        given = [float(number) for number in numbers]
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return _SPREADS[match[1]](*given)


def spelled(number: float) -> str:
    """Write a number as briefly as it can be read back."""
    return str(int(number)) if isfinite(number) and number == int(number) and abs(number) < 1e15 else repr(number)
