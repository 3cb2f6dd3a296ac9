"""Rows of case lists as questions: a case with what its list says of it, or what keeps the row from being one."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from functools import cached_property

from poolproof.backends.base import Backend
from poolproof.references.standards import Standard
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.lists.entry import Entry
from poolproof.suites.judging.asked import Asked, Aspect, verdict
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.judge import Question


@dataclass(frozen=True, kw_only=True)
class ListedQuestion(Question):
    """The case of a row, with the row's own standard."""

    entry: Entry

    @property
    def own_standard(self) -> Standard | None:
        return self.entry.own.standard

    def describe(self) -> Row:
        return super().describe() | _place(self.entry)


@dataclass(frozen=True)
class UnreadableRow:
    """A row that is no case: it is not run, and says why."""

    entry: Entry
    aspect: Aspect
    block: str
    patience: float = field(default=1.0, init=False)
    evidence: None = field(default=None, init=False)

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

    def owed_checks(self) -> tuple[str, ...]:
        return ()

    def company(self) -> None:
        """No call is made."""

    def leaving(self, evidence: EvidenceFolder) -> UnreadableRow:  # noqa: ARG002
        return self


def listed_question(entry: Entry, aspect: Aspect) -> Asked:
    """The question of one row."""
    if entry.case is None:
        return UnreadableRow(entry, aspect, entry.place)
    return ListedQuestion(entry.case, aspect, entry.place, entry=entry)


def _place(entry: Entry) -> Row:
    return {"list": entry.label, "list_row": entry.row, "list_name": entry.name, "list_standard": entry.own.name}
