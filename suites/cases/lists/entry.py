"""Rows of case lists: the case that a row asks for, and the standard that it names.

An entry is one line of JSON, so that a run can be repeated without the list. A row that cannot be read is an entry,
too, with what is wrong with it in place of a case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poolproof.references.standards import STANDARDS, Standard, share_close
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.layouts import TAGS

MARK = "list"
"""The field that only the line of an entry has, and none of a case."""


_ROWS = 1 << 32
"""More than any list has."""


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

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> OwnStandard:
        close = record.get("close")
        name, same_as = str(record.get("name", "")), str(record.get("same_as", ""))
        return cls(name, same_as, (float(close[0]), float(close[1]), float(close[2])) if close else None)


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
        record: dict[str, Any] = {MARK: self.label, "row": self.row, "name": self.name}
        if self.case is None:
            return json.dumps(record | {"fault": self.fault})
        return json.dumps(record | {"standard": self.own.to_record(), "case": json.loads(self.case.to_json())})


def read_entry(line: str) -> Entry | None:
    """Read an entry from its line, None if it is of no list; `CaseError` says what is wrong with one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or MARK not in record:
        return None
    try:
        label, row, name = str(record[MARK]), int(record["row"]), str(record["name"])
        if not 0 < row < _ROWS:
            raise ValueError(row)
        if "fault" in record:
            return Entry(label, row, name, fault=str(record["fault"]))
        own = OwnStandard.from_record(record["standard"])
        return Entry(label, row, name, Case.from_record(record["case"]), "", own)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        if isinstance(error, CaseError):
            raise
        raise CaseError(
            f"a row of a list has list, row, name and a fault, or a case with its standard: {error!r}"
        ) from error


def seed_of(name: str) -> int:
    """Derive the seed of a row whose list has none from its name, wherever in the list it stands."""
    return derive_seed("case list", name) >> 1


def tagged_layouts(case: Case) -> tuple[tuple[str, str], ...]:
    """Return the layouts of a case whose tensors are all channels last, and handed over as such."""
    (name,) = TAGS
    return tuple(sorted((tensor, name) for tensor in case.api.strided))
