"""The sandbox of a backend: an implementation that crashes or hangs costs one case.

A `Sandbox` decides how long a question may take, when to judge it again in a fresh process, and whom to blame for a
death. Every case is written to disk before it is judged: after a power cut the case in flight is still known.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import BinaryIO

from poolproof.backends.registry import KERNELS
from poolproof.reports.rows.checks import NEIGHBOURS
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.memory import written_text
from poolproof.suites.isolation.environment import USUAL_TIMEOUT
from poolproof.suites.isolation.survey import survey_of
from poolproof.suites.isolation.worker import WARM_UP_SECONDS, Worker, WorkerState
from poolproof.suites.judging.budget import number_in
from poolproof.suites.judging.faults import HostDied
from poolproof.suites.judging.question import Question, not_judged, not_survived
from poolproof.suites.plan.plans import Survey

_KILLED_ONCE = "judged again in a fresh process, as the first process was killed from outside (SIGKILL)"
_KILLED_TWICE = "the process was killed from outside (SIGKILL) twice, perhaps because the system ran out of memory"

_SLOWER = 10.0
"""Time added to a process's first case, relative to the longest so far: a library may hang in each of them."""

_LEAST_SECONDS = 2.0
"""Least additional seconds of a process's first case."""

_SHARE = 2
"""One case may use at most half of the remaining time of a budget."""

_SHARE_LATER = 16
"""After the first hang, at most a sixteenth."""

_SHORTEST = 1.0
"""In any case, this many seconds."""


class Sandbox:
    """Judges questions on one backend, and survives whatever the implementation does.

    A call may take ``timeout`` seconds, and a case a share of the time left before the monotonic time ``until``. If
    that share ends a case, it is not judged. The file of the case in flight lies in ``scratch``, and its name contains
    ``name``. ``loaded`` is a worker with the backend loaded. ``unplanned`` are rows of processes that died between two
    calls, for the caller to take.
    """

    def __init__(
        self,
        backend: str,
        scratch: Path,
        name: str,
        timeout: float,
        until: float = inf,
        loaded: Worker | None = None,
    ) -> None:
        self.worker = loaded or Worker(backend)
        self.unplanned: list[Row] = []
        self._name, self._timeout, self._until = name, timeout, until
        self._path = scratch / f"in-flight-{name}.json"
        self._file: BinaryIO | None = None
        self._length = 0
        self._has_hung = self._is_over = False
        self._slowest_first: float | None = None
        self._oom_kills = _oom_kills()

    @property
    def labels(self) -> Row:
        """The columns of the judging process and the time."""
        product = self.worker.description.product
        timeout = () if self._timeout == USUAL_TIMEOUT else ("--timeout", f"{self._timeout:g}")
        return {
            "backend": self.worker.backend,
            "product": product.name if product else "",
            "worker": self._name,
            "given": [*self.worker.replay_arguments, *timeout] or None,
            "judged_at": time.time(),
        }

    def start(self) -> Survey:
        """Load and survey the backend; raise `BackendUnavailable` or `UnknownBackend` if it cannot run here."""
        self.worker.load()
        return survey_of(self.worker)

    def judge(self, questions: Sequence[Question]) -> Iterator[Row]:
        """Yield one row per question, in order."""
        gc.set_threshold(5000)  # a case makes hundreds of objects, and hardly any cycles
        self._is_over = False
        self._build(questions)
        over = "the budget was used up by an earlier case, and that case was cut off"
        try:
            for question in questions:
                yield self._not_run(question, over) if self._is_over else self._row(question)
        finally:
            self._forget_in_flight()

    def judge_alone(self, question: Question) -> Row:
        """Judge a question in a fresh process."""
        if self.worker.state is not WorkerState.FRESH:
            self.worker.end()
        self._build([question])
        self.worker.make_ready()
        try:
            return self._row(question)
        finally:
            self._forget_in_flight()

    def close(self) -> None:
        """End all processes; the sandbox may be started again."""
        self._report_late_death()
        self.worker.close()

    def _build(self, questions: Sequence[Question]) -> None:
        for dtype in {question.built_for: None for question in questions if question.built_for}:
            self.worker.build(dtype)

    def _row(self, question: Question) -> Row:
        """Judge a question; repeat it in a fresh process if an earlier call in its process may be to blame."""
        self._note_in_flight(question)
        self._report_late_death()
        previous = self.worker.last if self.worker.state is WorkerState.WARM else None
        result = self._answer(question)
        if previous and self._may_be_inherited(result):
            self.worker.end()
            first, result = result, self._answer(question)
            if isinstance(first, HostDied) and not isinstance(result, HostDied):
                reason = f"died in case {question.id} after case {previous.id}, and survives a repetition"
                self._add_unplanned(not_survived(question, Verdict.CRASHED, f"{reason}: the process {first}"))
        if isinstance(result, HostDied) and result.was_killed:
            return self._retry(question)
        return self._row_of(question, result)

    def _may_be_inherited(self, result: Row | HostDied) -> bool:
        """Tell whether a result may be due to an earlier call that damaged memory, an adapter or the device."""
        if isinstance(result, HostDied):
            return result.verdict is Verdict.CRASHED and not result.was_killed
        has_lost_device = result["verdict"] == Verdict.NOT_RUN and self.worker.state is WorkerState.SPOILED
        return has_lost_device or result["verdict"] == Verdict.ADAPTER_ERROR

    def _retry(self, question: Question) -> Row:
        """Judge a question again, alone, after its process was killed from outside.

        A second kill is its fault, unless the system ran out of memory meanwhile, or cannot tell.
        """
        ran_out = self._system_ran_out()
        result = self._answer(question)
        if isinstance(result, HostDied) and result.was_killed and (self._system_ran_out() or ran_out):
            return self._not_run(question, _KILLED_TWICE)
        row = self._row_of(question, result)
        if row["verdict"] in FAILED:
            return row  # its reason is the failure
        return row | {"reason": "; ".join(filter(None, (row["reason"], _KILLED_ONCE)))}

    def _answer(self, question: Question) -> Row | HostDied:
        """Judge a question within the time limit of its calls, and its share of the budget."""
        worker = self.worker
        worker.make_ready()
        slowness = 4.0 if worker.backend.startswith(KERNELS) else 1.0  # a model runs all cores of a kernel on one
        is_first_launch = worker.state is WorkerState.FRESH and worker.starts_cold
        warm_up = self._warm_up_seconds if is_first_launch else 0.0
        seconds = self._timeout * question.timeout_scale * slowness + warm_up
        share = max((self._until - time.monotonic()) / (_SHARE_LATER if self._has_hung else _SHARE), _SHORTEST)
        began = time.perf_counter()
        try:
            row = worker.judge(question, seconds, time.monotonic() + share)
        except HostDied as death:
            if death.verdict is Verdict.CRASHED:
                return death
            self._has_hung, self._is_over = True, time.monotonic() >= self._until
            if death.verdict is Verdict.TIMED_OUT:
                return death
            return self._not_run(question, "cut off: its share of the budget was used up")
        row["seconds"] = time.perf_counter() - began
        if is_first_launch and row["verdict"] in (Verdict.CONFORMS, Verdict.VIOLATES):  # others may have made no call
            self._slowest_first = max(self._slowest_first or 0.0, row["seconds"])
        return row

    @property
    def _warm_up_seconds(self) -> float:
        """Additional seconds of a process's first case."""
        if self._slowest_first is None:
            return WARM_UP_SECONDS
        return min(WARM_UP_SECONDS, max(_SLOWER * self._slowest_first, _LEAST_SECONDS))

    def _row_of(self, question: Question, result: Row | HostDied) -> Row:
        if not isinstance(result, HostDied):
            return result | self.labels | {"reason": visible(result["reason"])}
        call = self.worker.remote.in_flight
        row = not_survived(question, result.verdict, f"the call {result}", written_text(call) if call else "")
        row |= self.labels
        if question.evidence and question.evidence.wants(row):
            question.evidence.write_unfinished(row, call)
        return row

    def _not_run(self, question: Question, reason: str) -> Row:
        return question.describe() | not_judged(Verdict.NOT_RUN, reason) | self.labels

    def _report_late_death(self) -> None:
        """Add a row if the process has died since its last answer."""
        death, last = self.worker.settle(), self.worker.last
        if death and last and not death.was_killed:
            reason = f"died between calls, after case {last.id}: the process {death}"
            self._add_unplanned(not_survived(last, Verdict.CRASHED, reason))

    def _add_unplanned(self, row: Row) -> None:
        self.unplanned.append(row | self.labels | {"block": "", "aspect": NEIGHBOURS})

    def _system_ran_out(self) -> bool:
        """Tell whether the system may have killed processes for memory since the last call."""
        before, self._oom_kills = self._oom_kills, _oom_kills()
        return self._oom_kills is None or self._oom_kills != before

    def _note_in_flight(self, question: Question) -> None:
        """Overwrite the file with the question, padded with blanks: truncating takes longer."""
        backend = json.dumps(self.worker.backend)
        line = f'{{"backend": {backend}, "aspect": "{question.aspect.id}", "case": {question.to_line()}}}'
        with writing(self._path):
            if self._file is None:
                self._file = self._path.open("wb", buffering=0)
            self._length = os.pwrite(self._file.fileno(), line.encode().ljust(self._length), 0)

    def _forget_in_flight(self) -> None:
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
        self._file, self._length = None, 0


def _oom_kills() -> int | None:
    """Return the number of processes that the system killed for memory; None if it is unknown."""
    return number_in(Path("/proc/vmstat"), "oom_kill")
