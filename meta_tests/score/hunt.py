"""Hunts: a process per defect judges a plan's questions on an emulator with it, until one is violated.

The process that organises the hunts holds the questions, and forks one for each hunt. What a hunt finds counts only
when the honest emulator passes the same question.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from poolproof.backends.base import Backend
from poolproof.backends.emulator import defects as seeds
from poolproof.references.kernels.compiled import compile_all
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.score.questions import Round
from poolproof.suites.isolation.guardian import die_with
from poolproof.suites.judging.faults import HostDied
from poolproof.suites.judging.question import Question
from poolproof.suites.run.sandbox import Sandbox

HONEST = ""
"""In place of a defect: none."""


@dataclass
class Result:
    """The result for one defect on one product.

    ``cases`` were asked and ``seconds`` spent until it was found, or in all; ``cpu_seconds`` is the work of its
    processes, shrinking included. ``row`` is the violation; ``shrunk`` the smallest case found that shows it, and
    ``replays`` whether that does so in a fresh process. ``disputed`` counts violations that the honest emulator shows
    as well.
    """

    defect: str
    product: str
    row: Row | None = None
    cases: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    shrunk: str = ""
    replays: bool = False
    disputed: int = 0

    @property
    def is_found(self) -> bool:
        return self.row is not None


class OwnFault(Exception):
    """The suite itself failed in another process; the text is the traceback there."""


@dataclass(frozen=True)
class _Found:
    """The result of a hunt: the violation that the last of the questions up to ``position`` showed, if one did."""

    position: int
    row: Row | None
    smaller: Question | None
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Hunts:
    """Runs up to ``workers`` hunts at a time. ``timeout`` is what one question may take, ``shrink_seconds`` what a
    found defect may spend on a smaller case; ``notice`` is told of every result that changes. Without ``replays`` what
    is found is not asked again: the result then says neither whether it replays nor what is smaller.
    """

    workers: int
    timeout: float
    shrink_seconds: float
    notice: Callable[[Result], None]
    replays: bool = True
    _honest: set[tuple[str, Question]] = field(default_factory=set, repr=False)

    def run(self, results: Sequence[Result], asked: Round) -> None:
        """Put a round to every defect that is not found."""
        compile_all()  # else each hunt would
        gc.collect()
        gc.freeze()
        hunts = deque(partial(self._hunt, asked, result, 0) for result in results if not result.is_found)
        for hunt, found in in_forks(hunts, self.workers):
            _, result, position = hunt.args
            result.seconds += found.seconds
            result.cpu_seconds += found.cpu_seconds
            result.cases += found.position - position
            if found.row is not None and not self._counts(asked.questions[result.product], result, found):
                hunts.appendleft(partial(self._hunt, asked, result, found.position))
            self.notice(result)

    def _hunt(self, asked: Round, result: Result, position: int) -> _Found:
        """Seek a defect with the questions from ``position`` on, in a process of its own."""
        questions, smaller, begun = asked.questions[result.product], None, time.monotonic()
        with emulator(result.product, result.defect, self.timeout) as sandbox:
            for row in _rows(sandbox, questions[position:]):
                position += 1
                if row["verdict"] in FAILED:
                    break
            else:
                return _Found(position, None, None, time.monotonic() - begun, _cpu_seconds())
            seconds = time.monotonic() - begun
            if self.shrink_seconds > 0:
                smaller = self._smaller(sandbox, asked, questions[position - 1], row)
        return _Found(position, row, smaller, seconds, _cpu_seconds())

    def _smaller(self, sandbox: Sandbox, asked: Round, question: Question, row: Row) -> Question | None:
        """Seek the smallest question that still breaks the same check."""
        first = set(row["checks_violated"][:1])

        def still_fails(each: Question) -> bool:
            return first <= set(next(_rows(sandbox, [each]))["checks_violated"])

        return asked.blocks[question.block].smaller(question, still_fails, self.shrink_seconds)

    def _counts(self, questions: Sequence[Question], result: Result, found: _Found) -> bool:
        """Book what a hunt found, and tell whether it counts; the hunt goes on behind it where it does not."""
        question = questions[found.position - 1]
        if not self._is_honest_about(result.product, question):
            result.disputed += 1
            return False
        result.row = found.row
        if self.replays:
            self._settle_reproducer(result, question, found.smaller)
        return True

    def _settle_reproducer(self, result: Result, question: Question, smaller: Question | None) -> None:
        """Keep the shrunk case only if the honest emulator passes it and a fresh defective one does not."""
        if smaller and self._is_honest_about(result.product, smaller):
            result.replays = not self._passes(result.product, result.defect, smaller)
        if smaller and result.replays:
            result.shrunk = smaller.describe()["case"]
        else:
            result.replays = not self._passes(result.product, result.defect, question)

    def _is_honest_about(self, product: str, question: Question) -> bool:
        """Tell whether the honest emulator passes, once per question: one question finds many defects."""
        if (product, question) not in self._honest and self._passes(product, HONEST, question):
            self._honest.add((product, question))
        return (product, question) in self._honest

    def _passes(self, product: str, defect: str, question: Question) -> bool:
        """Tell whether this question alone gives no violation in a fresh process."""
        return next(answers(product, defect, [question], self.timeout))["verdict"] not in FAILED


def answers(product: str, defect: str, questions: Sequence[Question], timeout: float) -> Iterator[Row]:
    """Yield the rows of an emulator in a process of its own, one per question in order."""
    with emulator(product, defect, timeout) as sandbox:
        yield from _rows(sandbox, questions)


def _rows(sandbox: Sandbox, questions: Sequence[Question]) -> Iterator[Row]:
    """One per question; `OwnFault` where the suite itself fails."""
    for row in sandbox.judge(questions):
        if row["verdict"] in (Verdict.SUITE_ERROR, Verdict.ADAPTER_ERROR):
            raise OwnFault(row["findings"])
        yield sandbox.unplanned.pop() if sandbox.unplanned else row


@contextmanager
def emulator(product: str, defect: str, timeout: float) -> Iterator[Sandbox]:
    """Open the emulator with a defect, which it reads once, when it is loaded."""
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend_name(product), Path(scratch), "score", timeout)
        try:
            with patch.dict(os.environ, {seeds.VARIABLE: defect}):
                sandbox.start()
                yield sandbox
        finally:
            sandbox.close()


def backend_name(product: str) -> str:
    return f"emulator-{product.lower()}"


_T = TypeVar("_T", bound=Callable[[], Any])

Task = tuple[str, str, Callable[[Backend], Any]]
"""Product, defect, and what to ask of the emulator that has it."""


def in_processes(tasks: Sequence[Task], workers: int, timeout: float) -> Iterator[tuple[int, Any]]:
    """(number of the task, its result) as they come, each from a process of its own; None for one that died or hung."""
    waiting = deque(partial(_do, number, *task, timeout) for number, task in enumerate(tasks))
    return (said for _, said in in_forks(waiting, workers))


def _do(number: int, product: str, defect: str, function: Callable[[Backend], Any], timeout: float) -> tuple[int, Any]:
    with emulator(product, defect, timeout) as sandbox:
        try:
            return number, function(sandbox.worker.backend_within(timeout))
        except HostDied:
            return number, None


def in_forks(tasks: deque[_T], workers: int) -> Iterator[tuple[_T, Any]]:
    """Yield each task with its result from a fork of this process, as they end; tasks may be added meanwhile.

    `OwnFault` where one raises.
    """
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[Any, _T]] = {}
    try:
        while tasks or running:
            while tasks and len(running) < workers:
                ours, theirs = context.Pipe()
                task = tasks.popleft()
                process = context.Process(target=_say_what, args=(task, theirs))
                process.start()
                theirs.close()
                running[ours] = process, task
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                process, task = running.pop(connection)
                try:
                    returned, fault = connection.recv()
                except EOFError:
                    returned, fault = None, f"the process of {task} ended"
                process.join()
                if fault:
                    raise OwnFault(fault)
                yield task, returned
    finally:
        for process, _ in running.values():
            process.terminate()


def _say_what(task: Callable[[], Any], connection: Connection) -> None:
    die_with(os.getppid())
    try:
        connection.send((task(), ""))
    except Exception:
        connection.send((None, traceback.format_exc()))


def _cpu_seconds() -> float:
    """Measure the processor time of this process and of its ended children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
