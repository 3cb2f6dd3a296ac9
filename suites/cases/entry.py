"""Rows of case lists: the case that a row names, and the standard that the list holds it against.

An entry is one line of JSON, so that a run can be repeated without the list. A row that cannot be read is an entry,
too: it has a fault in place of a case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from poolproof.references.standards import STANDARDS, Standard, share_close
from poolproof.suites.cases.case import Case, CaseError


@dataclass(frozen=True)
class OwnStandard:
    """The standard that a list names for its row.

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
