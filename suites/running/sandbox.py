"""Processes that may die of what they are asked, so that an implementation that crashes or hangs costs one case.

A `Sandbox` puts questions to one backend. It launches a *server*, which loads the backend once and forks a *worker*
from itself whenever there is none. The worker answers until it dies, or until an implementation broke a claim in a way
that may have damaged its memory, so it is replaced too. Before every call it notes the case on disk: after a power cut
the case in flight is still known.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from mmap import mmap
from multiprocessing.connection import Connection
from pathlib import Path

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.backends.registry import UnknownBackend, check_name, create, prepare
from poolproof.references.core.compiled import compile_all
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.surroundings import CannotWrite, writing
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.asked import Asked, Aspect, not_survived, verdict
from poolproof.suites.judging.checks import USUAL, inputs_untouched, memory_untouched, results, written
from poolproof.suites.judging.faults import answer as answer_of
from poolproof.suites.judging.judge import Question
from poolproof.suites.judging.plugged_standards import plugged
from poolproof.suites.running.given import given_words, timeout_words
from poolproof.suites.running.identity import identify, mapped_libraries
from poolproof.suites.running.pages import gather_pages
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
    `poolproof.suites.running.given`. ``plugins`` are the records of those that judge besides.
    """

    environment: dict[str, str]
    subjects: list[Subject]
    product: Product | None
    libraries: frozenset[str] = frozenset()
    given: tuple[str, ...] = ()
    plugins: tuple[Mapping[str, str], ...] = ()


def _say_aside(sentence: str) -> None:
    """Tell whoever waits at a terminal; what a command prints stays as it is."""
    sys.stderr.write(f"poolproof: {sentence}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class _Serving:
    """A worker's first message, so that it can be ended when it hangs."""

    pid: int


@dataclass(frozen=True)
class _Asking:
    """A list of questions for a worker, which notes the one that it is at, and prints, where it is told to."""

    ticket: int
    questions: Sequence[Asked]
    note: Path
    errors: Path


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
    and for the implementation's error output; ``name`` keeps those of several sandboxes apart.
    """

    def __init__(self, backend: str, scratch: Path, name: str, timeout: float) -> None:
        self.backend = backend
        self._labels: Row = {"backend": backend, "product": "", "worker": name}
        self._given: tuple[str, ...] = ()
        self._server: Guarded | None = None
        self._worker = 0
        self._ticket = self._taken = 0
        self.take(scratch, name, timeout)

    def take(self, scratch: Path, name: str, timeout: float) -> None:
        """Go on with another folder, name and time limit; whatever is loaded stays."""
        self._timeout = timeout
        self._note = scratch / f"in-flight-{name}.json"
        self._errors = scratch / f"stderr-{name}.txt"
        self._labels["worker"] = name
        self._tell_given()

    def _tell_given(self) -> None:
        self._labels["given"] = [*self._given, *timeout_words(self._timeout)] or None

    def start(self) -> Survey:
        """Load the backend; `BackendUnavailable` or `UnknownBackend` when it cannot run here."""
        prepare(self.backend, _say_aside)
        program = "from poolproof.suites.running.sandbox import main; main()"
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
                self._server.connection.send(self._asking(_NO_MORE))
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
            self._server.connection.send(self._asking(questions))
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
            if _may_be_damaged(answer):
                return

    def _asking(self, questions: Sequence[Asked]) -> _Asking:
        return _Asking(self._ticket, questions, self._note, self._errors)

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


def _serve(connection: Connection, backend_name: str) -> None:
    """The server: keep one worker alive until the sandbox hangs up."""
    gc.disable()  # what is loaded here stays; workers collect theirs
    plugins = plugged().records
    before, environment = mapped_libraries(), dict(os.environ)
    try:
        backend = create(backend_name)
        asked = subjects(backend_name, backend)
        _check_declared(asked)
    except (BackendUnavailable, UnknownBackend) as error:
        connection.send(error)
        return
    brought = mapped_libraries() - before
    said = {visible(str(name)): visible(str(value)) for name, value in backend.environment().items()}
    said |= {f"abilities of {name}": able for name, able in _declared(asked).items()}
    given = given_words(backend_name, environment, list(sys.modules.values()))
    connection.send(Survey(said, asked, backend.product, brought, given, plugins))
    work = partial(_answer, connection, backend, backend_name)
    compile_all()
    if not backend.survives_fork:
        os._exit(work())
    gc.freeze()  # the garbage collector then leaves the pages that all workers share alone
    status = _first_worker(backend, work)
    if status == _RETIRED or _tells_of(status):
        _tell(connection, status)
        _make_first_calls(backend)
        gc.freeze()
    replaced = 0
    while status != _HUNG_UP:
        replaced += 1
        if replaced == _MANY:
            gather_pages()
        status = _wait(fork(work))
        _tell(connection, status)


_MANY = 6
"""How many workers are replaced until it pays to make replacing them cheaper."""


def _check_declared(asked: Sequence[Subject]) -> None:
    """`UnknownBackend` where the backend gave something else than a text, or None, for what it cannot do, or something
    else than `Abilities` for what it can, or fewer than its contract wants.
    """
    for subject in asked:
        if not isinstance(subject.abilities, Abilities):
            said = f"gives {subject.abilities!r:.80} from abilities: it must be Abilities"
            raise UnknownBackend(f"backend {subject.backend!r} {said}")
        if subject.product is not None and subject.abilities != ALL:
            said = f"declares abilities, but it runs on {subject.product}, whose contract says which it must have"
            raise UnknownBackend(f"backend {subject.backend!r} {said}")
        if not isinstance(subject.unsupported, str | None):
            said = f"gives {subject.unsupported!r:.80} from unsupported: it must be a reason, or None"
            raise UnknownBackend(f"backend {subject.backend!r} {said}")


def _declared(asked: Sequence[Subject]) -> dict[str, str]:
    """By operator: what its calls are without."""
    return {subject.operator.name: str(subject.abilities) for subject in asked if subject.abilities != ALL}


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _tell(connection: Connection, status: int) -> None:
    """Tell the sandbox how a worker ended."""
    if _tells_of(status):
        connection.send(Ended(status))
    elif status == _RETIRED:
        connection.send(_Serving(0))


def _tells_of(status: int) -> bool:
    """Whether a worker that ended so may owe an answer."""
    return status not in (_HUNG_UP, _RETIRED, _COLD)


_WARM_UP_SECONDS = 20
"""How long the calls of a warm-up may take."""


def _first_worker(backend: Backend, work: Callable[[], int]) -> int:
    """How the first worker ended, which touches at its beginning what every worker would otherwise load anew.

    Once it has survived that, the server may do the same before it forks the next. An implementation that dies of such
    calls is left cold: it must cost cases, not the run.
    """
    with mmap(-1, 1) as survived:
        status = _wait(fork(partial(_work_warmed_up, backend, work, survived)))
        return status if survived[0] else _COLD


def _work_warmed_up(backend: Backend, work: Callable[[], int], survived: mmap) -> int:
    signal.alarm(_WARM_UP_SECONDS)
    _make_first_calls(backend)
    signal.alarm(0)
    survived[0] = 1
    return work()


_WARM_UP = Aspect("warm-up", "what every process would load is loaded", USUAL)


def _make_first_calls(backend: Backend) -> None:
    for operator in OPERATORS.values():
        Question(Case.smallest(operator), _WARM_UP).judge(backend)


_HUNG_UP, _RETIRED, _COLD = 90, 91, 92
"""Exit statuses of a worker that ended by itself: nobody asks any more; it may be damaged, or shall be replaced. The
third stands for whatever ended one before it was ready to answer."""

_NO_MORE: tuple[Asked, ...] = ()
"""The list of questions that tells a worker to let another take its place."""


def _answer(connection: Connection, backend: Backend, backend_name: str) -> int:
    """The worker: answer lists of questions until the sandbox hangs up or its memory may be damaged."""
    gc.enable()
    connection.send(_Serving(os.getpid()))
    note: Path | None = None
    try:
        while True:
            asking = connection.recv()
            if not asking.questions:
                return _RETIRED
            note = asking.note
            connection.send(_Taken(asking.ticket))
            if not _answer_all(connection, backend, backend_name, asking):
                return _RETIRED
    except CannotWrite as fault:
        connection.send(fault)
        return _HUNG_UP
    except (EOFError, ConnectionError):
        if note is not None:
            with suppress(OSError):
                note.unlink(missing_ok=True)
        return _HUNG_UP


def _answer_all(connection: Connection, backend: Backend, backend_name: str, asking: _Asking) -> bool:
    """Answer the questions up to the first after which memory may be damaged; whether this process may go on."""
    with writing(asking.errors):
        _print_to(asking.errors)
    with writing(asking.note):
        descriptor = os.open(asking.note, os.O_WRONLY | os.O_CREAT)
    try:
        for question in asking.questions:
            with writing(asking.note):
                _note_in_flight(descriptor, backend_name, question)
            row = answer_of(question, backend)
            connection.send(_Answer(asking.ticket, row))
            if _may_be_damaged(row):
                if backend.survives_fork or not backend.is_usable():
                    return False
                break
        os.ftruncate(descriptor, 0)
        return True
    finally:
        os.close(descriptor)


def _may_be_damaged(row: Row) -> bool:
    """Whether the memory of the process may be, in which a row was made.

    Not where every value stands where its reader looks for it, and nothing was written beside them: an output that came
    back with other strides, and is right in all else, tells of no write that went astray.
    """
    if row["verdict"] not in FAILED:
        return False
    return row["checks_violated"] != [results.__name__] or not {*row["checks_judged"]} >= _ABOUT_MEMORY


_ABOUT_MEMORY = {check.__name__ for check in (written, inputs_untouched, memory_untouched)}
"""Checks that hold of a call that wrote what it had to, and nothing else."""


def _print_to(errors: Path) -> None:
    """Let what this process prints go there, whatever it printed to before."""
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _note_in_flight(descriptor: int, backend: str, question: Asked) -> None:
    data = json.dumps({"backend": backend, "aspect": question.aspect.id, "case": question.to_record()}).encode()
    os.ftruncate(descriptor, len(data))
    os.pwrite(descriptor, data, 0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, backend = sys.argv[1:]
    _serve(Connection(int(descriptor)), backend)
