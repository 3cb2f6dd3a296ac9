"""The worker of a backend: the process that makes its calls, replaced when it is no longer reliable."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import cache
from math import inf
from threading import Timer

from poolproof.backends.base import WORKER_VARIABLE, Backend, BackendUnavailable, UnknownBackend
from poolproof.backends.host.protocol import Description, ProtocolError
from poolproof.backends.registry import prepare
from poolproof.references.kernels.compiled import cache_folder, compile_all
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases import memory
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.arena import allocate, shared_arena
from poolproof.suites.isolation.damage import may_be_damaged
from poolproof.suites.isolation.environment import replay_arguments
from poolproof.suites.isolation.remote import RemoteBackend, adapter_error
from poolproof.suites.isolation.replies import read_description
from poolproof.suites.isolation.supervision import START_SECONDS, Host, Message
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.faults import HostDied, answer
from poolproof.suites.judging.question import Aspect, Question

_SILENCE = 10.0
"""Seconds of loading, or compiling, before a notice explains the delay."""

_WARM_UP = Aspect("warm-up", "everything that each process needs is loaded", USUAL)

WARM_UP_SECONDS = 20.0
"""Time limit for the calls of a warm-up, in seconds."""

_STARTS = 3
"""Most processes in a row that may fail to start."""


class WorkerState(Enum):
    """Known state of the process."""

    DEAD = auto()
    """There is none."""
    FRESH = auto()
    """It has not judged anything."""
    WARM = auto()
    """It has judged, and can continue."""
    BUSY = auto()
    """It makes calls, or the wait for them was interrupted: a reply could be mistaken for another."""
    SPOILED = auto()
    """It has judged, and its memory, state or device may be damaged."""


class Worker:
    """The process of a backend: questions are judged here, and their calls are made there.

    Only a fresh or warm process gets questions; any other is replaced first.

    Attributes:
        last: The question that it judged last, None if it is fresh.
        description: The backend's description, once it is loaded.
        replay_arguments: Arguments by which `poolproof replay` loads it in the same way.
    """

    remote: RemoteBackend

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.description = Description()
        self.replay_arguments: tuple[str, ...] = ()
        self.state = WorkerState.DEAD
        self.last: Question | None = None
        self._host = Host(backend, shared_arena())
        self._dtype = "float32"
        self._survives_first_calls: bool | None = None
        self._zygote_is_warm = False

    def begin_loading(self) -> None:
        """Begin to load the backend; `load` waits for it."""
        prepare(self.backend, say)
        self._host.start()

    def load(self) -> None:
        """Load the backend; raise `BackendUnavailable` or `UnknownBackend` if it cannot run here."""
        if not self._host.is_loaded:
            self.begin_loading()
        with _noticed("the judge is being compiled, once per version; this may take two minutes"):
            compile_all()  # while the host loads the backend
        _warn_of_compiling()
        gc.freeze()
        memory.allocator = allocate
        try:
            with _noticed(f"backend {self.backend} is being loaded; this may take {START_SECONDS:g} s"):
                self.description = self._read_description(self._host.description())
                if self.description.opens_late:
                    self.description = self._open_fork()
                    self._host.end_worker()
        except HostDied as death:
            how = f"{death.reason} while it was loaded{death.last_words}"
            raise BackendUnavailable(f"backend {self.backend} {how}") from None
        except ProtocolError as error:
            self.close()
            raise BackendUnavailable(f"backend {self.backend} does not describe itself: {error}") from None
        self.remote = RemoteBackend(self.description, self._host.ask)
        self.replay_arguments = replay_arguments(self.backend, os.environ, self.description.import_folders)
        self._zygote_is_warm = False

    def _read_description(self, reply: Message) -> Description:
        if "done" not in reply:
            self.close()
        match reply:
            case {"unavailable": text}:
                raise BackendUnavailable(text)
            case {"unknown": text}:
                raise UnknownBackend(text)
            case {"raised": raised}:
                raise BackendUnavailable(f"backend {self.backend} {adapter_error(raised)} while it was loaded")
            case {"done": record}:
                return read_description(record)
        raise ProtocolError(f"its reply is {reply!r:.300}")

    def _open_fork(self) -> Description:
        """Fork a process and open the backend there, which may take as long as loading."""
        self._host.fork()
        self._host.allow(START_SECONDS)
        return self._read_description(self._host.ask({"do": "open"}))

    @property
    def starts_cold(self) -> bool:
        """Tell whether a fresh process has made no calls; its first may take longer."""
        return not self.remote.survives_fork or self.description.opens_late

    def build(self, dtype: str) -> None:
        """Build the backend for a dtype, if necessary: it takes longer than calls may."""
        prepare(self.backend, say, dtype)
        self._dtype = dtype

    def settle(self) -> HostDied | None:
        """End an unreliable process; return how it died since its last answer, if it did."""
        if self.state in (WorkerState.BUSY, WorkerState.SPOILED):
            self.end()
        try:
            self._host.check_alive()
        except HostDied as death:
            self.state = WorkerState.DEAD
            return death
        return None

    def make_ready(self) -> None:
        """Ensure a fresh or warm process; raise `BackendUnavailable` if none starts."""
        if self.state in (WorkerState.FRESH, WorkerState.WARM):
            return
        self.end()
        for _ in range(_STARTS):
            if not self._host.is_loaded:
                self.load()
            with suppress(HostDied):
                self._start()
                self.state, self.last = WorkerState.FRESH, None
                return
        raise BackendUnavailable(f"backend {self.backend}: no process of it comes to answer")

    def judge(self, question: Question, seconds: float, until: float = inf) -> Row:
        """Judge a question in a ready process; raise `HostDied` if that does not survive.

        A call may take ``seconds``. The monotonic time ``until`` ends all calls.
        """
        self.state, self.last = WorkerState.BUSY, question
        self._host.allow(seconds, until)
        try:
            row = answer(question, self.remote)
        except HostDied:
            self.state = WorkerState.DEAD
            raise
        is_damaged = self.remote.survives_fork and may_be_damaged(row)
        is_spoiled = is_damaged or self.remote.is_spoiled or not self.remote.is_usable()
        self.state = WorkerState.SPOILED if is_spoiled else WorkerState.WARM
        shared_arena().reclaim()
        return row

    def backend_within(self, seconds: float) -> Backend:
        """Return the backend, with a time limit for each call, which may raise `HostDied`; then it cannot judge."""
        self.make_ready()
        self.state = WorkerState.BUSY
        self._host.allow(seconds)
        return self.remote

    def end(self) -> None:
        """End the process that makes calls."""
        self._host.end_worker()
        self.state = WorkerState.DEAD

    def close(self) -> None:
        """End all processes; the backend may be loaded again."""
        self._host.close()
        self.state = WorkerState.DEAD

    def _start(self) -> None:
        """Start a process; if the backend survives forks, calls find their code already loaded.

        The first fork makes warm-up calls, as a trial. If it survives them, the zygote makes them before the next fork.
        Otherwise each fork starts cold: that costs cases, not the run. Without forks, or if each fork opens the
        backend, the first launch is that of a judged case.
        """
        if self.starts_cold:
            if self.description.opens_late:
                self._open_fork()
            else:
                self._host.serve_unforked()
            self.remote.renew()
            return
        if self._survives_first_calls and not self._zygote_is_warm:
            self._host.serve_unforked()
            self._make_first_calls()
            self._zygote_is_warm = True
        self._host.fork()
        self.remote.renew()
        if self._survives_first_calls is None:
            self._make_first_calls()

    def _make_first_calls(self) -> None:
        self.remote.renew()
        self._host.allow(WARM_UP_SECONDS, time.monotonic() + WARM_UP_SECONDS)
        self._survives_first_calls = False
        for operator in OPERATORS.values():
            answer(CaseQuestion(Case.smallest(operator, self._dtype), _WARM_UP), self.remote)
        self._survives_first_calls = True


def say(sentence: str) -> None:
    print(f"poolproof: {sentence}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _noticed(sentence: str) -> Iterator[None]:
    """Print the reason of waiting, if it takes long."""
    notice = Timer(_SILENCE, say, [sentence])
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
        notice.join()  # this process may be forked


@cache
def _warn_of_compiling() -> None:
    """Print why sessions begin late, if compiled code cannot be kept; workers of a session leave that to it."""
    if cache_folder() is None and WORKER_VARIABLE not in os.environ:
        say("compiled code cannot be kept, so every process compiles anew: set XDG_CACHE_HOME to a writable folder")
