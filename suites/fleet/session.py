"""The loop of a pytest session in which a fleet judges the blocks, in place of pytest's own or xdist's."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from poolproof.backends.base import BackendUnavailable
from poolproof.reports.rows.evidence import write_programs
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.fleet.node import Batch, FleetError
from poolproof.suites.fleet.ray_pool import START_TIMEOUT, RayPool
from poolproof.suites.judging.question import Question, verdict
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.run.runner import BlockResult

MOST_DEATHS = 3
"""Deaths of judges at a block before its cases are judged alone, and at a case before it is given up."""


@dataclass
class Work:
    """A test with what it asks, what has come of it, and the number of its parts that are still to be judged."""

    item: pytest.Item
    asked: Block
    parts: int = 1
    result: BlockResult = field(default_factory=BlockResult)
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Recording:
    """Records what a fleet judges in the folder of a run."""

    folder: Path
    rows: RowWriter

    def take(self, batch: Batch) -> None:
        for name, content in batch.files.items():
            path = self.folder / name
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        if batch.files:
            write_programs(self.folder)
        for row in batch.rows:
            self.rows.append(row)

    def take_part(self, batch: Batch, work: Work) -> None:
        """Take the result of a part of a work; a block is finished once all its parts were judged without an error."""
        self.take(batch)
        for row in batch.rows:
            work.result.add(row)
        work.error = work.error or batch.error
        work.parts -= 1
        if not (work.parts or work.error or isinstance(work.asked, SingleBlock)):
            self.rows.finish_block(work.asked.id)


def works_of(items: Iterable[pytest.Item]) -> list[Work]:
    """Return the works of a session's tests, the costly first, so that all judges end at about the same time."""
    found = []
    for item in items:
        match getattr(getattr(item, "callspec", None), "params", {}):
            case {"block": asked} | {"single": asked}:
                found.append(Work(item, asked))
    return sorted(found, key=lambda work: -work.asked.cost)


def judge_session(
    session: pytest.Session,
    pool: RayPool,
    recording: Recording,
    report: Callable[[Work, int], None],
    judged: Container[tuple[str, str]],
) -> None:
    """Have the works of a session's tests judged by a pool, as `judge_all`; other tests run here."""
    works = works_of(session.items)
    judged_there = {work.item for work in works}
    here = [item for item in session.items if item not in judged_there]
    for item, following in zip_longest(here, here[1:]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    judge_all(works, pool, recording, report, judged, lambda: bool(session.shouldstop or session.shouldfail))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


@dataclass(frozen=True)
class Part:
    """Something to be judged for a test, at which so many judges have died."""

    work: Work
    asked: Block
    deaths: int = 0

    def after_death(self, judged: Container[tuple[str, str]]) -> list[Part]:
        """Return the work to judge again: in the end the single cases of a block, without those ``judged``."""
        if self.deaths + 1 < MOST_DEATHS:
            return [replace(self, deaths=self.deaths + 1)]
        if isinstance(self.asked, SingleBlock):
            return []
        cases = [case for case in self.asked.questions() if (self.asked.id, case.id) not in judged]
        return [Part(self.work, SingleBlock(case, self.asked.backend)) for case in cases]

    def given_up(self) -> Batch:
        """Make the row of a question that no judge survives."""
        if not isinstance(self.asked, SingleBlock):
            return Batch()
        row = self.asked.question.describe() | verdict(Verdict.NOT_RUN, f"{MOST_DEATHS} judges of the fleet died at it")
        row |= {"checks_judged": [], "judged_at": time.time(), "product": "", "worker": "fleet"}
        return Batch([row | {"backend": self.asked.backend}])


def judge_all(
    works: Iterable[Work],
    pool: RayPool,
    recording: Recording,
    report: Callable[[Work, int], None],
    judged: Container[tuple[str, str]] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Give works to idle judges until all are judged or it ``is_over``; `FleetError` if no judge is left.

    ``report`` takes each work that is judged, and its last judge. ``judged`` are the (block, case id) of a resumed run.
    """
    left = deque(Part(work, work.asked) for work in works)
    idle: deque[int] = deque()
    starting = {pool.ping(judge): judge for judge in range(pool.size)}
    running: dict[Any, tuple[int, Part, float]] = {}
    heard = time.monotonic()
    while True:
        while idle and left and not is_over():
            judge, part = idle.popleft(), left.popleft()
            running[pool.ask(judge, "judge", part.asked)] = judge, part, time.monotonic()
        if not running and (not left or is_over()):
            return
        if not running and time.monotonic() - heard > START_TIMEOUT:
            raise FleetError(f"no judge came back for {START_TIMEOUT:.0f} s: see ray status; continue with --resume")
        for reference, batch in pool.answers([*running, *starting]):
            heard = time.monotonic()
            if reference in starting:
                idle.append(starting.pop(reference))
                continue
            judge, part, began = running.pop(reference)
            starting[pool.ping(judge)] = judge
            work = part.work
            work.seconds += time.monotonic() - began
            if batch is None and (again := part.after_death(judged)):
                left.extendleft(again)
                work.parts += len(again) - 1
                continue
            recording.take_part(batch or part.given_up(), work)
            if not work.parts:
                report(work, judge)


def judge_further(pool: RayPool, recording: Recording, question: Question, backend: str) -> Row:
    """Judge and record a further question, once; `BackendUnavailable` if no judge can."""
    pings = {pool.ping(judge): judge for judge in range(pool.size)}
    judge = pings[_first_answer(pool, list(pings))[0]]
    _, found = _first_answer(pool, [pool.ask(judge, "judge_one", question, backend, False)])
    batch = found or Batch(error="the judge that got it died")
    recording.take(batch)
    if batch.error:
        raise BackendUnavailable(batch.error.splitlines()[-1])
    return next(row for row in batch.rows if (row["case_id"], row["block"]) == (question.id, question.block))


def _first_answer(pool: RayPool, references: Sequence[Any]) -> tuple[Any, Batch | None]:
    while not (answers := pool.answers(references)):
        pass
    return answers[0]
