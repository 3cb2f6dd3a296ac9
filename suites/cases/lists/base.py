"""The interface of a format of case lists: how to recognise, read and write it.

A row that poolproof wrote contains its case. Read again, it is that case with its id, if the rest of the row still
matches.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.fields import RowError

OURS = "poolproof_case"
"""The field with the case in a row that poolproof wrote; other tools ignore it."""


class NotExpressible(Exception):
    """A case that the format cannot express; the text names the property."""


class ListFormat(ABC):
    name: ClassVar[str]

    @abstractmethod
    def recognises(self, text: str) -> bool:
        """Tell whether a file with this text has the format."""

    @abstractmethod
    def entries(self, text: str, label: str) -> Iterator[Entry]:
        """Read the rows of a file; an unreadable row becomes an entry with a fault, a wrong file ValueError."""

    def name_of(self, row: Any, number: int) -> str:  # noqa: ARG002
        """Return the list's own name of a row, or its number."""
        return str(number)

    @abstractmethod
    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        """Return the case and the standard of a row; `RowError` says which field is wrong, and why."""

    def carried(self, row: Any) -> str | None:
        """Return the case that a row contains, if poolproof wrote it."""
        return row.get(OURS) or None if isinstance(row, Mapping) else None

    @abstractmethod
    def write(self, case: Case, number: int) -> Any:
        """Write the ``number``-th row of a list, without the case; raise `NotExpressible` if it means another case."""

    def carrying(self, row: Any, case: Case) -> Any:
        return row | {OURS: case.to_json()}

    def without_case(self, row: Any) -> Any:
        return {name: value for name, value in row.items() if name != OURS}

    @abstractmethod
    def document(self, rows: Sequence[Any]) -> str:
        """Write the text of a file with these rows."""

    def entry(self, row: Any, label: str, number: int) -> Entry:
        """Read one row; a wrong one becomes an entry with a fault."""
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
        """Read the case that a row contains, if the rest of the row matches it."""
        try:
            case = Case.from_json(carried)
            written = self.write(case, number)
        except (CaseError, NotExpressible, TypeError) as error:
            raise RowError(f"the case that it contains: {error}") from error
        if _comparable(self.without_case(row)) != _comparable(written):
            raise RowError("the case that it contains differs from the rest of the row: remove one of them")
        return case


def _comparable(row: Any) -> str:
    """Write a row without its name and number."""
    kept = {name: value for name, value in row.items() if name not in ("id", "testcase_name")}
    return json.dumps(kept, sort_keys=True, default=list)


def check_expressible(case: Case) -> None:
    """Raise `NotExpressible` for a case with a property that no other tool's list can express."""
    is_backward = case.api.is_backward
    features = {
        "given data": case.literals,
        "tensors that are not contiguous": case.layouts,
        "the deterministic mode": case.deterministic,
        "gradients scaled by a power of two": is_backward and case.scale,
        "windows without a cell, for which poolproof has no indices": is_backward and case.has_empty_window,
        f"indices of the recipe {case.indices}: the tool makes those of a forward": is_backward
        and case.indices != "forward",
    }
    for feature, is_there in features.items():
        if is_there:
            raise NotExpressible(feature)
