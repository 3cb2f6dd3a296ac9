"""Terms of conditions: what can be said of a feature, and how many bits it takes to say it.

The bits of a term name it among all others: its feature among the features, and what is said of it among what could be.
A condition has to save more bits than that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.rows.text import spelled_value

Mask = NDArray[np.bool_]

MAX_MEMBERS = 4
"""Members of a set of values in a condition."""

MAX_THRESHOLDS = 24
"""Thresholds of one feature that are combined with others; the chosen one is then moved to the best of all places."""


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """One feature of all rows. ``values`` are int64, bool or str, and mean nothing where not ``present``."""

    feature: str
    values: NDArray[Any]
    present: Mask

    @property
    def is_number(self) -> bool:
        return bool(self.values.dtype == np.int64)

    @property
    def is_flag(self) -> bool:
        return bool(self.values.dtype == np.bool_)

    @property
    def varies(self) -> bool:
        """Return whether not all rows are alike."""
        return not self.present.all() or bool((self.values != self.values[0]).any())

    def at(self, rows: NDArray[np.integer[Any]]) -> FeatureColumn:
        """Select rows by their numbers."""
        return FeatureColumn(self.feature, self.values[rows], self.present[rows])

    def distinct(self, of: Mask) -> NDArray[Any]:
        """Return the values of some rows, ascending."""
        return np.unique(self.values[of & self.present])


@dataclass(frozen=True)
class Term(ABC):
    feature: str

    @abstractmethod
    def holds(self, column: FeatureColumn) -> Mask:
        """Return in which rows it holds; not where the feature is missing."""


@dataclass(frozen=True)
class Has(Term):
    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & column.values.astype(np.bool_)

    def __str__(self) -> str:
        return self.feature


@dataclass(frozen=True)
class Lacks(Term):
    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & ~column.values.astype(np.bool_)

    def __str__(self) -> str:
        return _LACKING.get(self.feature) or f"no {self.feature.removeprefix('a ').removeprefix('an ')}"


_LACKING = {
    "a backward": "a forward",
    "a 3-D operator": "a 2-D operator",
    "half precision": "no half precision",
    "dilation > 1": "dilation 1",
    "padding": "padding 0",
    "padding along W": "padding along W 0",
    "adaptive windows": "windows that are not adaptive",
    "overlapping windows": "windows that do not overlap",
    "stride < kernel": "stride >= kernel",
    "stride < dilated kernel": "stride >= dilated kernel",
    "kernel <= stride < dilated kernel": "no axis with kernel <= stride < dilated kernel",
    "stride > kernel": "stride <= kernel",
    "H unlike W": "H = W",
    "windows per row unlike W": "as many windows per row as W",
    "lengths that differ by axis": "axes of one length",
    "an output that divides the input": "an output that does not divide the input",
    "an output longer than the input": "no output longer than the input",
    "a tensor that is not contiguous": "contiguous tensors",
    "a stride that differs by axis": "one stride for all axes",
    "a kernel that differs by axis": "one kernel for all axes",
    "a dilation that differs by axis": "one dilation for all axes",
}


@dataclass(frozen=True)
class Is(Term):
    value: int | str

    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & (column.values == self.value)

    def __str__(self) -> str:
        return f"{self.feature} = {spelled_value(self.value)}"


@dataclass(frozen=True)
class IsNot(Term):
    value: int | str

    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & (column.values != self.value)

    def __str__(self) -> str:
        return f"{self.feature} other than {spelled_value(self.value)}"


@dataclass(frozen=True)
class Among(Term):
    members: tuple[int | str, ...]

    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & np.isin(column.values, self.members)

    def __str__(self) -> str:
        return f"{self.feature} among {', '.join(map(spelled_value, self.members))}"


@dataclass(frozen=True)
class AtLeast(Term):
    threshold: int

    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & (column.values >= self.threshold)

    def __str__(self) -> str:
        return f"{self.feature} >= {spelled_value(self.threshold)}"


@dataclass(frozen=True)
class Below(Term):
    threshold: int

    def holds(self, column: FeatureColumn) -> Mask:
        return column.present & (column.values < self.threshold)

    def __str__(self) -> str:
        return f"{self.feature} < {spelled_value(self.threshold)}"


def columns_of(features: Mapping[str, Sequence[Any]]) -> list[FeatureColumn]:
    return [_column(name, values) for name, values in features.items()]


def _column(name: str, raw: Sequence[Any]) -> FeatureColumn:
    values = [value if value == value else None for value in raw]  # a line of JSON may have NaN
    own = [value for value in values if value is not None]
    present, kinds = np.array([value is not None for value in values], np.bool_), {type(value) for value in own}
    if kinds <= {bool}:
        return FeatureColumn(name, np.array([value or False for value in values], np.bool_), present)
    if kinds <= {int} and all(-(2**63) <= value < 2**63 for value in own):
        return FeatureColumn(name, np.array([value or 0 for value in values], np.int64), present)
    words = ["" if value is None else str(value) for value in values]
    return FeatureColumn(name, np.array(words), present)


REMAINDER = " mod "
"""Part of the name of a remainder."""

_DIVISOR_BITS = 2.0
"""Bits that name a power of two: a number that separates the same rows is preferred to its remainder."""


@dataclass(frozen=True, eq=False)
class Literal:
    """A term, the rows in which it holds, and the bits that it takes to name it."""

    term: Term
    mask: Mask
    bits: float


def literals(column: FeatureColumn, failing: Mask, features: int) -> Iterator[Literal]:
    """Yield what can be said of one of so many ``features`` that holds for some failing rows, the plainest first."""
    for term, choices in _terms(column, failing):
        divisor = _DIVISOR_BITS if REMAINDER in column.feature else 0.0
        yield Literal(term, term.holds(column), log2(features) + log2(choices) + divisor)


def thresholds(column: FeatureColumn, term: Term) -> Iterator[Term]:
    """Yield the term with its threshold at every observed value; of other terms themselves."""
    match term:
        case AtLeast() | Below():
            yield from (type(term)(term.feature, int(value)) for value in column.distinct(column.present)[1:])
        case _:
            yield term


def _terms(column: FeatureColumn, failing: Mask) -> Iterator[tuple[Term, int]]:
    """Yield (a term, among how many of its kind it is chosen). A set of numbers would only list the cases: there is
    none.
    """
    if column.is_flag:
        yield Has(column.feature), 2
        yield Lacks(column.feature), 2
        return
    everywhere, there = column.distinct(column.present), column.distinct(failing)
    if not len(there):
        return
    kinds = 4
    if column.is_number:
        yield from ((term, kinds * len(everywhere)) for term in _limits(column, everywhere, there))
    for value in there[: 4 * MAX_MEMBERS].tolist():
        yield Is(column.feature, value), kinds * len(everywhere)
    if not column.is_number and 1 < len(there) <= MAX_MEMBERS and len(there) < len(everywhere):
        yield Among(column.feature, tuple(there.tolist())), kinds * comb(len(everywhere), len(there))
    absent = np.setdiff1d(everywhere, there)
    for value in absent[:MAX_MEMBERS].tolist():
        yield IsNot(column.feature, value), kinds * len(everywhere)


def _limits(column: FeatureColumn, everywhere: NDArray[Any], there: NDArray[Any]) -> Iterator[Term]:
    above = everywhere[everywhere > there[-1]]
    lowest, highest = _spread(there), _spread(np.append(there, above[:1]))
    yield from (AtLeast(column.feature, int(value)) for value in lowest if value > everywhere[0])
    yield from (Below(column.feature, int(value)) for value in highest if value > everywhere[0])


def _spread(values: NDArray[Any]) -> NDArray[Any]:
    """Return at most `MAX_THRESHOLDS` values, evenly spread, with both ends."""
    if len(values) <= MAX_THRESHOLDS:
        return values
    return values[np.linspace(0, len(values) - 1, MAX_THRESHOLDS).round().astype(int)]
