"""Processes that may die of what they are asked, so that an implementation that crashes or hangs costs one case.

A `Sandbox` puts questions to one backend. It launches a *server* (`poolproof.suites.running.serving`), which loads the
backend once and forks a *worker* from itself whenever there is none. The worker answers until it dies, or until an
implementation broke a claim in a way that may have damaged its memory, so it is replaced too. Before every call it
notes the case on disk: after a power cut the case in flight is still known.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import check_name, prepare
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.judging.evidence import wants_all
from poolproof.suites.judging.question import Question, not_survived, verdict
from poolproof.suites.running.given import timeout_words
from poolproof.suites.running.identity import identify
from poolproof.suites.running.processes import KILLED, Ended, Guarded, Overdue
from poolproof.suites.running.serving import (
    NO_MORE,
    RETIRED,
    Answer,
    Asking,
    Leave,
    Serving,
    Survey,
    Taken,
    Violation,
    may_be_damaged,
)

_KILLED_ONCE = "asked again alone, for the first process was killed from outside (SIGKILL)"
_KILLED_TWICE = "the process was killed from outside (SIGKILL) twice, as a system does that runs out of memory"


def row_without_answer(question: Question, why: Ended | Overdue, last_words: str = "") -> Row:
    """The row of a question that nobody is left to answer."""
    return not_survived(question, why.verdict, f"the call {why.reason}{last_words}")


_MANY_OWED, _MANY_SECONDS = 20, 0.004
"""How many answers of a list must be owed for a worker to be left alone, and how long: to look at each small case the
moment that it is answered costs the worker as much as ourselves. Its last answers are waited for."""

START_SECONDS = 300.0
"""How long a backend may take to load: importing a framework from a cold disk is slow."""


def _say_aside(sentence: str) -> None:
    """Tell whoever waits at a terminal; what a command prints stays as it is."""
    sys.stderr.write(f"poolproof: {sentence}\n")
    sys.stderr.flush()


def survey(backend: str) -> Survey:
    """Ask a backend about itself; `BackendUnavailable` or `UnknownBackend` when it cannot run here.

    Its environment then tells its libraries by their content, too.
    """
    said, sandbox = surveyed(backend)
    sandbox.close()
    return said


def surveyed(backend: str) -> tuple[Survey, Sandbox]:
    """What `survey` says, and the sandbox that was asked, in which the backend is loaded: it has to be closed, or to be
    given a folder (`Sandbox.take`) before it is asked anything.
    """
    check_name(backend)
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(backend, Path(scratch), "survey", timeout=0.0)
        try:
            said = sandbox.start()
            return replace(said, environment=said.environment | identify(said.libraries)), sandbox
        except BaseException:
            sandbox.close()
            raise


class Sandbox:
    """Judges questions on one backend, surviving whatever the implementation does.

    ``timeout`` is the most seconds one case may take. ``scratch`` is a folder for the note of the case in flight
    and for the implementation's error output; ``name`` keeps those of several sandboxes apart. Evidence of a violation
    is written where ``wants_evidence`` of its row; of the smallest case that violates alike it always is.
    """

    def __init__(
        self,
        backend: str,
        scratch: Path,
        name: str,
        timeout: float,
        wants_evidence: Callable[[Row], bool] = wants_all,
    ) -> None:
        self.backend = backend
        self._labels: Row = {"backend": backend, "product": "", "worker": name}
        self._given: tuple[str, ...] = ()
        self._server: Guarded | None = None
        self._worker = 0
        self._ticket = self._taken = 0
        self.take(scratch, name, timeout, wants_evidence)

    def take(self, scratch: Path, name: str, timeout: float, wants_evidence: Callable[[Row], bool] = wants_all) -> None:
        """Go on with another folder, name, time limit and judgement of evidence; whatever is loaded stays."""
        self._timeout = timeout
        self._wants_evidence = wants_evidence
        self._note = scratch / f"in-flight-{name}.json"
        self._errors = scratch / f"stderr-{name}.txt"
        self._labels["worker"] = name
        self._tell_given()

    def _tell_given(self) -> None:
        self._labels["given"] = [*self._given, *timeout_words(self._timeout)] or None

    def start(self) -> Survey:
        """Load the backend; `BackendUnavailable` or `UnknownBackend` when it cannot run here."""
        prepare(self.backend, _say_aside)
        program = "from poolproof.suites.running.serving import main; main()"
        self._server = Guarded.launched(program, [self.backend], self._errors)
        answer = self._receive(START_SECONDS)
        if isinstance(answer, Survey):
            self._labels["product"] = answer.product.name if answer.product else ""
            self._given = answer.given
            self._tell_given()
            return answer
        self.close()
        if isinstance(answer, Ended | Overdue):
            raise BackendUnavailable(f"backend {self.backend} {answer.reason} while it was loaded{self._last_words()}")
        assert isinstance(answer, Exception)
        raise answer

    def judge(self, questions: Sequence[Question]) -> Iterator[Row]:
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

    def judge_alone(self, question: Question) -> Row:
        """The row of a question that is the first to be put to its process."""
        if self._server is not None:
            with suppress(ConnectionError):
                self._server.connection.send(self._asking(NO_MORE))
        (row,) = self.judge([question])
        return row

    def close(self) -> None:
        """End all processes; the sandbox may be started again."""
        if self._server is not None:
            self._server.end(patience=1.0)
        self._server, self._worker, self._taken = None, 0, self._ticket

    def _row(self, question: Question, answer: Row | Ended | Overdue) -> Row:
        if isinstance(answer, Ended | Overdue):
            return row_without_answer(question, answer, self._last_words()) | self._labels
        answer |= self._labels
        if answer["reason"]:
            answer["reason"] = visible(answer["reason"])
        return answer

    def _row_asked_again(self, question: Question) -> Row:
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

    def _answers(self, questions: Sequence[Question]) -> Iterator[Row | Ended | Overdue]:
        """What the worker gives before it is replaced, at most one answer for each question."""
        if self._server is None:
            self.start()
        assert self._server is not None
        self._ticket += 1
        with suppress(ConnectionError):
            self._server.connection.send(self._asking(questions))
        for owed, question in zip(range(len(questions), 0, -1), questions, strict=True):
            answer = self._receive(self._timeout * question.timeout_scale)
            if answer == Ended(RETIRED):
                return
            if isinstance(answer, Ended | Overdue):
                self._note.unlink(missing_ok=True)
                yield answer
                return
            assert isinstance(answer, dict)
            yield answer
            if may_be_damaged(answer):
                return
            if owed > _MANY_OWED:
                self._server.let_work(_MANY_SECONDS)

    def _asking(self, questions: Sequence[Question]) -> Asking:
        return Asking(self._ticket, questions, self._note, self._errors)

    def _receive(self, seconds: float) -> object:
        """The next answer; a worker that is too slow is killed, and its server then reports its end.

        No time of a case is what passes before there is a worker. Nothing is said of a question by the death of a
        worker, killed from outside, that had not read it, nor by its silence.
        """
        assert self._server is not None
        overdue: Overdue | Ended | None = None
        while True:
            allowed = seconds if self._worker else START_SECONDS
            answer = self._server.receive(None if overdue else allowed)
            is_known = self._taken == self._ticket
            if isinstance(answer, Ended):
                self._worker = 0
            match answer:
                case Serving() | Taken() | Violation():
                    self._heed(answer)
                case Answer():
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
                    died = isinstance(answer, Ended) and answer.status != RETIRED
                    return overdue if overdue and died else answer

    def _heed(self, said: Serving | Taken | Violation) -> None:
        """Take what a worker says besides its answers."""
        match said:
            case Serving():
                self._worker = said.pid
            case Taken():
                self._taken = said.ticket
            case Violation():
                assert self._server is not None
                with suppress(ConnectionError):
                    self._server.connection.send(Leave(self._wants_evidence(said.row | self._labels)))

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
