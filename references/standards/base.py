"""Standards: a name, a source, and one rule on `Deviations`.

A standard never decides the suite's verdict; its answer stands beside the interval's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from poolproof.references.deviations import Bool, Deviations
from poolproof.references.formats import Float64, FloatFormat

Thresholds = Mapping[str, float]
"""A threshold per dtype, including the texts' dtypes that no operator of the family has (HiF32, the 8-bit ones)."""

_DTYPES = ("float16", "bfloat16", "float32", "hifloat32", "float8_e4m3", "float8_e5m2")


def by_dtype(*values: float) -> Thresholds:
    """Make thresholds from the columns of a text's table: float16, bfloat16, float32, HiF32, E4M3, E5M2."""
    return dict(zip(_DTYPES, values, strict=True))


class Figures(dict[str, Any]):
    """What a rule counts of some cells, by name: numbers, `Largest` and figures in figures.

    ``+`` adds those of other cells, ``*`` makes them those of so many like cells.
    """

    def __add__(self, later: Figures) -> Figures:
        return Figures({name: figure + later[name] for name, figure in self.items()})

    def __mul__(self, times: int) -> Figures:
        return Figures({name: figure * times for name, figure in self.items()})


@dataclass(frozen=True)
class Largest:
    """The largest of some values, NaN if one is, and a number that stands beside the first of the largest."""

    value: float = 0.0
    beside: float = nan

    def __add__(self, later: Largest) -> Largest:
        is_larger = later.value > self.value or isnan(later.value)
        return later if is_larger and not isnan(self.value) else self

    def __mul__(self, _: int) -> Largest:
        return self


@dataclass(frozen=True, kw_only=True)
class Standard(ABC):
    """One rule, named, on figures that are counted a part of the tensor at a time, in the memory of that part.

    ``name`` is unique, in lower case, with its edition; ``source`` says where its thresholds and its formula were
    read; ``note`` names an ambiguity or a hole for whoever meets it in a contract.
    """

    name: str
    source: str
    note: str = ""

    @abstractmethod
    def count(self, part: Deviations) -> Figures | None:
        """Count what the rule looks at; None where it does not apply, which no part decides differently."""

    @abstractmethod
    def passes(self, figures: Figures, fmt: FloatFormat) -> bool | None:
        """Judge the figures of a whole tensor of that format; None where they leave the rule without an answer."""

    def judge(self, deviations: Deviations) -> bool | None:
        """Judge one output tensor; None where the rule does not apply. An empty tensor passes every rule."""
        return judge_together([self], deviations.parts())[0]


def judge_together(standards: Sequence[Standard], parts: Iterable[Deviations]) -> list[bool | None]:
    """Judge one output tensor by several rules, in one pass over its parts, of which an empty tensor has one.

    Idle cells, most of a usual tensor, are counted as so many times one of them.
    """
    totals: dict[str, Figures] = {}

    def count(part: Deviations, times: int = 1) -> None:
        for standard in standards:
            if (counted := standard.count(part)) is not None:
                name, counted = standard.name, counted if times == 1 else counted * times
                totals[name] = totals[name] + counted if name in totals else counted

    idle = 0
    for part in parts:
        busy = part.busy()
        idle += part.outputs.size - busy.outputs.size
        count(busy)
    if idle:
        count(part.idle_cell(), idle)
    return [each.passes(totals[each.name], part.fmt) if each.name in totals else None for each in standards]


def agree(errors: Float64, within: Bool) -> Bool:
    """Accept elements without an error, or with a finite one ``within`` tolerance: an infinite one admits nothing."""
    return (errors == 0.0) | (within & np.isfinite(errors))


def count_true(mask: Bool) -> int:
    return int(np.count_nonzero(mask))


def share(count: int, among: int) -> float:
    """Return a count relative to another; zero of nothing."""
    return count / among if among else 0.0


def largest(values: Float64) -> Largest:
    return Largest(float(values.max())) if values.size else Largest()


def squares(values: Float64) -> float:
    with np.errstate(over="ignore"):
        return float(np.dot(values, values))
