"""The sandbox of a backend: an implementation that crashes or hangs costs one case.

A `Sandbox` judges in this process, on a backend whose calls are made in another (`Host`), which is replaced when it
dies or its memory may be damaged. Every case is written to disk before it is judged: after a power cut the case in
flight is still known.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from math import inf
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from poolproof.backends.abilities import ALL
from poolproof.backends.base import WORKER_VARIABLE, Backend, BackendUnavailable, UnknownBackend
from poolproof.backends.host.protocol import Description, ProtocolError
from poolproof.backends.registry import KERNELS, check_name, prepare
from poolproof.references.kernels.compiled import cache_folder, compile_all
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.checks import NEIGHBOURS
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases import memory
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import written_text
from poolproof.suites.isolation.arena import allocate, shared_arena
from poolproof.suites.isolation.environment import USUAL_TIMEOUT, identify, replay_arguments
from poolproof.suites.isolation.remote import RemoteBackend, adapter_error
from poolproof.suites.isolation.replies import read_description
from poolproof.suites.isolation.supervision import START_SECONDS, Host, Message
from poolproof.suites.judging.budget import number_in
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.faults import HostDied, Interrupted, answer
from poolproof.suites.judging.question import Aspect, Prepared, Question, not_judged, not_survived
from poolproof.suites.plan.plans import Survey, subjects

_KILLED_ONCE = "asked again alone, for the first process was killed from outside (SIGKILL)"
_KILLED_TWICE = "the process was killed from outside (SIGKILL) twice, as a system does that runs out of memory"


_SILENCE = 10.0
"""Seconds of loading, or compiling, after which it is said what is waited for."""


_WARM_UP = Aspect("warm-up", "what every process would load is loaded", USUAL)

_WARM_UP_SECONDS = 20.0
"""Time limit for the calls of a warm-up, and at most what the first case has besides in a process without one."""

_SLOWER, _LEAST_SECONDS = 10.0, 2.0
"""How much longer than the longest so far the first case of a process may take, and at least: of a library that hangs
every process but one begins with a case that hangs."""

_SHARE, _SHARE_LATER, _SHORTEST = 2, 16, 1.0
"""A case may take half of the time that is left of a budget, a sixteenth once one has hung, and so many seconds
whatever is left."""


def survey(backend: str) -> Survey:
    """Survey a backend and identify its libraries; `BackendUnavailable` or `UnknownBackend` if it cannot run here."""
    found, sandbox = surveyed(backend)
    sandbox.close()
    return found


def surveys(names: Sequence[str]) -> Iterator[tuple[str, Survey | BackendUnavailable | UnknownBackend]]:
    """Yield the survey of each backend, or why it cannot run here; as many are loaded at a time as there are cores."""
    ahead = os.cpu_count() or 1
    sandboxes = {name: _to_survey(name) for name in names}
    with ExitStack() as stack:
        for number, name in enumerate(names):
            for loaded in names[number and number + ahead - 1 : number + ahead]:
                stack.callback(sandboxes[loaded].close)
                with suppress(BackendUnavailable, UnknownBackend):  # it is raised again where it is waited for
                    sandboxes[loaded].begin_loading()
            try:
                yield name, surveyed(name, sandboxes[name])[0]
            except (BackendUnavailable, UnknownBackend) as error:
                yield name, error
            sandboxes[name].close()


def surveyed(backend: str, sandbox: Sandbox | None = None) -> tuple[Survey, Sandbox]:
    """Survey a backend, as `survey`, and keep its sandbox, with the backend loaded.

    The sandbox has to be closed, or given a folder (`Sandbox.take`) before it judges.
    """
    check_name(backend)
    sandbox = sandbox or _to_survey(backend)
    try:
        found = sandbox.start()
        return replace(found, environment=found.environment | identify(sandbox.libraries)), sandbox
    except BaseException:
        sandbox.close()
        raise


def _to_survey(backend: str) -> Sandbox:
    return Sandbox(backend, Path(tempfile.gettempdir()), "survey", timeout=0.0)


class Sandbox:
    """Judges questions on one backend, surviving whatever the implementation does.

    The calls of a case may take ``timeout`` seconds, and a share of what is left ``until`` a monotonic time; what is
    cut off sooner than it times out is not judged. ``scratch`` is a folder for the file of the case in flight, whose
    name contains ``name``. ``unplanned`` are rows of processes that died between two calls, for the caller to take.
    """

    _remote: RemoteBackend

    def __init__(self, backend: str, scratch: Path, name: str, timeout: float, until: float = inf) -> None:
        self.backend = backend
        self.libraries: frozenset[str] = frozenset()
        self.labels: Row = {"backend": backend, "product": "", "worker": name}
        self.unplanned: list[Row] = []
        self._replay_arguments: tuple[str, ...] = ()
        self._host = Host(backend, shared_arena())
        self._begun: Question | None = None
        self._prepared: Prepared | None = None
        self._asked: list[Question] = []
        self._survives_first_calls: bool | None = None
        self._has_hung = self._is_over = False
        self._zygote_is_warm = False
        self._slowest_first: float | None = None
        self._oom_kills: int | None = None
        self._dtype = "float32"
        self.take(scratch, name, timeout, until)

    def take(self, scratch: Path, name: str, timeout: float, until: float = inf) -> None:
        """Continue with another folder, name and time limits; the backend stays loaded."""
        self._timeout, self._until = timeout, until
        self._in_flight = _InFlightFile(scratch / f"in-flight-{name}.json", self.backend)
        self.labels["worker"] = name
        self._label_arguments()

    def _label_arguments(self) -> None:
        timeout = () if self._timeout == USUAL_TIMEOUT else ("--timeout", f"{self._timeout:g}")
        self.labels["given"] = [*self._replay_arguments, *timeout] or None

    def begin_loading(self) -> None:
        """Begin to load the backend, for `start` to wait for it."""
        prepare(self.backend, say)
        self._host.start()

    def start(self) -> Survey:
        """Load and survey the backend; `BackendUnavailable` or `UnknownBackend` if it cannot run here."""
        if not self._host.is_loaded:
            self.begin_loading()
        with _noticed("what judges is being compiled, once for each version, which may take two minutes"):
            compile_all()  # while the host loads the backend
        _warn_of_compiling()
        gc.freeze()
        memory.allocator = allocate
        try:
            with _noticed(f"backend {self.backend} is being loaded, which may take {START_SECONDS:g} s"):
                said = self._read_description(self._host.description())
        except HostDied as death:
            how = f"{death.reason} while it was loaded{death.last_words}"
            raise BackendUnavailable(f"backend {self.backend} {how}") from None
        except ProtocolError as error:
            self.close()
            raise BackendUnavailable(f"backend {self.backend} does not describe itself: {error}") from None
        self._remote = RemoteBackend(said, self._host.ask)
        self._zygote_is_warm = False
        self.labels["product"] = said.product.name if said.product else ""
        self.libraries = frozenset(said.libraries)
        self._replay_arguments = replay_arguments(self.backend, os.environ, said.import_folders)
        self._label_arguments()
        found = subjects(self.backend, self._remote)
        limited = [subject for subject in found if subject.abilities != ALL]
        if limited and said.product:
            declares = f"declares abilities, but it runs on {said.product}, whose contract says which it must have"
            raise UnknownBackend(f"backend {self.backend!r} {declares}")
        environment = {visible(name): visible(text) for name, text in said.environment.items()}
        environment |= {f"abilities of {subject.operator.name}": str(subject.abilities) for subject in limited}
        return Survey(environment, found, said.product)

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
        raise ProtocolError(f"it says {reply!r:.300}")

    def judge(self, questions: Sequence[Question]) -> Iterator[Row]:
        """Yield one row per question, in order."""
        gc.set_threshold(5000)  # a case makes hundreds of objects, and hardly any cycles
        self._is_over = False
        for dtype in {question.built_for: None for question in questions if question.built_for}:
            prepare(self.backend, say, dtype)  # to build takes longer than calls may
            self._dtype = dtype
        try:
            for question, following in zip_longest(questions, questions[1:]):
                yield self._row(question, following) | {"judged_at": time.time()}
        finally:
            if self._begun:
                self._end_worker()
            self._in_flight.clear()

    def judge_alone(self, question: Question) -> Row:
        """Judge a question in a fresh process."""
        if self._asked:
            self._end_worker()
        was_over = self._is_over
        (row,) = self.judge([question])
        self._is_over |= was_over  # of the questions among which this one is asked
        return row

    def backend_within(self, seconds: float) -> Backend:
        """Return the backend in a process of its own, with a time limit for calls; it raises `HostDied`."""
        self._have_worker()
        self._host.allow(seconds)
        return self._remote

    def close(self) -> None:
        """End all processes; the sandbox may be started again."""
        self._is_alive()
        self._host.close()

    def _row(self, question: Question, following: Question | None = None) -> Row:
        if self._is_over:
            return self._not_run(question, "the time of the budget was over with a case before it, which was cut off")
        is_begun = self._begun is question
        before = self._asked[-2:-1] if is_begun else self._asked[-1:] if self._is_alive() else []
        found = self._answer(question, following)
        if not isinstance(found, HostDied) and found["verdict"] == Verdict.ADAPTER_ERROR and len(self._asked) > 1:
            self._end_worker()  # an earlier call may have taken from the adapter what it computes with
            found = self._answer(question)
        if isinstance(found, HostDied) and found.was_killed:
            return self._retry(question)
        if isinstance(found, HostDied) and found.verdict is Verdict.CRASHED and before:
            death, found = found, self._answer(question)
            if not isinstance(found, HostDied):
                reason = f"died in case {question.id}, which it survives when asked again, after case {before[0].id}"
                self._add_unplanned(not_survived(question, Verdict.CRASHED, f"{reason}: the process {death}"))
        return self._row_of(question, found)

    def _row_of(self, question: Question, found: Row | HostDied) -> Row:
        if isinstance(found, HostDied):
            call = self._remote.in_flight
            written = written_text(call) if call else ""
            row = not_survived(question, found.verdict, f"the call {found}", written) | self.labels
            if question.evidence and question.evidence.wants(row):
                question.evidence.write_unfinished(row, call)
            return row
        found |= self.labels
        if found["reason"]:
            found["reason"] = visible(found["reason"])
        return found

    def _retry(self, question: Question) -> Row:
        """Judge a question again, alone, whose process was killed from outside.

        If it is killed once more, it is blamed, unless the system ran out of memory meanwhile, or does not say.
        """
        ran_out = self._system_ran_out
        found = self._answer(question)
        if isinstance(found, HostDied) and found.was_killed and (ran_out or self._system_ran_out):
            return self._not_run(question, _KILLED_TWICE)
        row = self._row_of(question, found)
        if row["verdict"] in FAILED:
            return row  # its reason is what was found
        return row | {"reason": "; ".join(filter(None, (row["reason"], _KILLED_ONCE)))}

    def _not_run(self, question: Question, reason: str) -> Row:
        return question.describe() | not_judged(Verdict.NOT_RUN, reason) | self.labels

    @property
    def _left(self) -> float:
        return self._until - time.monotonic()

    def _allow(self, seconds: float) -> float:
        """Set the time limit of calls, at most a share of what is left of the budget; return it."""
        allowed = min(seconds, max(self._left / (_SHARE_LATER if self._has_hung else _SHARE), _SHORTEST))
        self._host.allow(allowed)
        return allowed

    def _answer(self, question: Question, following: Question | None = None) -> Row | HostDied:
        """Judge a question in the worker, which is ended if its memory may be damaged.

        The first calls of the ``following`` question are made meanwhile, if both need but those.
        """
        if self._begun is not question:
            self._have_worker()
            self._begin(question, self._prepare(question))
        prepared, self._begun = self._prepared, None
        after = self._prepare(following) if prepared and following else None
        slowness = 4.0 if self.backend.startswith(KERNELS) else 1.0  # a model runs all cores of a kernel on one
        is_first = len(self._asked) == 1 and not self._remote.survives_fork
        seconds = self._timeout * question.timeout_scale * slowness + (self._warm_up_seconds if is_first else 0.0)
        allowed, started = self._allow(seconds), time.monotonic()
        try:
            if prepared:
                self._remote.receive()
            if following and after:
                self._begin(following, after)
            began = time.perf_counter()
            row = answer(question, self._remote, prepared and prepared[1])
            row["seconds"] = time.perf_counter() - began
        except Interrupted:
            self._end_worker()
            return self._answer(question)
        except HostDied as death:
            self._begun = None
            if death.verdict is Verdict.TIMED_OUT:
                self._is_over = self._left <= 0.0
                self._has_hung = True
                if allowed < seconds:
                    hung = f"the {seconds:.3g} s after which it counts as hung (--case-timeout)"
                    return self._not_run(question, f"cut off before {hung}, for that was its share of the budget")
            return death
        if is_first and row["verdict"] in (Verdict.CONFORMS, Verdict.VIOLATES):  # others may have called nothing
            self._slowest_first = max(self._slowest_first or 0.0, time.monotonic() - started)
        damaged, is_usable = self._remote.survives_fork and may_be_damaged(row), self._remote.is_usable()
        is_cut_off = not is_usable and row["verdict"] == Verdict.NOT_RUN and self._asked[0] is not question
        if damaged or self._remote.is_spoiled or not is_usable:
            self._end_worker()
        return self._answer(question) if is_cut_off else row  # an earlier one may have lost the context

    @property
    def _warm_up_seconds(self) -> float:
        """What the first case of a process has besides its time limit."""
        if self._slowest_first is None:
            return _WARM_UP_SECONDS
        return min(_WARM_UP_SECONDS, max(_SLOWER * self._slowest_first, _LEAST_SECONDS))

    def _prepare(self, question: Question) -> Prepared | None:
        with suppress(Exception):  # it is raised again when the question is judged
            return question.prepare(self._remote)
        return None

    def _begin(self, question: Question, prepared: Prepared | None) -> None:
        """Begin with a question: request its first calls, if they are prepared."""
        self._asked.append(question)
        self._in_flight.write(question)
        self._begun, self._prepared = question, prepared
        if prepared:
            self._remote.send(prepared[0], self._host.send)

    def _end_worker(self) -> None:
        self._begun = None
        self._host.end_worker()

    def _is_alive(self) -> bool:
        """Tell whether there is a worker; report one that has died since its last call."""
        try:
            self._host.check_alive()
        except HostDied as death:
            if self._asked and not death.was_killed:
                reason = f"died between calls, after case {self._asked[-1].id}: the process {death}"
                self._add_unplanned(not_survived(self._asked[-1], Verdict.CRASHED, reason))
        return bool(self._host.worker)

    def _add_unplanned(self, row: Row) -> None:
        self.unplanned.append(row | {"block": "", "aspect": NEIGHBOURS, "judged_at": time.time()} | self.labels)

    def _have_worker(self) -> None:
        """Start a worker if there is none; `BackendUnavailable` if that fails."""
        if self._begun:
            self._end_worker()
        for _ in range(3):  # starts of a host in a row that does not reply
            if self._host.worker:
                return
            if not self._host.is_loaded:
                self.start()
            with suppress(HostDied):
                self._begin_worker()
        if not self._host.worker:
            raise BackendUnavailable(f"backend {self.backend}: no process of it comes to answer")

    def _begin_worker(self) -> None:
        """Start a worker; of those that fork the first makes calls which load what calls need.

        `HostDied` if it does not survive them. Once it has, the zygote makes them, too, before the next fork. An
        implementation that dies of them starts without: it must cost cases, not the run. In a process that does not
        fork the first launch is that of a case, and judged.
        """
        survives_fork = self._remote.survives_fork
        is_to_be_warm = survives_fork and self._survives_first_calls and not self._zygote_is_warm
        if is_to_be_warm or not survives_fork:
            self._host.serve_unforked()
        if is_to_be_warm:
            self._make_first_calls()
            self._zygote_is_warm = True
        if survives_fork:
            self._host.fork()
        self._remote.renew()
        self._asked.clear()
        self._oom_kills = _oom_kills()
        if survives_fork and self._survives_first_calls is None:
            self._make_first_calls()

    def _make_first_calls(self) -> None:
        self._remote.renew()
        self._allow(_WARM_UP_SECONDS)
        self._survives_first_calls = False
        for operator in OPERATORS.values():
            answer(CaseQuestion(Case.smallest(operator, self._dtype), _WARM_UP), self._remote)
        self._survives_first_calls = True

    @property
    def _system_ran_out(self) -> bool:
        """Whether the system may have killed processes for memory since the worker began."""
        now = _oom_kills()
        return now is None or now != self._oom_kills


@dataclass
class _InFlightFile:
    """The file that names the question in flight; `CannotWrite` if it cannot be written."""

    path: Path
    backend: str
    _file: BinaryIO | None = None
    _length: int = 0

    def write(self, question: Question) -> None:
        """Overwrite the file, padded with blanks: truncating it would take longer."""
        backend = json.dumps(self.backend)
        line = f'{{"backend": {backend}, "aspect": "{question.aspect.id}", "case": {question.to_line()}}}'
        with writing(self.path):
            if self._file is None:
                self._file = self.path.open("wb", buffering=0)
            self._length = os.pwrite(self._file.fileno(), line.encode().ljust(self._length), 0)

    def clear(self) -> None:
        if self._file is not None:
            self._file.close()
            self.path.unlink(missing_ok=True)
        self._file, self._length = None, 0


def say(sentence: str) -> None:
    print(f"poolproof: {sentence}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _noticed(sentence: str) -> Iterator[None]:
    """Say what is waited for, if it takes long."""
    notice = Timer(_SILENCE, say, [sentence])
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
        notice.join()  # this process may be forked


@cache
def _warn_of_compiling() -> None:
    """Say why a session begins late, where compiled code cannot be kept; workers leave that to who started them."""
    if cache_folder() is None and WORKER_VARIABLE not in os.environ:
        say("compiled code cannot be kept, so every process compiles anew: set XDG_CACHE_HOME to a writable folder")


def may_be_damaged(row: Row) -> bool:
    """Tell whether a row's calls may have damaged the memory of their process.

    They did not if every output has a place in its own storage for all of its elements, nothing was written beyond that
    and, for a backward, no gradient is missing from its plane: values that are merely wrong or misplaced are no stray
    writes.
    """
    if row["verdict"] not in FAILED:
        return False
    violated = {*row["checks_violated"]}
    if "memory_untouched" in violated:
        found = next(found for found in json.loads(row["findings"]) if found["check"] == "memory_untouched")
        violated -= _ACCOUNTED if found["accounted"] else set()
    holding = {*row["checks_judged"]} - violated
    if not (violated <= _ABOUT_VALUES and holding >= _ABOUT_MEMORY):
        return True
    return OPERATORS[row["operator"]].is_backward and not (holding >= _NOTHING_REJECTED or _KEPT in holding)


_ABOUT_MEMORY = {"written", "inputs_untouched", "memory_untouched"}
"""Checks that hold if a call wrote its outputs and nothing else."""

_ACCOUNTED = {"written", "memory_untouched", "repeat"}
"""Checks that an output violates whose elements lie elsewhere in its storage: those that keep what was in memory."""

_ABOUT_VALUES = {
    *("results", "interval", "unreached", "layout_invariance"),
    *("maximum", "index_rule", "index_points", "empty_window"),
}
"""Checks that are violated by wrong values in the outputs."""

_NOTHING_REJECTED, _KEPT = {"interval", "unreached"}, "plane_sum"
"""Checks of which either holds if no gradient was lost."""


def _oom_kills() -> int | None:
    """Count the processes that the system has killed because it ran out of memory; None if it does not say."""
    return number_in(Path("/proc/vmstat"), "oom_kill")
