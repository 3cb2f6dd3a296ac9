"""Rows of case lists as questions: a case with what its list says of it, or a row that is no case."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cached_property

from poolproof.backends.base import Backend
from poolproof.references.standards import Standard
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.lists.entry import Entry
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Aspect, Question, verdict


@dataclass(frozen=True, kw_only=True)
class ListedQuestion(CaseQuestion):
    """The case of a row, with the row's own standard."""

    entry: Entry

    @property
    def own_standard(self) -> Standard | None:
        return self.entry.own.standard

    def describe(self) -> Row:
        return super().describe() | _place(self.entry)


@dataclass(frozen=True)
class UnreadableRow(Question):
    """A row that is no case: it is not run, and says why."""

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
        return named | dict.fromkeys(("operator", "dtype", "index_dtype"), "") | _place(self.entry)

    def judge(self, backend: Backend) -> Row:  # noqa: ARG002
        return self.describe() | verdict(Verdict.NOT_RUN, self.entry.fault) | {"judged_at": time.time()}


def listed_question(entry: Entry, aspect: Aspect) -> Question:
    """Make the question of one row."""
    if entry.case is None:
        return UnreadableRow(entry, aspect, entry.place)
    return ListedQuestion(entry.case, aspect, entry.place, entry=entry)


def _place(entry: Entry) -> Row:
    return {"list": entry.label, "list_row": entry.row, "list_name": entry.name, "list_standard": entry.own.name}
