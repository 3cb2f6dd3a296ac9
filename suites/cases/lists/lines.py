"""Case lists of our own: a case in each line, as `--case` takes it; empty lines and those after a # are comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.cases.lists.fields import RowError


class Lines(ListFormat):
    name = "json"
    looks = "a case in each line"

    def recognises(self, text: str) -> bool:
        """Look at the first line that is no comment: it is a case, or the broken line of one."""
        first = next((line.strip() for _, line in _rows(text)), "")
        try:
            return "operator" in json.loads(first)
        except (ValueError, TypeError, RecursionError):
            return first.startswith('{"') and "operator" in first

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        for number, line in _rows(text):
            yield self.entry(line, label, number)

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:  # noqa: ARG002
        try:
            return Case.from_json(row), OwnStandard()
        except CaseError as error:
            raise RowError(str(error)) from error

    def write(self, case: Case, number: int) -> str:  # noqa: ARG002
        return case.to_json()

    def carrying(self, row: Any, case: Case) -> Any:  # noqa: ARG002
        """Add nothing: the row is the case."""
        return row

    def document(self, rows: Sequence[Any]) -> str:
        return "".join(f"{row}\n" for row in rows)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#")
