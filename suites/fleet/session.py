"""The loop of a pytest session whose blocks are judged by a fleet, instead of pytest's own or xdist's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from poolproof.backends.base import BackendUnavailable
from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.evidence import write_programs
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.fleet.dispatch import MOST_DEATHS, Dispatch, Pool, by_cost, silence_timeout
from poolproof.suites.fleet.node import Batch, Single, Work
from poolproof.suites.judging.question import Question, verdict
from poolproof.suites.run.runner import BlockResult

Report = Callable[[Work, BlockResult, str, int, float], None]
"""Takes some work, its result, the error that ended it, the judge, and the seconds that it took."""


class Recording:
    """Records rows and evidence of a fleet in the folder of a run; ``report`` tells pytest, ``say`` prints a line."""

    def __init__(
        self,
        folder: Path,
        rows: RowWriter,
        report: Report,
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._report = report
        self._say = say
        self._unplanned: set[tuple[str, str]] = set()
        self._has_programs = False

    def take(self, batch: Batch) -> None:
        for name, content in batch.files.items():
            self._write(self._folder / name, content)
        for row in batch.rows:
            if not self._is_duplicate(row):
                self._rows.append(row)

    def _is_duplicate(self, row: Row) -> bool:
        """Tell whether an unplanned call, which belongs to no block, has a row from another judge."""
        if row["block"]:
            return False
        key = row["backend"], row["case_id"]
        is_duplicate = key in self._unplanned
        self._unplanned.add(key)
        return is_duplicate

    def _write(self, path: Path, content: bytes) -> None:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if not self._has_programs:
            write_programs(self._folder)
            self._has_programs = True

    def end(self, work: Work, rows: Sequence[Row], error: str, judge: int, seconds: float) -> None:
        result = BlockResult()
        for row in rows:
            result.add(row)
        if not isinstance(work, Single) and not error:
            self._rows.finish_block(work.id)
        self._report(work, result, error, judge, seconds)

    def note_death(self, work: Work, case: Question | None, why: str) -> None:
        at = "" if case is None else f", at case {case.id}"
        self._say(f"poolproof: a judge {why} while it was at {work.id}{at}: the rest goes to another")

    def give_up(self, work: Work, case: Question) -> Row:
        backend = work.backend if isinstance(work, Single) else work.subject.backend
        reason = f"{MOST_DEATHS} judges of the fleet died at it, and it was given to no other"
        row = case.describe() | verdict(Verdict.NOT_RUN, reason)
        row |= {"checks_judged": [], "judged_at": time.time(), "backend": backend, "product": "", "worker": "fleet"}
        self._rows.append(row)
        return row


class FurtherJudge:
    """Judges further cases by a pool, one after the other, and records them with the others of a run."""

    def __init__(self, pool: Pool, folder: Path, rows: RowWriter, timeout: float, say: Callable[[str], None]) -> None:
        self._pool = pool
        self._silence_timeout = silence_timeout(timeout)
        self._recording = Recording(folder, rows, self._note, say)
        self._error = ""

    def judge(self, question: Question, backend: str) -> Row:
        """Judge a question; `BackendUnavailable` if the judge raised an exception."""
        kept = _CollectingSink(self._recording)
        Dispatch(self._pool, kept, self._silence_timeout).run([Single(question.id, question, backend, further=True)])
        if self._error:
            raise BackendUnavailable(self._error.strip().splitlines()[-1])
        return next(row for row in kept.rows if (row["case_id"], row["block"]) == (question.id, question.block))

    def _note(self, work: Work, result: BlockResult, error: str, judge: int, seconds: float) -> None:  # noqa: ARG002
        self._error = error


class _CollectingSink:
    """A sink that records rows, and collects them."""

    def __init__(self, recording: Recording) -> None:
        self.rows: list[Row] = []
        self.take = recording.take
        self.note_death = recording.note_death
        self.give_up = recording.give_up
        self._recording = recording

    def end(self, work: Work, rows: Sequence[Row], error: str, judge: int, seconds: float) -> None:
        self.rows += rows
        self._recording.end(work, rows, error, judge, seconds)


def works_of(items: Iterable[pytest.Item]) -> dict[str, tuple[Work, pytest.Item]]:
    """Return the works of a session's tests, by id, each with its test; other tests are left out."""
    found: dict[str, tuple[Work, pytest.Item]] = {}
    for item in items:
        parameters: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "block" in parameters:
            found[parameters["block"].id] = parameters["block"], item
        elif "question" in parameters:
            name = item.nodeid
            found[name] = Single(name, parameters["question"], parameters["backend_name"]), item
    return found


def judge_all(session: pytest.Session, pool: Pool, folder: Path, rows: RowWriter, timeout: float) -> None:
    """Have the works of a session's tests judged by a pool; other tests run here."""
    works = works_of(session.items)
    judged = {item.nodeid for _, item in works.values()}
    here = [item for item in session.items if item.nodeid not in judged]
    for number, item in enumerate(here):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=here[number + 1] if number + 1 < len(here) else None)

    def report(work: Work, result: BlockResult, error: str, judge: int, seconds: float) -> None:
        _report_test(works[work.id][1], result, error, judge, seconds)

    recording = Recording(folder, rows, report, session.config.get_terminal_writer().line)
    costs = {name: _cost(work) for name, (work, _) in works.items()}
    dispatch = Dispatch(pool, recording, silence_timeout(timeout))
    dispatch.run(by_cost([work for work, _ in works.values()], costs), lambda: not _is_over(session))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _is_over(session: pytest.Session) -> bool:
    return bool(session.shouldstop or session.shouldfail)


def _cost(work: Work) -> float:
    return 1.0 if isinstance(work, Single) else work.count * usual_cost(work.aspect.id)


def _report_test(item: pytest.Item, result: BlockResult, error: str, judge: int, seconds: float) -> None:
    """Report a test that a judge ran to pytest."""
    text = error or (result.message() if result.failures else None)
    stop = time.time()
    report = pytest.TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        "passed" if text is None else "failed",
        text,
        "call",
        user_properties=[("poolproof", (dict(result.aspects), len(result.failures)))],
        start=stop - seconds,
        stop=stop,
        duration=seconds,
        worker_id=f"fleet{judge}",
    )
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
