"""Terms of conditions: the possible statements about a feature, and the bits to name them.

The bits name a term among all others: its feature among the features, and its relation and value among the possible
ones. A condition must save more bits than that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.rows.features import feature_table
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import spelled_value

Mask = NDArray[np.bool_]

MAX_MEMBERS = 4
"""Most members of a set of values in a condition."""

MAX_THRESHOLDS = 24
"""Most thresholds of one feature to combine with others; the chosen one is then moved to the best place."""


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """One feature of all rows. ``values`` are int64, bool or str, and undefined where not ``present``."""

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
        return not self.present.all() or bool((self.values != self.values[0]).any())

    def distinct(self, of: Mask) -> NDArray[Any]:
        return np.unique(self.values[of & self.present])


@dataclass(frozen=True)
class Term:
    """A statement about a feature: its ``relation`` to a value; a flag has no value."""

    feature: str
    relation: str
    value: Any = None

    @property
    def is_threshold(self) -> bool:
        return self.relation in (AT_LEAST, BELOW)

    @property
    def negated(self) -> Term:
        return Term(self.feature, _NEGATED[self.relation], self.value)

    @property
    def contrary(self) -> str:
        """Its opposite, in text beside it: for a set of values without the list of them."""
        return f"another {self.feature}" if self.relation == AMONG else str(self.negated)

    def holds(self, column: FeatureColumn) -> Mask:
        """Return the rows in which it holds; not those without the feature."""
        return column.present & _RELATIONS[self.relation](column.values, self.value)

    def is_met_by(self, value: Any) -> bool:
        return bool(self.holds(feature_column(self.feature, [value])).all())

    def __str__(self) -> str:
        if self.relation == HAS:
            return self.feature
        if self.relation == LACKS:
            plain = self.feature.removeprefix("a ").removeprefix("an ")
            return _LACKING.get(self.feature) or (plain.replace(" not ", " ") if " not " in plain else f"no {plain}")
        values = self.value if self.relation in (AMONG, NOT_AMONG) else (self.value,)
        return f"{self.feature} {self.relation} {', '.join(map(spelled_value, values))}"


HAS, LACKS, IS, IS_NOT, AT_LEAST, BELOW = "has", "lacks", "=", "!=", ">=", "<"
AMONG, NOT_AMONG = "among", "not among"

_OPPOSITES = {HAS: LACKS, IS: IS_NOT, AMONG: NOT_AMONG, AT_LEAST: BELOW}
_NEGATED = _OPPOSITES | {relation: opposite for opposite, relation in _OPPOSITES.items()}

_RELATIONS: Mapping[str, Callable[[NDArray[Any], Any], Mask]] = {
    HAS: lambda flags, _: flags.astype(np.bool_),
    LACKS: lambda flags, _: ~flags.astype(np.bool_),
    IS: operator.eq,
    IS_NOT: operator.ne,
    AMONG: np.isin,
    NOT_AMONG: lambda values, members: ~np.isin(values, members),
    AT_LEAST: operator.ge,
    BELOW: operator.lt,
}

_LACKING = {
    "a backward": "a forward",
    "a legal call": "a broken clause",
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
    "several windows on one cell": "no two windows on one cell",
    "a kernel that differs by axis": "one kernel for all axes",
    "a dilation that differs by axis": "one dilation for all axes",
}


def feature_columns(rows: Iterable[Row]) -> dict[str, FeatureColumn]:
    """Return all features of the rows by name."""
    return {name: feature_column(name, values) for name, values in feature_table(rows).items()}


def feature_column(name: str, values: Sequence[Any]) -> FeatureColumn:
    own = [value for value in values if value is not None]
    present, kinds = np.array([value is not None for value in values], np.bool_), {type(value) for value in own}
    if kinds <= {bool}:
        return FeatureColumn(name, np.array([value or False for value in values], np.bool_), present)
    if kinds <= {int} and all(-(2**63) <= value < 2**63 for value in own):
        return FeatureColumn(name, np.array([value or 0 for value in values], np.int64), present)
    words = ["" if value is None else str(value) for value in values]
    return FeatureColumn(name, np.array(words), present)


def varying(columns: Mapping[str, FeatureColumn], rows: NDArray[np.integer[Any]]) -> dict[str, FeatureColumn]:
    """Return the given rows of the columns that vary there."""
    parts = (FeatureColumn(name, column.values[rows], column.present[rows]) for name, column in columns.items())
    return {part.feature: part for part in parts if part.varies}


REMAINDER = " mod "
"""Part of the name of a remainder."""

_DIVISOR_BITS = 2.0
"""Bits to name a power of two: a number is preferred to a remainder that separates the same rows."""


@dataclass(frozen=True, eq=False)
class Literal:
    """A term, the rows in which it holds, those in which its opposite holds, and the bits to name it."""

    term: Term
    mask: Mask
    opposite: Mask
    bits: float

    @classmethod
    def of(cls, term: Term, column: FeatureColumn, bits: float) -> Literal:
        return cls(term, mask := term.holds(column), column.present & ~mask, bits)


def literals(column: FeatureColumn, failing: Mask, features: int) -> Iterator[Literal]:
    """Yield the literals of one of ``features`` that hold for some failing rows, the plainest first."""
    for term, choices in _terms(column, failing):
        divisor = _DIVISOR_BITS if REMAINDER in column.feature else 0.0
        yield Literal.of(term, column, log2(features) + log2(choices) + divisor)


def _terms(column: FeatureColumn, failing: Mask) -> Iterator[tuple[Term, int]]:
    """Yield (term, number of terms of its kind); sets of numbers are left out, which would only list the cases."""
    if column.is_flag:
        yield Term(column.feature, HAS), 2
        yield Term(column.feature, LACKS), 2
        return
    everywhere, there = column.distinct(column.present), column.distinct(failing)
    if not len(there):
        return
    kinds, absent = 4, np.setdiff1d(everywhere, there)
    if REMAINDER in column.feature and 0 in absent:  # preferred to ">= 1" of the same rows
        yield Term(column.feature, IS_NOT, 0), kinds * len(everywhere)
    if column.is_number:
        above = everywhere[everywhere > there[-1]]
        for relation, values in ((AT_LEAST, there), (BELOW, np.append(there, above[:1]))):
            limits = [int(value) for value in _spread(values) if value > everywhere[0]]
            yield from ((Term(column.feature, relation, limit), kinds * len(everywhere)) for limit in limits)
    for value in there[: 4 * MAX_MEMBERS].tolist():
        yield Term(column.feature, IS, value), kinds * len(everywhere)
    if not column.is_number and 1 < len(there) <= MAX_MEMBERS and len(there) < len(everywhere):
        yield Term(column.feature, AMONG, tuple(there.tolist())), kinds * comb(len(everywhere), len(there))
    for value in absent[:MAX_MEMBERS].tolist():
        yield Term(column.feature, IS_NOT, value), kinds * len(everywhere)


def _spread(values: NDArray[Any]) -> NDArray[Any]:
    """Return at most `MAX_THRESHOLDS` values, evenly spread, with both ends."""
    if len(values) <= MAX_THRESHOLDS:
        return values
    return values[np.linspace(0, len(values) - 1, MAX_THRESHOLDS).round().astype(int)]
