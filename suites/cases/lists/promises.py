"""What the numbers of a list's range promise, and the recipe that keeps it where one can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from poolproof.references.formats import FORMATS, FloatFormat
from poolproof.suites.cases.lists.entry import RowError
from poolproof.suites.cases.recipes.spreads import Between, Filled, Gaussian, Spread, spelled
from poolproof.suites.cases.recipes.stream import RandomStream

_NAMES = ("inf", "-inf", "nan")


@dataclass(frozen=True)
class Promise:
    """``text`` is what is promised, ``recipe`` what is made for it: the same words where the promise is kept."""

    text: str
    recipe: str


def promise(field: str, given: Any, dtype: str, seed: int) -> Promise:
    """Of one tensor of numbers; `RowError` where ``given`` promises nothing that is known."""
    fmt = FORMATS[dtype]
    if isinstance(given, Mapping):
        return _normal(field, given, fmt, RandomStream(seed, field))
    numbers = [number_of(field, each) for each in (given if _is_list(given) else [given])]
    if len(numbers) == 1 or (len(numbers) == 2 and _are_alike(*numbers)):
        return _filled(numbers[0], fmt)
    if len(numbers) == 2:
        return _between(field, numbers[0], numbers[1], fmt)
    raise RowError(f"{field}: {given!r} is neither a number nor a range")


def number_of(field: str, given: Any) -> float:
    """A number of a list, which spells infinities and NaN as texts."""
    if isinstance(given, str) and given in _NAMES:
        return float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise RowError(f"{field}: {given!r} is no number")
    try:
        return float(given)
    except OverflowError as error:
        raise RowError(f"{field}: {given!r:.40} is beyond every format") from error


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _are_alike(low: float, high: float) -> bool:
    return low == high or (low != low and high != high)


def _filled(value: float, fmt: FloatFormat) -> Promise:
    kept = _within(value, fmt) if isfinite(value) else value
    return Promise(str(Filled(value)), str(Filled(kept)))


def _between(field: str, low: float, high: float, fmt: FloatFormat) -> Promise:
    """No uniform distribution reaches infinity: a bound that the format does not have is its largest number."""
    if not low < high:
        raise RowError(f"{field}: [{low}, {high}] is no range")
    made = str(Between(_within(low, fmt), _within(high, fmt)))
    return Promise(f"{Between.name}({spelled(low)},{spelled(high)})", made)


def _normal(field: str, given: Mapping[str, Any], fmt: FloatFormat, stream: RandomStream) -> Promise:
    """A normal distribution whose mean and deviation are drawn, too: the promise is kept by any of its ranges."""
    if given.get("name") != "nd":
        raise RowError(f"{field}: the distribution {given.get('name')!r} is not known, only 'nd'")
    drawn = []
    for name in ("mean", "std"):
        bounds = given.get(name)
        if not _is_list(bounds) or len(bounds) != 2:  # type: ignore[arg-type]
            raise RowError(f"{field}: {name} {bounds!r} of a normal distribution is no range")
        low, high = (number_of(field, bound) for bound in bounds)  # type: ignore[union-attr]
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise RowError(f"{field}: {name} [{low}, {high}] of a normal distribution is no range")
        drawn.append(low + (high - low) * round(float(stream.beside(name).uniform(1)[0]), 4))
    try:
        spread: Spread = Gaussian(_within(drawn[0], fmt), min(drawn[1], fmt.max))
    except ValueError as error:
        raise RowError(f"{field}: {error}") from error
    return Promise(str(spread), str(spread))


def _within(value: float, fmt: FloatFormat) -> float:
    """The number, or the format's largest where rounding to the format would leave it."""
    return value if np.isfinite(fmt.round(np.array([value])))[0] else float(np.copysign(fmt.max, value))
