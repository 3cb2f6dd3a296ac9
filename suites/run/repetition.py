"""Repetition of failures: their rate, each time alone in a fresh process, and which call is to blame.

A question that fails sometimes is repeated more often than one that always fails, for a meaningful rate. A call may
die, or give wrong results, because of an earlier call in the same process. If one of a question's auxiliary calls
deviates by itself, the question is judged again without it. A failure that remains belongs to the question's own call.
Otherwise the auxiliary call is blamed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from poolproof.reports.rows.checks import REFUSAL
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict
from poolproof.suites.judging.checks import CALLS_AUXILIARIES
from poolproof.suites.judging.question import Question

SECONDS = 10.0
"""Seconds after which no repetition begins."""

ENOUGH = 3
"""Repetitions if all of them fail: the failure is permanent."""

MOST = 10
"""Most repetitions, if some of them pass."""

T = TypeVar("T")

Ask = Callable[[Question], Row]
"""Judges a question in a fresh process of the backend, and returns its row with waivers applied."""

DEATHS = (Verdict.CRASHED, Verdict.TIMED_OUT)


@dataclass(frozen=True)
class Repetition:
    """The rows of a repeated question that have a judgement."""

    rows: tuple[Row, ...] = ()

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if deviates(row)]

    @property
    def columns(self) -> Row:
        return {"asked_again": len(self.rows), "failed_again": len(self.failures)} if self.rows else {}

    def fails_as_often_as(self, other: Repetition) -> bool:
        """Compare the rates of failures; an ``other`` without repetitions counts as always failing."""
        if not other.rows:
            return len(self.failures) == len(self.rows)
        return len(self.failures) * len(other.rows) >= len(other.failures) * len(self.rows)


def repeat(question: Question, ask: Ask, seconds: float = SECONDS) -> Repetition:
    """Repeat a question until its failure rate is known, or the time is up."""
    deadline = time.monotonic() + seconds
    answers: list[Row] = []
    while len(answers) < MOST and not (answers and time.monotonic() > deadline):
        answers.append(ask(question))
        if len(answers) == ENOUGH and all(map(deviates, answers)):
            break
    return Repetition(tuple(row for row in answers if row["verdict"] in JUDGED))


def shortest_before(earlier: Sequence[T], fails: Callable[[Sequence[T]], bool], deadline: float) -> Sequence[T]:
    """Return a short list of ``earlier`` items after which something fails; empty if none is found in time.

    It tries the last item, then twice as many, and so on. Then it leaves out halves, and smaller parts.
    """
    count, kept = 1, earlier[-1:]
    while kept and not fails(kept):
        count *= 2
        kept = earlier[-count:] if len(kept) < len(earlier) and time.monotonic() < deadline else ()
    part = len(kept) // 2
    while part and time.monotonic() < deadline:
        without = ((*kept[:start], *kept[start + part :]) for start in range(0, len(kept), part))
        kept, before = next(filter(fails, without), kept), kept
        part = min(part, len(kept) // 2) if len(kept) < len(before) else part // 2
    return kept


def deviates(row: Row) -> bool:
    """Tell whether a row is a deviation, waived or not."""
    return row["verdict"] in FAILED or row["verdict"] == Verdict.WAIVED


def attribute(question: Question, row: Row, ask: Ask) -> tuple[Row, ...]:
    """Return the question's final row, followed by that of an auxiliary call that is blamed instead."""
    is_found_late = row["verdict"] in FAILED and {*CALLS_AUXILIARIES, REFUSAL} & {*(row["checks_violated"] or ())}
    auxiliary: Sequence[Question] = question.auxiliary_calls() if row["verdict"] in DEATHS or is_found_late else ()
    if not auxiliary:
        return (row,)
    alone = question.without_auxiliary([call.id for call in auxiliary])
    if row["verdict"] in DEATHS and ask(alone)["verdict"] in DEATHS:
        return (row,)
    blamed: list[tuple[Question, Row]] = []
    again = row
    while again["verdict"] in FAILED:
        named = [call for call in auxiliary if call.to_line() in again["reason"]]  # usually one of these is to blame
        guilty = _guilty(named, ask) or _guilty([call for call in auxiliary if call not in named], ask)
        if not guilty:
            return (again,)
        blamed += guilty
        auxiliary = [call for call in auxiliary if all(call is not other for other, _ in guilty)]
        again = ask(question.without_auxiliary([call.id for call, _ in blamed]))
    call, blamed_row = blamed[0]
    if question.evidence and not question.evidence.shrunk_from:  # only a call with its own row leaves evidence
        kept = ask(call.with_evidence_dir(question.evidence))
        blamed_row = kept if deviates(kept) else blamed_row
    reason = f"judged without an earlier call that deviates by itself: {replay_line(blamed_row)}"
    return again | {"reason": "; ".join(filter(None, (again["reason"], reason)))}, blamed_row


def _guilty(calls: Sequence[Question], ask: Ask) -> list[tuple[Question, Row]]:
    return [(call, row) for call in calls if deviates(row := ask(call))]
