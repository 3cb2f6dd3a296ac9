"""Whether a failure repeats: its question, asked again a few times, each time first and alone in its process.

A question that fails now and then is asked more often than one that always fails, so that its rate means something.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict
from poolproof.suites.judging.question import Question

SECONDS = 10.0
"""What asking one question again may cost, the last answer apart."""

ENOUGH = 3
"""Failures without any answer that is none: taken for a failure that always repeats."""

MOST = 10
"""Answers at most, where some fail and some do not."""


@dataclass(frozen=True)
class Repetition:
    """The answers to a question that was asked again; those that judge nothing are left out."""

    rows: tuple[Row, ...] = ()

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if deviates(row)]

    @property
    def always_fails(self) -> bool:
        """Whether nothing speaks against it: nobody asked, or every answer is a failure."""
        return len(self.failures) == len(self.rows)

    @property
    def columns(self) -> Row:
        """What a row says of it."""
        return {"asked_again": len(self.rows), "failed_again": len(self.failures)} if self.rows else {}

    def fails_as_often_as(self, other: Repetition) -> bool:
        """Whether its rate of failures is no smaller; always, as that of an other which nobody asked."""
        if not other.rows:
            return self.always_fails
        return len(self.failures) * len(other.rows) >= len(other.failures) * len(self.rows)


def asked_again(question: Question, ask: Callable[[Question], Row], seconds: float = SECONDS) -> Repetition:
    """``question`` asked until it is known whether it repeats and how often, or the time is up."""
    deadline = time.monotonic() + seconds
    answers: list[Row] = []
    while len(answers) < MOST and not (answers and time.monotonic() > deadline):
        answers.append(ask(question))
        if len(answers) == ENOUGH and all(map(deviates, answers)):
            break
    return Repetition(tuple(row for row in answers if row["verdict"] in JUDGED))


def deviates(row: Row) -> bool:
    """Whether the row tells of a deviation, accepted or not."""
    return row["verdict"] in FAILED or row["verdict"] == Verdict.WAIVED
