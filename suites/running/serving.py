"""The processes that answer: a server, which has loaded one backend, and the workers that it forks from itself.

What a `poolproof.suites.running.sandbox` and they say to each other stands here, too. Nothing here knows who asks, nor
what becomes of an answer.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from mmap import mmap
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.backends.registry import UnknownBackend, create
from poolproof.references.kernels.compiled import compile_all
from poolproof.references.operators import OPERATORS
from poolproof.references.products import Product
from poolproof.reports.rows.io_errors import CannotWrite, writing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.faults import answer as answer_of
from poolproof.suites.judging.plugged_standards import plugged
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.running.given import given_words
from poolproof.suites.running.identity import libraries_of_family
from poolproof.suites.running.plans import Subject, subjects
from poolproof.suites.running.processes import Ended, fork


@dataclass(frozen=True)
class Survey:
    """What a backend says about itself: versions and devices, what it can be asked about, and `Backend.product`.

    ``libraries`` are the paths of the shared libraries that it brought into its process, and into those that it
    started. ``given`` are the words of `poolproof.suites.running.given`. ``plugins`` are the records of those that
    judge besides.
    """

    environment: dict[str, str]
    subjects: list[Subject]
    product: Product | None
    libraries: frozenset[str] = frozenset()
    given: tuple[str, ...] = ()
    plugins: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Serving:
    """A worker's first message, so that it can be ended when it hangs."""

    pid: int


@dataclass(frozen=True)
class Asking:
    """A list of questions for a worker, which notes the one that it is at, and prints, where it is told to."""

    ticket: int
    questions: Sequence[Question]
    note: Path
    errors: Path


@dataclass(frozen=True)
class Taken:
    """A worker's message before it answers a list of questions: which it has read. Death from here on is about them."""

    ticket: int


@dataclass(frozen=True)
class Violation:
    """A worker's question: is evidence wanted of the case with that row?"""

    row: Row


@dataclass(frozen=True)
class Leave:
    """The answer to it."""

    wanted: bool


@dataclass(frozen=True)
class Answer:
    """A worker's answer to one of the questions of a list."""

    ticket: int
    row: Row


def _serve(connection: Connection, backend_name: str) -> None:
    """The server: keep one worker alive until the sandbox hangs up."""
    gc.disable()  # what is loaded here stays; workers collect theirs
    plugins = plugged().records
    before, environment = libraries_of_family(), dict(os.environ)
    try:
        backend = create(backend_name)
        asked = subjects(backend_name, backend)
        _check_declared(asked)
        brought = libraries_of_family() - before
        said = {visible(str(name)): visible(str(value)) for name, value in backend.environment().items()}
    except (BackendUnavailable, UnknownBackend) as error:
        connection.send(error)
        return
    said |= {f"abilities of {name}": able for name, able in _declared(asked).items()}
    given = given_words(backend_name, environment, list(sys.modules.values()))
    connection.send(Survey(said, asked, backend.product, brought, given, plugins))
    work = partial(_answer, connection, backend, backend_name)
    compile_all()
    if not backend.survives_fork:
        os._exit(work())
    gc.freeze()  # the garbage collector then leaves the pages that all workers share alone
    status = _first_worker(backend, work)
    if status == RETIRED or _tells_of(status):
        _tell(connection, status)
        _make_first_calls(backend)
        gc.freeze()
    while status != _HUNG_UP:
        status = _wait(fork(work))
        _tell(connection, status)


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
    elif status == RETIRED:
        connection.send(Serving(0))


def _tells_of(status: int) -> bool:
    """Whether a worker that ended so may owe an answer."""
    return status not in (_HUNG_UP, RETIRED, _COLD)


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
        CaseQuestion(Case.smallest(operator), _WARM_UP).judge(backend)


_HUNG_UP, RETIRED, _COLD = 90, 91, 92
"""Exit statuses of a worker that ended by itself: nobody asks any more; it may be damaged, or shall be replaced. The
third stands for whatever ended one before it was ready to answer."""

_GARBAGE = 5000
"""After how many new objects a worker looks for cycles of garbage: a case makes hundreds, and next to no cycles."""

NO_MORE: tuple[Question, ...] = ()
"""The list of questions that tells a worker to let another take its place."""


def _answer(connection: Connection, backend: Backend, backend_name: str) -> int:
    """The worker: answer lists of questions until the sandbox hangs up or its memory may be damaged."""
    gc.enable()
    gc.set_threshold(_GARBAGE)
    questions = _Questions(connection)
    connection.send(Serving(os.getpid()))
    note: Path | None = None
    try:
        while True:
            asking = questions.next()
            if not asking.questions:
                return RETIRED
            note = asking.note
            connection.send(Taken(asking.ticket))
            if not _answer_all(questions, backend, backend_name, asking):
                return RETIRED
    except CannotWrite as fault:
        connection.send(fault)
        return _HUNG_UP
    except (EOFError, ConnectionError):
        if note is not None:
            with suppress(OSError):
                note.unlink(missing_ok=True)
        return _HUNG_UP


class _Questions:
    """What comes over a worker's connection: lists of questions, and whether evidence is wanted of a violation."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._waiting: list[Asking] = []
        self._asked_for: EvidenceFolder | None = None
        self._limited: EvidenceFolder | None = None

    def next(self) -> Asking:
        """The next list; EOFError where nobody asks any more."""
        return self._waiting.pop(0) if self._waiting else cast(Asking, self.connection.recv())

    def wants_evidence(self, row: Row) -> bool:
        self.connection.send(Violation(row))
        while not isinstance(said := self.connection.recv(), Leave):
            self._waiting.append(said)
        return said.wanted

    def limiting(self, question: Question) -> Question:
        """The question, which asks before it leaves evidence of anything but a smallest case."""
        evidence = question.evidence
        if evidence is None or evidence.shrunk_from:
            return question
        if self._limited is None or evidence is not self._asked_for:
            self._asked_for, self._limited = evidence, replace(evidence, wants=self.wants_evidence)
        return question.with_evidence_dir(self._limited)


def _answer_all(questions: _Questions, backend: Backend, backend_name: str, asking: Asking) -> bool:
    """Answer the questions up to the first after which memory may be damaged; whether this process may go on."""
    with writing(asking.errors):
        _print_to(asking.errors)
    with closing(_Note(asking.note, backend_name)) as note:
        for question in asking.questions:
            note.say(question)
            row = answer_of(questions.limiting(question), backend)
            questions.connection.send_bytes(pickle.dumps(Answer(asking.ticket, row)))
            if may_be_damaged(row):
                if backend.survives_fork or not backend.is_usable():
                    return False
                break
        note.clear()
        return True


def may_be_damaged(row: Row) -> bool:
    """Whether the memory of the process may be, in which a row was made.

    Not where every output was written, nothing beside the outputs was but what is accounted for, and, of a backward, no
    gradient is missing from its plane: values that are merely wrong, or stand elsewhere, tell of no write that went
    astray.
    """
    if row["verdict"] not in FAILED:
        return False
    violated = {*row["checks_violated"]}
    if "memory_untouched" in violated and _is_accounted(row):
        violated.remove("memory_untouched")
    holding = {*row["checks_judged"]} - violated
    if not (violated <= _ABOUT_VALUES and holding >= _ABOUT_MEMORY):
        return True
    return OPERATORS[row["operator"]].is_backward and not (holding >= _NOTHING_REJECTED or _KEPT in holding)


def _is_accounted(row: Row) -> bool:
    """Whether what was written outside of the outputs' elements is."""
    return any(found["check"] == "memory_untouched" and found["accounted"] for found in json.loads(row["findings"]))


_ABOUT_MEMORY = {"written", "inputs_untouched", "memory_untouched"}
"""Checks that hold of a call that wrote what it had to, and nothing else."""

_ABOUT_VALUES = frozenset(
    ["results", "interval", "unreached", "layout_invariance", "maximum", "index_rule", "index_points", "empty_window"]
)
"""Checks that are broken by wrong values in the outputs of which those tell."""

_NOTHING_REJECTED, _KEPT = {"interval", "unreached"}, "plane_sum"
"""Checks of which either hold where no gradient was lost."""


def _print_to(errors: Path) -> None:
    """Let what this process prints go there, whatever it printed to before."""
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


class _Note:
    """The file that says which question is in flight; `CannotWrite` where it cannot be written."""

    def __init__(self, path: Path, backend: str) -> None:
        self._path = path
        self._backend = json.dumps(backend)
        self._length = 0
        with writing(path):
            self._file = path.open("wb", buffering=0)

    def say(self, question: Question) -> None:
        """In the place of what it said, of which blanks cover the rest: cutting a file off takes the system longer."""
        line = f'{{"backend": {self._backend}, "aspect": "{question.aspect.id}", "case": {question.to_line()}}}'
        data = line.encode().ljust(self._length)
        with writing(self._path):
            self._length = os.pwrite(self._file.fileno(), data, 0)

    def clear(self) -> None:
        self._file.truncate(0)

    def close(self) -> None:
        self._file.close()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, backend = sys.argv[1:]
    _serve(Connection(int(descriptor)), backend)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # taking apart what a framework has loaded takes half a second, and is the system's at once
