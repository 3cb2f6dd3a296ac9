"""Standards: a name, a source, and one rule on `Deviations`.

A standard never decides the suite's verdict. Reports show its answer beside the verdict.
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
"""Dtype -> threshold, including the texts' dtypes that no operator of the family has (HiF32, the 8-bit ones)."""

_DTYPES = ("float16", "bfloat16", "float32", "hifloat32", "float8_e4m3", "float8_e5m2")


def by_dtype(*values: float) -> Thresholds:
    """Make thresholds from the columns of a text's table: float16, bfloat16, float32, HiF32, E4M3, E5M2."""
    return dict(zip(_DTYPES, values, strict=True))


class Figures(dict[str, Any]):
    """What a rule counts over some cells, by name: numbers, `Largest` and nested figures.

    ``+`` adds the figures of further cells, ``*`` repeats the same cells.
    """

    def __add__(self, later: Figures) -> Figures:
        return Figures({name: figure + later[name] for name, figure in self.items()})

    def __mul__(self, times: int) -> Figures:
        return Figures({name: figure * times for name, figure in self.items()})


@dataclass(frozen=True)
class Largest:
    """The largest of some values, NaN if one is, and the number that belongs to its first occurrence."""

    value: float = 0.0
    beside: float = nan

    def __add__(self, later: Largest) -> Largest:
        is_larger = later.value > self.value or isnan(later.value)
        return later if is_larger and not isnan(self.value) else self

    def __mul__(self, _: int) -> Largest:
        return self


@dataclass(frozen=True, kw_only=True)
class Standard(ABC):
    """One named rule on figures, which are counted one part of the tensor at a time.

    Attributes:
        name: Unique, in lower case, with the edition.
        source: Where the thresholds and the formula were read.
        note: An ambiguity or a gap, for readers who meet the standard in a contract.
    """

    name: str
    source: str
    note: str = ""

    @abstractmethod
    def count(self, part: Deviations) -> Figures | None:
        """Count what the rule needs; return None if it does not apply, alike for all parts of a tensor."""

    @abstractmethod
    def passes(self, figures: Figures, fmt: FloatFormat) -> bool | None:
        """Judge the figures of a whole tensor of that format; return None if they give no answer."""

    def judge(self, deviations: Deviations) -> bool | None:
        """Judge one output tensor; return None if the rule does not apply. An empty tensor passes every rule."""
        return judge_together([self], deviations.parts())[0]


def judge_together(standards: Sequence[Standard], parts: Iterable[Deviations]) -> list[bool | None]:
    """Judge one output tensor by several rules, in one pass over its parts; an empty tensor has one part.

    Most cells of a usual tensor are idle. They are counted as multiples of one idle cell.
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
    """Accept elements without an error, or with a finite error ``within`` tolerance."""
    return (errors == 0.0) | (within & np.isfinite(errors))


def count_true(mask: Bool) -> int:
    return int(np.count_nonzero(mask))


def share(count: int, among: int) -> float:
    """Return ``count / among``, or 0 if ``among`` is 0."""
    return count / among if among else 0.0


def largest(values: Float64) -> Largest:
    return Largest(float(values.max())) if values.size else Largest()


def squares(values: Float64) -> float:
    with np.errstate(over="ignore"):
        return float(np.dot(values, values))
