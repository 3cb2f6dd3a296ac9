"""Hunts: one process per defect answers a plan's questions until one of its answers is a violation.

The process that organises the hunts holds the questions; a hunt is forked from it, seeds its defect, loads the
emulator and answers. What a hunt reports counts only when the honest emulator passes the same question.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from poolproof.backends.base import Backend
from poolproof.backends.emulator import defects as seeds
from poolproof.backends.registry import create
from poolproof.references.kernels.compiled import compile_all
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.score.questions import Round
from poolproof.suites.judging.question import Question
from poolproof.suites.running.plans import Block
from poolproof.suites.running.processes import Ended, Overdue, Process
from poolproof.suites.running.sandbox import row_without_answer

HONEST = ""
"""In place of a defect: none."""


@dataclass
class Result:
    """What became of one defect on one product.

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


@dataclass(frozen=True)
class _Smaller:
    """What a hunt found when it looked for a smaller question with the same violation."""

    question: Question | None


@dataclass
class Hunt:
    """A process at work on a list of questions, from ``position`` on."""

    result: Result
    questions: Sequence[Question]
    position: int
    process: Process
    started: float = field(default_factory=time.monotonic)
    asked_at: float = field(default_factory=time.monotonic)
    row: Row | None = None
    smaller: Question | None = None

    @property
    def question(self) -> Question:
        """The one that it is at."""
        return self.questions[self.position]

    @property
    def is_done(self) -> bool:
        """Whether every question is answered, none with a violation."""
        return self.position >= len(self.questions)


class Hunts:
    """Runs up to ``workers`` hunts at a time. ``timeout`` is what one question may take, ``shrink_seconds`` what a
    found defect may spend on a smaller case; ``notice`` is told of every result that changes. Without ``replays`` what
    is found is not asked again: the result then says neither whether it replays nor what is smaller.
    """

    def __init__(
        self,
        workers: int,
        timeout: float,
        shrink_seconds: float,
        notice: Callable[[Result], None],
        replays: bool = True,
    ) -> None:
        self._workers = workers
        self._timeout = timeout
        self._shrink_seconds = shrink_seconds
        self._notice = notice
        self._replays = replays
        self._honest: set[tuple[str, Question]] = set()

    def run(self, results: Sequence[Result], asked: Round) -> None:
        """Put a round to every defect that is not found."""
        compile_all()  # else each hunt would, within the time of its first question
        gc.collect()
        gc.freeze()
        waiting = [(result, 0) for result in results if not result.is_found]
        hunting: dict[Connection, Hunt] = {}
        try:
            while waiting or hunting:
                while waiting and len(hunting) < self._workers:
                    result, position = waiting.pop(0)
                    hunt = self._start(result, asked, position)
                    hunting[hunt.process.connection] = hunt
                for hunt in self._finished(hunting):
                    if (again := self._conclude(hunt)) is not None:
                        waiting.insert(0, again)
        finally:
            for hunt in hunting.values():
                hunt.process.end()

    def _start(self, result: Result, asked: Round, position: int) -> Hunt:
        questions = asked.questions[result.product]
        hunt = partial(_hunt, result, questions[position:], asked.blocks, self._shrink_seconds)
        return Hunt(result, questions, position, Process.forked(hunt))

    def _finished(self, hunting: dict[Connection, Hunt]) -> Iterator[Hunt]:
        """Hunts that have said all they have to say; those that are too slow are ended."""
        for connection in wait(list(hunting), timeout=0.2):
            assert isinstance(connection, Connection)
            hunt = hunting[connection]
            if not _hears_more(hunt):
                del hunting[connection]
                hunt.result.cpu_seconds += hunt.process.cpu_seconds
                yield hunt
        for hunt in hunting.values():
            if not hunt.is_done and self._is_late(hunt):
                if hunt.row is None:
                    allowed = self._timeout * hunt.question.timeout_scale
                    hunt.row = row_without_answer(hunt.question, Overdue(allowed))
                hunt.process.kill()

    def _is_late(self, hunt: Hunt) -> bool:
        allowed = self._timeout * hunt.question.timeout_scale
        if hunt.row is not None:
            allowed += self._shrink_seconds
        return time.monotonic() - hunt.asked_at > allowed and not hunt.process.connection.poll()

    def _conclude(self, hunt: Hunt) -> tuple[Result, int] | None:
        """Book what a hunt found; where that does not count, the place from which to hunt on."""
        result = hunt.result
        result.seconds += (time.monotonic() if hunt.row is None else hunt.asked_at) - hunt.started
        if hunt.row is None and not hunt.is_done:
            hunt.row = row_without_answer(hunt.question, hunt.process.end())
        again = None
        if hunt.row is not None:
            question = hunt.question
            result.cases += 1
            if self._is_honest_about(result.product, question):
                result.row = hunt.row
                if self._replays:
                    self._settle_reproducer(result, question, hunt.smaller)
            else:
                result.disputed += 1
                again = result, hunt.position + 1
        self._notice(result)
        return again

    def _settle_reproducer(self, result: Result, question: Question, smaller: Question | None) -> None:
        """Keep the shrunk case only if the honest emulator passes it and a fresh defective one does not."""
        if smaller and self._is_honest_about(result.product, smaller):
            result.replays = not self._passes(result.product, result.defect, smaller)
        if smaller and result.replays:
            result.shrunk = smaller.describe()["case"]
        else:
            result.replays = not self._passes(result.product, result.defect, question)

    def _is_honest_about(self, product: str, question: Question) -> bool:
        """Whether the honest emulator passes: it is asked once, for one question finds many defects."""
        if (product, question) not in self._honest and self._passes(product, HONEST, question):
            self._honest.add((product, question))
        return (product, question) in self._honest

    def _passes(self, product: str, defect: str, question: Question) -> bool:
        """Whether a fresh process gives an answer to this one question that is no violation."""
        with suppress(StopIteration):
            return next(answers(product, defect, [question], self._timeout))["verdict"] not in FAILED
        return False


def answers(product: str, defect: str, questions: Sequence[Question], timeout: float) -> Iterator[Row]:
    """Rows of a fresh process, one per question in order; fewer where it dies or hangs."""
    process = Process.forked(partial(_answer_all, product, defect, questions))
    try:
        for question in questions:
            row = process.receive(timeout * question.timeout_scale)
            if isinstance(row, Ended | Overdue):
                return
            assert isinstance(row, dict)
            yield row
    finally:
        process.end()


Task = tuple[str, str, Callable[[Backend], Any]]
"""Product, defect, and what to ask of the emulator that has it."""


def in_processes(tasks: Sequence[Task], workers: int, timeout: float) -> Iterator[tuple[int, Any]]:
    """(number of the task, its result) as they come, each from a process of its own; None for one that died or hung."""
    waiting = list(enumerate(tasks))[::-1]
    running: dict[int, tuple[Process, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, task = waiting.pop()
                running[number] = Process.forked(partial(_do, *task)), time.monotonic()
            for number, (process, started) in list(running.items()):
                result = process.receive(0.02)
                if isinstance(result, Overdue) and time.monotonic() - started <= timeout:
                    continue
                yield number, None if isinstance(result, Ended | Overdue) else result
                process.end()
                del running[number]
    finally:
        for process, _ in running.values():
            process.end()


Say = Callable[[object], None]
"""Takes what a process has to say."""


def _do(product: str, defect: str, function: Callable[[Backend], Any], say: Say) -> None:
    say(function(load(product, defect)))


def _hunt(
    result: Result, questions: Sequence[Question], blocks: Mapping[str, Block], shrink_seconds: float, say: Say
) -> None:
    """The hunt: None for each answer that is no violation, the row of the first that is one, and a smaller case."""
    backend = load(result.product, result.defect)
    for question in questions:
        row = question.judge(backend)
        if row["verdict"] in FAILED:
            say(row)
            if shrink_seconds > 0:
                say(_Smaller(_smaller(backend, question, row, blocks[question.block], shrink_seconds)))
            break
        say(None)


def _answer_all(product: str, defect: str, questions: Sequence[Question], say: Say) -> None:
    backend = load(product, defect)
    for question in questions:
        say(question.judge(backend))


def load(product: str, defect: str) -> Backend:
    """The emulator with its defect: it reads that once, when it is loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.disable()
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 2)
    os.environ[seeds.VARIABLE] = defect
    return create(backend_name(product))


def backend_name(product: str) -> str:
    return f"emulator-{product.lower()}"


def _smaller(backend: Backend, question: Question, row: Row, block: Block, seconds: float) -> Question | None:
    """The smallest question found that still breaks the same check."""
    first = set(row["checks_violated"][:1])
    return block.smaller(question, lambda asked: first <= set(asked.judge(backend)["checks_violated"]), seconds)


def _hears_more(hunt: Hunt) -> bool:
    """Take the messages that are there; False once there will be no more."""
    while not isinstance(message := hunt.process.receive(0.0), Overdue):
        if isinstance(message, Ended):
            return False
        if isinstance(message, _Smaller):
            hunt.smaller = message.question
            continue
        hunt.asked_at = time.monotonic()
        if message is None:
            hunt.position += 1
            hunt.result.cases += 1
        else:
            assert isinstance(message, dict)
            hunt.row = message
    return True
