"""Judging in processes of their own, so that an implementation that dies or hangs costs one case.

Three processes stand in a row. The *sandbox* (in the process that asks) sends questions and gets a row for each.
The *nursery* loads the backend once and forks a *judge* from itself whenever there is none. The judge answers
until it dies, or until an implementation broke a claim: its memory may be damaged then, so it is replaced too.
Before every call the judge notes the case on disk: after a power cut the case in flight is still known.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.backends.registry import UnknownBackend, check_name, create
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.asked import Asked, Aspect, not_survived
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.blocks import USUAL_CHECKS
from poolproof.suites.running.plans import Subject, subjects

START_SECONDS = 300.0
"""How long a backend may take to load: importing a framework from a cold disk is slow."""


@dataclass(frozen=True)
class Survey:
    """What a backend says about itself: versions and devices, what it can be asked about, and `Backend.product`."""

    environment: dict[str, str]
    subjects: list[Subject]
    product: Product | None


@dataclass(frozen=True)
class _Serving:
    """A judge's first message, so that the sandbox can end it when it hangs."""

    pid: int


@dataclass(frozen=True)
class _Died:
    """In place of an answer: no judge is left to give it."""

    verdict: Verdict
    reason: str


class _Retired:
    """In place of an answer: the judge stopped before it took the question, having lost its device context."""


def survey(backend: str) -> Survey:
    """Ask a backend about itself; `BackendUnavailable` or `UnknownBackend` when it cannot run here."""
    check_name(backend)
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend, Path(scratch), "survey", timeout=0.0)
        try:
            return sandbox.start()
        finally:
            sandbox.close()


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
        self._labels = {"backend": backend, "product": "", "worker": name}
        self._nursery: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._judge = 0

    def start(self) -> Survey:
        """Load the backend; `BackendUnavailable` or `UnknownBackend` when it cannot run here."""
        ours, theirs = socket.socketpair()
        program = "from poolproof.suites.running.sandbox import main; main()"
        with theirs, self._errors.open("wb") as errors:
            self._nursery = subprocess.Popen(
                [sys.executable, "-c", program, str(theirs.fileno()), self.backend, str(self._note)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        answer = self._receive(START_SECONDS)
        if isinstance(answer, _Died):
            raise BackendUnavailable(f"backend {self.backend} {answer.reason} while it was loaded{self._last_words()}")
        if isinstance(answer, Exception):
            self.close()
            raise answer
        assert isinstance(answer, Survey)
        self._labels["product"] = answer.product.name if answer.product else ""
        return answer

    def judge(self, questions: Sequence[Asked]) -> Iterator[Row]:
        """One row per question, in order."""
        position = 0
        while position < len(questions):
            if self._connection is None:
                self.start()
            assert self._connection is not None
            with suppress(ConnectionError):
                self._connection.send(questions[position:])
            for question in questions[position:]:
                answer = self._receive(self._timeout * question.patience)
                if isinstance(answer, _Retired):
                    break
                position += 1
                if isinstance(answer, _Died):
                    yield self._row_of_the_dead(question, answer)
                    break
                assert isinstance(answer, dict)
                yield answer | self._labels
                if answer["verdict"] in FAILED:
                    break

    def close(self) -> None:
        """End all processes; the sandbox may be started again."""
        if self._connection is not None:
            self._connection.close()
        self._end_nursery()

    def _receive(self, seconds: float) -> object:
        """The next answer; a judge that is too slow is killed, and the nursery then reports its death."""
        assert self._connection is not None
        overdue = False
        while True:
            if not overdue and not self._connection.poll(seconds):
                overdue = True
                self._kill_judge()
            try:
                answer = self._connection.recv()
            except (EOFError, ConnectionError):
                status = self._end_nursery()
                answer = _Retired() if status == _RETIRED else _Died(Verdict.CRASHED, f"ended by {_ending(status)}")
            if isinstance(answer, _Serving):
                self._judge = answer.pid
                continue
            if isinstance(answer, _Died) and overdue:
                return _Died(Verdict.TIMED_OUT, f"gave no answer within {seconds:.3g} s")
            return answer

    def _kill_judge(self) -> None:
        assert self._nursery is not None
        with suppress(ProcessLookupError):
            os.kill(self._judge or self._nursery.pid, signal.SIGKILL)

    def _end_nursery(self) -> int:
        """Make sure the nursery and its judge are gone; the nursery's exit status as `subprocess` counts it."""
        nursery, self._nursery, self._connection, self._judge = self._nursery, None, None, 0
        if nursery is None:
            return 0
        with suppress(subprocess.TimeoutExpired):
            return nursery.wait(timeout=1.0)
        os.killpg(nursery.pid, signal.SIGKILL)
        return nursery.wait()

    def _row_of_the_dead(self, question: Asked, death: _Died) -> Row:
        self._note.unlink(missing_ok=True)
        reason = f"the call {death.reason}{self._last_words()}"
        return not_survived(question, death.verdict, reason) | self._labels

    def _last_words(self) -> str:
        """The last line of what the implementation printed."""
        with suppress(OSError):
            lines = self._errors.read_text(errors="replace").strip().splitlines()
            if lines:
                return f": {lines[-1][:300]}"
        return ""


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _tend(connection: Connection, backend_name: str, note: Path) -> None:
    """The nursery: keep one judge alive until the sandbox hangs up."""
    try:
        backend = create(backend_name)
    except (BackendUnavailable, UnknownBackend) as error:
        connection.send(error)
        return
    connection.send(Survey(dict(backend.environment()), subjects(backend_name, backend), backend.product))
    if not backend.survives_fork:
        _answer(connection, backend, backend_name, note)
    _warm_up(backend)
    while True:
        pid = os.fork()
        if pid == 0:
            _answer(connection, backend, backend_name, note)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == _HUNG_UP:
            return
        if code != _RETIRED:
            connection.send(_Died(Verdict.CRASHED, f"ended by {_ending(code)}"))


_WARM_UP_SECONDS = 20
"""How long the calls of a warm-up may take."""


def _warm_up(backend: Backend) -> None:
    """Touch now what every judge would otherwise load anew, and keep the garbage collector off the shared pages.

    An implementation that dies of such calls, which is tried out first, is left cold: it must cost cases, not the run.
    """
    pid = os.fork()
    if pid == 0:
        signal.alarm(_WARM_UP_SECONDS)
        _make_first_calls(backend)
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        _make_first_calls(backend)
    gc.collect()
    gc.freeze()


_WARM_UP = Aspect("warm-up", "what every process would load is loaded", USUAL_CHECKS)


def _make_first_calls(backend: Backend) -> None:
    for operator in OPERATORS.values():
        Question(Case.smallest(operator), _WARM_UP).judge(backend)


_HUNG_UP, _RETIRED = 90, 91
"""Exit statuses of a judge that ended by itself: nobody asks any more; a claim was broken and it may be damaged."""


def _answer(connection: Connection, backend: Backend, backend_name: str, note: Path) -> NoReturn:
    """The judge: answer lists of questions until the sandbox hangs up or a claim is broken."""
    connection.send(_Serving(os.getpid()))
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            for question in connection.recv():
                _note_in_flight(descriptor, backend_name, question)
                row = question.judge(backend)
                connection.send(row)
                if row["verdict"] in FAILED:
                    if backend.survives_fork or not backend.is_usable():
                        os._exit(_RETIRED)
                    break
            os.ftruncate(descriptor, 0)
    except (EOFError, ConnectionError):
        note.unlink(missing_ok=True)
        os._exit(_HUNG_UP)


def _note_in_flight(descriptor: int, backend: str, question: Asked) -> None:
    data = json.dumps({"backend": backend, "aspect": question.aspect.id, "case": question.to_record()}).encode()
    os.ftruncate(descriptor, len(data))
    os.pwrite(descriptor, data, 0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, backend, note = sys.argv[1:]
    _tend(Connection(int(descriptor)), backend, Path(note))
