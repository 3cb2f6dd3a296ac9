"""The interface of a format of case lists: how a file is recognised and read, and how a case of ours is written.

A row that we wrote carries its case. Read again, it is that case with its id, if the rest of the row still agrees.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.fields import RowError

OURS = "poolproof_case"
"""The field in which a row that we wrote carries its case, which no other tool reads."""


class NotExpressible(Exception):
    """A case that the format has no words for; the text says of what."""


class ListFormat(ABC):
    """A format; ``looks`` describes its files for a person. A format that poolproof only reads has no `write`."""

    name: ClassVar[str]
    looks: ClassVar[str] = ""

    @abstractmethod
    def recognises(self, text: str) -> bool:
        """Tell whether a file with this text is of the format."""

    @abstractmethod
    def entries(self, text: str, label: str) -> Iterator[Entry]:
        """Read the rows of a file, unreadable ones with the reason; ValueError if no row can be read."""

    def entries_at(self, path: Path, text: str) -> Iterator[Entry]:
        """Read the rows of a file at its place, for formats of which a file names others."""
        return self.entries(text, path.name)

    def name_of(self, row: Any, number: int) -> str:  # noqa: ARG002
        """Return what the list calls its row, its number where it has no name."""
        return str(number)

    @abstractmethod
    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        """Return the case and the standard of a row; `RowError` says what is wrong with which field."""

    def carried(self, row: Any) -> str | None:
        """Return the case that a row of ours carries."""
        return row.get(OURS) or None if isinstance(row, Mapping) else None

    def write(self, case: Case, number: int) -> Any:  # noqa: ARG002
        """Write the ``number``-th row of a list, without the case; `NotExpressible` where it would be another."""
        raise NotExpressible(f"poolproof reads lists of {self.name}, and writes none")

    def carrying(self, row: Any, case: Case) -> Any:
        """Add the case to the row."""
        return row | {OURS: case.to_json()}

    def without_case(self, row: Any) -> Any:
        """Remove the case from the row."""
        return {name: value for name, value in row.items() if name != OURS}

    def document(self, rows: Sequence[Any]) -> str:
        """Write the text of a file with these rows."""
        return "".join(map(str, rows))

    def entry(self, row: Any, label: str, number: int) -> Entry:
        """Read one row, whatever is wrong with it."""
        name = self.name_of(row, number)
        try:
            carried = self.carried(row)
            if carried is not None:
                return Entry(label, number, name, self._ours(row, carried, number))
            case, own = self.read(row, name)
        except RowError as error:
            return Entry(label, number, name, fault=f"row {number} of {label} ({name}): {error}")
        return Entry(label, number, name, case, own=own)

    def _ours(self, row: Any, carried: str, number: int) -> Case:
        """Read the case that a row of ours carries, if the row still is that case's."""
        try:
            case = Case.from_json(carried)
            written = self.write(case, number)
        except (CaseError, NotExpressible, TypeError) as error:
            raise RowError(f"the case that it carries: {error}") from error
        if _comparable(self.without_case(row)) != _comparable(written):
            raise RowError("the case that it carries is another than the rest of the row: remove one of them")
        return case


def _comparable(row: Any) -> str:
    """Write a row without its name and number."""
    kept = {name: value for name, value in row.items() if name not in ("id", "testcase_name")}
    return json.dumps(kept, sort_keys=True, default=list)


def check_expressible(case: Case) -> None:
    """Raise `NotExpressible` for a case with something that no list of others has a word for."""
    is_backward = case.api.is_backward
    features = {
        "data that are spelled out": case.literals,
        "tensors that are not contiguous": case.layouts,
        "the deterministic mode": case.deterministic,
        "gradients scaled by a power of two": is_backward and case.scale,
        "windows without a cell, of which no forward of ours makes indices": is_backward and case.has_empty_window,
        f"indices of the recipe {case.indices}: the tool makes those of a forward": is_backward
        and case.indices != "forward",
    }
    for feature, is_there in features.items():
        if is_there:
            raise NotExpressible(feature)
