"""A row of a case list that is no case, as a question."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cached_property

from poolproof.backends.base import Backend
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.lists.entry import Entry
from poolproof.suites.judging.question import Aspect, Question, verdict


@dataclass(frozen=True)
class UnreadableRow(Question):
    """It is not run, and says why."""

    entry: Entry
    aspect: Aspect
    block: str

    @cached_property
    def id(self) -> str:
        return hashlib.sha256(self.entry.to_json().encode()).hexdigest()[:12]

    def to_line(self) -> str:
        return self.entry.to_json()

    def describe(self) -> Row:
        named = {"case_id": self.id, "case": self.entry.to_json(), "block": self.block, "aspect": self.aspect.id}
        return named | dict.fromkeys(("operator", "dtype", "index_dtype"), "") | place_of(self.entry)

    def judge(self, backend: Backend) -> Row:  # noqa: ARG002
        return self.describe() | verdict(Verdict.NOT_RUN, self.entry.fault) | {"judged_at": time.time()}


def place_of(entry: Entry) -> Row:
    return {"list": entry.label, "list_row": entry.row, "list_name": entry.name, "list_standard": entry.own.name}
