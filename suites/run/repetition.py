"""Repetition of failures: a question judged a few more times, each time first and alone in its process.

A question that fails now and then is repeated more often than one that always fails, so that its rate means something.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict
from poolproof.suites.judging.question import Question

SECONDS = 10.0
"""Seconds after which no repetition begins."""

ENOUGH = 3
"""Repetitions, if all of them fail: the failure counts as permanent."""

MOST = 10
"""Repetitions at most, if some fail and some do not."""


@dataclass(frozen=True)
class Repetition:
    """The rows of a repeated question, but for those that judge nothing."""

    rows: tuple[Row, ...] = ()

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if deviates(row)]

    @property
    def always_fails(self) -> bool:
        """Whether every repetition failed; true if there was none."""
        return len(self.failures) == len(self.rows)

    @property
    def columns(self) -> Row:
        """The columns of the failure's row."""
        return {"asked_again": len(self.rows), "failed_again": len(self.failures)} if self.rows else {}

    def fails_as_often_as(self, other: Repetition) -> bool:
        """Compare the rates of failures; an other that was not repeated counts as failing always."""
        if not other.rows:
            return self.always_fails
        return len(self.failures) * len(other.rows) >= len(other.failures) * len(self.rows)


def repeat(question: Question, ask: Callable[[Question], Row], seconds: float = SECONDS) -> Repetition:
    """Repeat a question until its rate of failures is known, or the time is up."""
    deadline = time.monotonic() + seconds
    answers: list[Row] = []
    while len(answers) < MOST and not (answers and time.monotonic() > deadline):
        answers.append(ask(question))
        if len(answers) == ENOUGH and all(map(deviates, answers)):
            break
    return Repetition(tuple(row for row in answers if row["verdict"] in JUDGED))


def deviates(row: Row) -> bool:
    """Tell whether a row is a deviation, waived or not."""
    return row["verdict"] in FAILED or row["verdict"] == Verdict.WAIVED
