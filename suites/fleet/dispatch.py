"""Who of a fleet judges what: work goes to whoever is idle, and what a judge that died had not judged to another.

Rows are handed on as they come, so that of a judge that dies no more is judged again than what it was at. What judges
are, and how they are reached, is not known here: a `Pool` says.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from poolproof.reports.rows.schema import Row
from poolproof.suites.fleet.node import Batch, Single, Work
from poolproof.suites.judging.question import Question
from poolproof.suites.running.sandbox import START_SECONDS

MOST_DEATHS = 5
"""Of judges at one case, which gets no other: judges that are killed from outside die at any."""


@dataclass(frozen=True)
class Came:
    """Rows have come from a judge."""

    judge: int
    batch: Batch


@dataclass(frozen=True)
class Ended:
    """A judge has judged all that it was given; ``error`` says what it raised instead, empty if nothing."""

    judge: int
    error: str = ""


@dataclass(frozen=True)
class Died:
    """A judge is gone; ``why`` ends a sentence about it."""

    judge: int
    why: str


Event = Came | Ended | Died


class Pool(Protocol):
    """Judges by their numbers."""

    @property
    def judges(self) -> Sequence[int]: ...

    def takes(self, judge: int, work: Work) -> bool:
        """Whether the work is for this judge, where there is another that is idle."""

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        """Let an idle judge judge what of the work is not ``judged`` yet, by the ids of its cases."""

    def wait(self, seconds: float) -> Iterable[Event]:
        """What happened, as soon as something did."""

    def replace(self, judge: int) -> None:
        """Put a new judge in the place of one that died, or that is to be ended. `BadInput` where there is none."""


class Sink(Protocol):
    """What becomes of what is judged."""

    def take(self, batch: Batch) -> None: ...

    def end(self, work: Work, rows: Sequence[Row], error: str, judge: int, seconds: float) -> None:
        """All of the work has its rows, the last ones from that judge, that long after it got it; ``error`` says why
        not.
        """

    def note_death(self, work: Work, case: Question | None, why: str) -> None:
        """A judge died at some work, most likely at that case; it is judged by another."""

    def give_up(self, work: Work, case: Question) -> Row:
        """The row of a case that nobody survives."""


@dataclass
class _Share:
    """What one judge is at."""

    work: Work
    began: float
    heard: float


class Dispatch:
    """Deals out works, the first first. A judge that says nothing for ``patience`` seconds is ended."""

    def __init__(self, pool: Pool, sink: Sink, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._sink = sink
        self._patience = patience
        self._clock = clock
        self._shares: dict[int, _Share] = {}
        self._rows: dict[str, list[Row]] = {}
        self._deaths: Counter[tuple[str, str]] = Counter()

    def run(self, works: Iterable[Work], goes_on: Callable[[], bool] = lambda: True) -> None:
        """Until all works have ended, or nothing is to be dealt out any more and what was dealt has ended."""
        left = deque(works)
        while left or self._shares:
            if not goes_on():
                left.clear()
            self._deal(left)
            for event in self._pool.wait(1.0):
                self._happened(event, left)
            for judge, share in list(self._shares.items()):
                if self._clock() - share.heard > self._patience:
                    self._lost(Died(judge, f"said nothing for {self._patience:,.0f} s and was ended"), left)

    def _deal(self, left: deque[Work]) -> None:
        for judge in self._pool.judges:
            if judge in self._shares or not left:
                continue
            work = next((work for work in left if self._pool.takes(judge, work)), None)
            if work is None and not self._shares:
                work = left[0]  # nobody is left that it would rather go to
            if work is not None:
                left.remove(work)
                self._pool.give(judge, work, self._judged(work))
                now = self._clock()
                self._shares[judge] = _Share(work, now, now)

    def _judged(self, work: Work) -> frozenset[str]:
        return frozenset(row["case_id"] for row in self._rows.get(work.id, ()))

    def _happened(self, event: Event, left: deque[Work]) -> None:
        share = self._shares.get(event.judge)
        if share is None:
            return
        share.heard = self._clock()
        match event:
            case Came(_, batch):
                self._sink.take(batch)
                self._rows.setdefault(share.work.id, []).extend(batch.rows)
            case Ended(judge, error):
                del self._shares[judge]
                self._sink.end(share.work, self._rows.pop(share.work.id, []), error, judge, share.heard - share.began)
            case Died():
                self._lost(event, left)

    def _lost(self, death: Died, left: deque[Work]) -> None:
        work = self._shares.pop(death.judge).work
        case = self._case_at(work)
        self._sink.note_death(work, case, death.why)
        if case is not None:
            self._deaths[work.id, case.id] += 1
            if self._deaths[work.id, case.id] >= MOST_DEATHS:
                row = self._sink.give_up(work, case)
                self._rows.setdefault(work.id, []).append(row)
        left.appendleft(work)
        self._pool.replace(death.judge)

    def _case_at(self, work: Work) -> Question | None:
        """The first case behind all that have rows: what a judge was at, or was about to begin."""
        questions = [work.question] if isinstance(work, Single) else work.questions()
        judged = self._judged(work)
        last = max((number for number, asked in enumerate(questions) if asked.id in judged), default=-1)
        behind = (asked for asked in questions[last + 1 :] if asked.id not in judged)
        return next(behind, next((asked for asked in questions if asked.id not in judged), None))


def patience(timeout: float) -> float:
    """Seconds after which a judge that says nothing hangs itself: loading, and a case that is asked in all ways."""
    return START_SECONDS + 20.0 * timeout


def by_cost(works: Iterable[Work], costs: Mapping[str, float]) -> list[Work]:
    """The costly first, so that all end at about the same time."""
    return sorted(works, key=lambda work: -costs.get(work.id, 1.0))
