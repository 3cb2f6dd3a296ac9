"""Processes that may die of what they are asked, so that an implementation that crashes or hangs costs one case.

A `Sandbox` puts questions to one backend. It launches a *server*, which loads the backend once and forks a *worker*
from itself whenever there is none. The worker answers until it dies, or until an implementation broke a claim: its
memory may be damaged then, so it is replaced too. Before every call it notes the case on disk: after a power cut the
case in flight is still known.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.backends.registry import UnknownBackend, check_name, create, prepare
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.surroundings import CannotWrite, writing
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.asked import Asked, Aspect, not_survived, verdict
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.faults import answer as answer_of
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.given import given_words, timeout_words
from poolproof.suites.running.identity import identify, mapped_libraries
from poolproof.suites.running.plans import Subject, subjects
from poolproof.suites.running.processes import KILLED, Ended, Guarded, Overdue, fork

_KILLED_ONCE = "asked again alone, for the first process was killed from outside (SIGKILL)"
_KILLED_TWICE = "the process was killed from outside (SIGKILL) twice, as a system does that runs out of memory"


def row_without_answer(question: Asked, why: Ended | Overdue, last_words: str = "") -> Row:
    """The row of a question that nobody is left to answer."""
    return not_survived(question, why.verdict, f"the call {why.reason}{last_words}")


START_SECONDS = 300.0
"""How long a backend may take to load: importing a framework from a cold disk is slow."""


@dataclass(frozen=True)
class Survey:
    """What a backend says about itself: versions and devices, what it can be asked about, and `Backend.product`.

    ``libraries`` are the paths of the shared libraries that it brought into its process. ``given`` are the words of
    `poolproof.suites.running.given`.
    """

    environment: dict[str, str]
    subjects: list[Subject]
    product: Product | None
    libraries: frozenset[str] = frozenset()
    given: tuple[str, ...] = ()


def _say_aside(sentence: str) -> None:
    """Tell whoever waits at a terminal; what a command prints stays as it is."""
    sys.stderr.write(f"poolproof: {sentence}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class _Serving:
    """A worker's first message, so that it can be ended when it hangs."""

    pid: int


@dataclass(frozen=True)
class _Taken:
    """A worker's message before it answers a list of questions: which it has read. Death from here on is about them."""

    ticket: int


@dataclass(frozen=True)
class _Answer:
    """A worker's answer to one of the questions of a list."""

    ticket: int
    row: Row


def survey(backend: str) -> Survey:
    """Ask a backend about itself; `BackendUnavailable` or `UnknownBackend` when it cannot run here.

    Its environment then tells its libraries by their content, too.
    """
    check_name(backend)
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend, Path(scratch), "survey", timeout=0.0)
        try:
            said = sandbox.start()
        finally:
            sandbox.close()
    return replace(said, environment=said.environment | identify(said.libraries))


class Sandbox:
    """Judges questions on one backend, surviving whatever the implementation does.

    ``timeout`` is the most seconds one case may take. ``scratch`` is a folder for the note of the case in flight
    and for the implementation's error output; ``name`` keeps those of several sandboxes apart.
    """

    def __init__(self, backend: str, scratch: Path, name: str, timeout: float) -> None:
        self.backend = backend
        self._timeout = timeout
        self._note = scratch / f"in-flight-{name}.json"
        self._errors = scratch / f"stderr-{name}.txt"
        self._labels: Row = {"backend": backend, "product": "", "worker": name}
        self._server: Guarded | None = None
        self._worker = 0
        self._ticket = self._taken = 0

    def start(self) -> Survey:
        """Load the backend; `BackendUnavailable` or `UnknownBackend` when it cannot run here."""
        prepare(self.backend, _say_aside)
        program = "from poolproof.suites.running.sandbox import main; main()"
        self._server = Guarded.launched(program, [self.backend, str(self._note)], self._errors)
        answer = self._receive(START_SECONDS)
        if isinstance(answer, Survey):
            self._labels["product"] = answer.product.name if answer.product else ""
            self._labels["given"] = [*answer.given, *timeout_words(self._timeout)] or None
            return answer
        self.close()
        if isinstance(answer, Ended | Overdue):
            raise BackendUnavailable(f"backend {self.backend} {answer.reason} while it was loaded{self._last_words()}")
        assert isinstance(answer, Exception)
        raise answer

    def judge(self, questions: Sequence[Asked]) -> Iterator[Row]:
        """One row per question, in order."""
        position = 0
        while position < len(questions):
            killed = False
            for answer in self._answers(questions[position:]):
                killed = answer == KILLED
                if killed:
                    break
                yield self._row(questions[position], answer)
                position += 1
            if killed:
                yield self._row_asked_again(questions[position])
                position += 1

    def judge_alone(self, question: Asked) -> Row:
        """The row of a question that is the first to be put to its process."""
        if self._server is not None:
            with suppress(ConnectionError):
                self._server.connection.send((self._ticket, _NO_MORE))
        (row,) = self.judge([question])
        return row

    def close(self) -> None:
        """End all processes; the sandbox may be started again."""
        if self._server is not None:
            self._server.end(patience=1.0)
        self._server, self._worker, self._taken = None, 0, self._ticket

    def _row(self, question: Asked, answer: Row | Ended | Overdue) -> Row:
        if isinstance(answer, Ended | Overdue):
            return row_without_answer(question, answer, self._last_words()) | self._labels
        return answer | self._labels | {"reason": visible(answer["reason"])}

    def _row_asked_again(self, question: Asked) -> Row:
        """The row of a question whose process was killed from outside: it is asked alone before anything is blamed."""
        answer = None
        while answer is None:
            answer = next(self._answers([question]), None)
        if answer == KILLED:
            row = question.describe() | verdict(Verdict.NOT_RUN, _KILLED_TWICE)
            return row | {"checks_judged": [], "judged_at": time.time()} | self._labels
        row = self._row(question, answer)
        if row["verdict"] in FAILED:
            return row  # its reason is what was found
        return row | {"reason": "; ".join(filter(None, (row["reason"], _KILLED_ONCE)))}

    def _answers(self, questions: Sequence[Asked]) -> Iterator[Row | Ended | Overdue]:
        """What the worker gives before it is replaced, at most one answer for each question."""
        if self._server is None:
            self.start()
        assert self._server is not None
        self._ticket += 1
        with suppress(ConnectionError):
            self._server.connection.send((self._ticket, questions))
        for question in questions:
            answer = self._receive(self._timeout * question.patience)
            if answer == Ended(_RETIRED):
                return
            if isinstance(answer, Ended | Overdue):
                self._note.unlink(missing_ok=True)
                yield answer
                return
            assert isinstance(answer, dict)
            yield answer
            if answer["verdict"] in FAILED:
                return

    def _receive(self, seconds: float) -> object:
        """The next answer; a worker that is too slow is killed, and its server then reports its end.

        Nothing is said of a question by the death of a worker, killed from outside, that had not read it, nor by its
        silence.
        """
        assert self._server is not None
        overdue: Overdue | Ended | None = None
        while True:
            answer = self._server.receive(None if overdue else seconds)
            is_known = self._taken == self._ticket
            match answer:
                case _Serving():
                    self._worker = answer.pid
                case _Taken():
                    self._taken = answer.ticket
                case _Answer():
                    if answer.ticket == self._ticket:
                        return answer.row
                case Overdue():
                    overdue = answer if is_known else KILLED
                    self._kill_worker()
                case Ended() if answer == KILLED and not (is_known or overdue or self._server.ended):
                    continue
                case _:
                    if self._server.ended:
                        self.close()
                    died = isinstance(answer, Ended) and answer.status != _RETIRED
                    return overdue if overdue and died else answer

    def _kill_worker(self) -> None:
        assert self._server is not None
        if not self._worker:
            self._server.kill()
            return
        with suppress(ProcessLookupError):
            os.kill(self._worker, signal.SIGKILL)

    def _last_words(self) -> str:
        """The last line of what the implementation printed."""
        with suppress(OSError):
            lines = self._errors.read_text(errors="replace").strip().splitlines()
            if lines:
                return f": {visible(lines[-1][:300])}"
        return ""


def _serve(connection: Connection, backend_name: str, note: Path) -> None:
    """The server: keep one worker alive until the sandbox hangs up."""
    before, environment = mapped_libraries(), dict(os.environ)
    try:
        backend = create(backend_name)
        asked = subjects(backend_name, backend)
        _check_reasons(asked)
    except (BackendUnavailable, UnknownBackend) as error:
        connection.send(error)
        return
    brought = mapped_libraries() - before
    said = {visible(str(name)): visible(str(value)) for name, value in backend.environment().items()}
    given = given_words(backend_name, environment, list(sys.modules.values()))
    connection.send(Survey(said, asked, backend.product, brought, given))
    work = partial(_answer, connection, backend, backend_name, note)
    if not backend.survives_fork:
        os._exit(work())
    _warm_up(backend)
    while True:
        status = _wait(fork(work))
        if status == _HUNG_UP:
            return
        if status != _RETIRED:
            connection.send(Ended(status))


def _check_reasons(asked: Sequence[Subject]) -> None:
    """`UnknownBackend` where the backend gave something else than a text, or None, for what it cannot do."""
    for subject in asked:
        if not isinstance(subject.unsupported, str | None):
            said = f"gives {subject.unsupported!r:.80} from unsupported: it must be a reason, or None"
            raise UnknownBackend(f"backend {subject.backend!r} {said}")


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


_WARM_UP_SECONDS = 20
"""How long the calls of a warm-up may take."""


def _warm_up(backend: Backend) -> None:
    """Touch now what every worker would otherwise load anew, and keep the garbage collector off the shared pages.

    An implementation that dies of such calls, which is tried out first, is left cold: it must cost cases, not the run.
    """
    if _wait(fork(partial(_make_first_calls, backend, _WARM_UP_SECONDS))) == 0:
        _make_first_calls(backend)
    gc.collect()
    gc.freeze()


_WARM_UP = Aspect("warm-up", "what every process would load is loaded", USUAL)


def _make_first_calls(backend: Backend, seconds: int = 0) -> None:
    signal.alarm(seconds)
    for operator in OPERATORS.values():
        Question(Case.smallest(operator), _WARM_UP).judge(backend)


_HUNG_UP, _RETIRED = 90, 91
"""Exit statuses of a worker that ended by itself: nobody asks any more; it may be damaged, or shall be replaced."""

_NO_MORE: tuple[Asked, ...] = ()
"""The list of questions that tells a worker to let another take its place."""


def _answer(connection: Connection, backend: Backend, backend_name: str, note: Path) -> int:
    """The worker: answer lists of questions until the sandbox hangs up or a claim is broken."""
    connection.send(_Serving(os.getpid()))
    try:
        with writing(note):
            descriptor = os.open(note, os.O_WRONLY | os.O_CREAT)
        while True:
            ticket, questions = connection.recv()
            if not questions:
                return _RETIRED
            connection.send(_Taken(ticket))
            for question in questions:
                with writing(note):
                    _note_in_flight(descriptor, backend_name, question)
                row = answer_of(question, backend)
                connection.send(_Answer(ticket, row))
                if row["verdict"] in FAILED:
                    if backend.survives_fork or not backend.is_usable():
                        return _RETIRED
                    break
            os.ftruncate(descriptor, 0)
    except CannotWrite as fault:
        connection.send(fault)
        return _HUNG_UP
    except (EOFError, ConnectionError):
        with suppress(OSError):
            note.unlink(missing_ok=True)
        return _HUNG_UP


def _note_in_flight(descriptor: int, backend: str, question: Asked) -> None:
    data = json.dumps({"backend": backend, "aspect": question.aspect.id, "case": question.to_record()}).encode()
    os.ftruncate(descriptor, len(data))
    os.pwrite(descriptor, data, 0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, backend, note = sys.argv[1:]
    _serve(Connection(int(descriptor)), backend, Path(note))
