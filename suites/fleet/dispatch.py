"""Dispatch of work in a fleet: work goes to idle judges, and what a dead judge left to another.

Rows are passed on as they come, so when a judge dies, only the case in progress is judged again. A `Pool` knows what
judges are and how to reach them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from poolproof.reports.rows.schema import Row
from poolproof.suites.fleet.node import Batch, Single, Work
from poolproof.suites.isolation.supervision import START_SECONDS
from poolproof.suites.judging.question import Question

MOST_DEATHS = 5
"""Deaths of judges at one case before it is given up: judges that are killed from outside die at any case."""


@dataclass(frozen=True)
class RowsArrived:
    """Rows arrived from a judge."""

    judge: int
    batch: Batch


@dataclass(frozen=True)
class WorkFinished:
    """A judge finished its work; ``error`` is what it raised instead, empty if nothing."""

    judge: int
    error: str = ""


@dataclass(frozen=True)
class JudgeDied:
    """A judge is gone; ``reason`` completes a sentence about it."""

    judge: int
    reason: str


Event = RowsArrived | WorkFinished | JudgeDied


class Pool(Protocol):
    """Judges by their numbers."""

    @property
    def judges(self) -> Sequence[int]: ...

    def takes(self, judge: int, work: Work) -> bool:
        """Tell whether a judge should get some work, if there are others."""

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        """Have an idle judge judge the work, but for cases whose ids are in ``judged``."""

    def wait(self, seconds: float) -> Iterable[Event]:
        """Wait for events; return as soon as there are some."""

    def replace(self, judge: int) -> None:
        """Replace a judge that died or hangs; `BadInput` if there is no other."""


class Sink(Protocol):
    """The consumer of what a fleet judges."""

    def take(self, batch: Batch) -> None: ...

    def end(self, work: Work, rows: Sequence[Row], error: str, judge: int, seconds: float) -> None:
        """Finish work that a judge ended, so many seconds after it got it; ``error`` says why rows are missing."""

    def note_death(self, work: Work, case: Question | None, reason: str) -> None:
        """Report that a judge died at some work, most likely at that case; another continues."""

    def give_up(self, work: Work, case: Question) -> Row:
        """Make the row of a case that no judge survives."""


@dataclass
class _Assignment:
    """The work that a judge is at."""

    work: Work
    began: float
    heard: float


class Dispatch:
    """Assigns works in order. A judge that is silent for ``silence_timeout`` seconds is ended."""

    def __init__(
        self, pool: Pool, sink: Sink, silence_timeout: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._sink = sink
        self._silence_timeout = silence_timeout
        self._clock = clock
        self._assignments: dict[int, _Assignment] = {}
        self._rows: dict[str, list[Row]] = {}
        self._deaths: Counter[tuple[str, str]] = Counter()

    def run(self, works: Iterable[Work], goes_on: Callable[[], bool] = lambda: True) -> None:
        """Run until all works have ended; once ``goes_on`` returns false, no more are assigned."""
        left = deque(works)
        while left or self._assignments:
            if not goes_on():
                left.clear()
            self._assign(left)
            for event in self._pool.wait(1.0):
                self._handle(event, left)
            for judge, assignment in list(self._assignments.items()):
                if self._clock() - assignment.heard > self._silence_timeout:
                    self._lose_judge(
                        JudgeDied(judge, f"said nothing for {self._silence_timeout:,.0f} s and was ended"), left
                    )

    def _assign(self, left: deque[Work]) -> None:
        for judge in self._pool.judges:
            if judge in self._assignments or not left:
                continue
            work = next((work for work in left if self._pool.takes(judge, work)), None)
            if work is None and not self._assignments:
                work = left[0]  # no better judge is left
            if work is not None:
                left.remove(work)
                self._pool.give(judge, work, self._judged(work))
                now = self._clock()
                self._assignments[judge] = _Assignment(work, now, now)

    def _judged(self, work: Work) -> frozenset[str]:
        return frozenset(row["case_id"] for row in self._rows.get(work.id, ()))

    def _handle(self, event: Event, left: deque[Work]) -> None:
        assignment = self._assignments.get(event.judge)
        if assignment is None:
            return
        assignment.heard = self._clock()
        match event:
            case RowsArrived(_, batch):
                self._sink.take(batch)
                self._rows.setdefault(assignment.work.id, []).extend(batch.rows)
            case WorkFinished(judge, error):
                del self._assignments[judge]
                self._sink.end(
                    assignment.work,
                    self._rows.pop(assignment.work.id, []),
                    error,
                    judge,
                    assignment.heard - assignment.began,
                )
            case JudgeDied():
                self._lose_judge(event, left)

    def _lose_judge(self, death: JudgeDied, left: deque[Work]) -> None:
        work = self._assignments.pop(death.judge).work
        case = self._case_at(work)
        self._sink.note_death(work, case, death.reason)
        if case is not None:
            self._deaths[work.id, case.id] += 1
            if self._deaths[work.id, case.id] >= MOST_DEATHS:
                row = self._sink.give_up(work, case)
                self._rows.setdefault(work.id, []).append(row)
        left.appendleft(work)
        self._pool.replace(death.judge)

    def _case_at(self, work: Work) -> Question | None:
        """Return the first case behind all that have rows: the one in progress, or the next."""
        questions = [work.question] if isinstance(work, Single) else work.questions()
        judged = self._judged(work)
        last = max((number for number, asked in enumerate(questions) if asked.id in judged), default=-1)
        behind = (asked for asked in questions[last + 1 :] if asked.id not in judged)
        return next(behind, next((asked for asked in questions if asked.id not in judged), None))


def silence_timeout(timeout: float) -> float:
    """Return the seconds after which a silent judge counts as hung: loading, and a case with all its variants."""
    return START_SECONDS + 20.0 * timeout


def by_cost(works: Iterable[Work], costs: Mapping[str, float]) -> list[Work]:
    """Sort works, the costly first, so that all judges end at about the same time."""
    return sorted(works, key=lambda work: -costs.get(work.id, 1.0))
