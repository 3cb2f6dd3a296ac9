"""Rows of case lists: the case that a row asks for, and the standard that it names.

An entry is one line of JSON, so that a run can be repeated without the list. A row that cannot be read is an entry,
too, with what is wrong with it in place of a case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, Any

import msgspec
import numpy as np

from poolproof.references.formats import FORMATS, FloatFormat
from poolproof.references.standards import STANDARDS, Standard, share_close
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.recipes.spreads import Spread
from poolproof.suites.cases.recipes.stream import RandomStream

API_ATTRIBUTES = {
    "kernelSize": "kernel_size",
    "stride": "stride",
    "padding": "padding",
    "dilation": "dilation",
    "ceilMode": "ceil_mode",
}
"""Our names of attributes, by those of the API's pages."""


class ListError(BadInput):
    """A file that is no case list, or lists of one name."""


class RowError(ValueError):
    """What is wrong with one row: the text begins with the field."""


@dataclass(frozen=True)
class OwnStandard:
    """What a list says that its row is to be held against.

    ``same_as`` is the name of one of `STANDARDS`, ``close`` (rtol, free share, atol); with neither, nobody has
    published what the ``name`` means.
    """

    name: str = ""
    same_as: str = ""
    close: tuple[float, float, float] | None = None

    @property
    def standard(self) -> Standard | None:
        if self.close:
            return share_close(self.name, *self.close)
        return STANDARDS.get(self.same_as)

    def to_record(self) -> dict[str, Any]:
        given = {"name": self.name, "same_as": self.same_as, "close": list(self.close) if self.close else None}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class Entry:
    """Row ``row``, counted from 1, of the list ``label``, with the ``name`` that the list has for it.

    ``case`` is None where the row cannot be one: ``fault`` says why.
    """

    label: str
    row: int
    name: str = ""
    case: Case | None = None
    fault: str = ""
    own: OwnStandard = OwnStandard()

    @property
    def place(self) -> str:
        """Where it stands, which no other row of a run shares."""
        return f"{self.label}:{self.row}"

    def within(self, index_dtypes: tuple[str, ...]) -> Entry:
        """Take the first of these dtypes of indices, which a backend takes, where the row's is none of them.

        Lists of one interface store indices as that does; of another the storage alone differs.
        """
        if self.case is None or not index_dtypes or self.case.index_dtype in index_dtypes:
            return self
        return replace(self, case=replace(self.case, index_dtype=index_dtypes[0]))

    def to_json(self) -> str:
        record: dict[str, Any] = {"list": self.label, "row": self.row, "name": self.name}
        if self.case is None:
            return json.dumps(record | {"fault": self.fault})
        return json.dumps(record | {"standard": self.own.to_record(), "case": json.loads(self.case.to_json())})


def read_entry(record: Mapping[str, Any]) -> Entry:
    """Read an entry from what its line holds; `CaseError` says what is wrong with it."""
    try:
        row = msgspec.convert(record, _Line)
        if (row.fault is None) == (row.case is None):
            raise ValueError("it has one of fault and case")
    except ValueError as error:
        needed = "list, row, name and a fault, or a case with its standard"
        raise CaseError(f"a row of a list has {needed}: {error}") from error
    case = None if row.case is None else Case.from_record(row.case)
    return Entry(row.list, row.row, row.name, case, row.fault or "", row.standard)


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    list: str
    row: Annotated[int, msgspec.Meta(gt=0, lt=1 << 32)]
    name: str
    fault: str | None = None
    case: dict[str, Any] | None = None
    standard: OwnStandard = OwnStandard()


def legal_case(record: Mapping[str, Any]) -> Case:
    """Read the case of a row's record; `RowError` says what is wrong with it."""
    try:
        return Case.from_record(record)
    except CaseError as error:
        raise RowError(f"no legal call: {error}") from error


def seed_of(name: str) -> int:
    """Derive the seed of a row whose list has none from its name, wherever in the list it stands."""
    return derive_seed("case list", name) >> 1


def tagged_layouts(case: Case) -> tuple[tuple[str, str], ...]:
    """Return the layouts of a case whose tensors are all channels last, and handed over as such."""
    return tuple(sorted((tensor, "nhwc") for tensor in case.api.strided))


# Recipes for the data that a list declares by a number, a range or a distribution.


def declared_recipe(field: str, given: Any, dtype: str, seed: int) -> str:
    """Return the recipe for one tensor of numbers; raise `RowError` where ``given`` is no known declaration."""
    fmt = FORMATS[dtype]
    if isinstance(given, Mapping):
        return _normal(field, given, fmt, RandomStream(seed, field))
    numbers = [number_of(field, each) for each in (given if _is_list(given) else [given])]
    if len(numbers) not in (1, 2):
        raise RowError(f"{field}: {given!r} is neither a number nor a range")
    low, high = numbers[0], numbers[-1]
    if low == high or (low != low and high != high):
        return str(Spread("filled", (_within(low, fmt) if isfinite(low) else low,)))
    if not low < high:
        raise RowError(f"{field}: [{low}, {high}] is no range")
    # no uniform distribution reaches infinity: a bound that the format does not have is its largest number
    return str(Spread("between", (_within(low, fmt), _within(high, fmt))))


def number_of(field: str, given: Any) -> float:
    """Read a number of a list, which spells infinities and NaN as texts."""
    if isinstance(given, str) and given in ("inf", "-inf", "nan"):
        return float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise RowError(f"{field}: {given!r} is no number")
    try:
        return float(given)
    except OverflowError as error:
        raise RowError(f"{field}: {given!r:.40} is beyond every format") from error


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _normal(field: str, given: Mapping[str, Any], fmt: FloatFormat, stream: RandomStream) -> str:
    """Draw the mean and the deviation of a normal distribution from their ranges."""
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
        return str(Spread("gaussian", (_within(drawn[0], fmt), min(drawn[1], fmt.max))))
    except ValueError as error:
        raise RowError(f"{field}: {error}") from error


def _within(value: float, fmt: FloatFormat) -> float:
    """Clip a number to the format's largest."""
    return value if np.isfinite(fmt.round(np.array([value])))[0] else float(np.copysign(fmt.max, value))
