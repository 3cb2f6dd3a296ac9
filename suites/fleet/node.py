"""The judge on a device of a fleet: a runner whose rows and evidence are sent as they come."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from poolproof.backends.base import WORKER_VARIABLE
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.evidence import evidence_path, shrunk_path
from poolproof.reports.rows.schema import Row
from poolproof.suites.fleet.scratch import scratch_folder
from poolproof.suites.isolation.sandbox import Sandbox, surveyed
from poolproof.suites.judging.budget import free_memory, share
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.plans import Survey
from poolproof.suites.run.runner import Runner

HOLD_SECONDS = 0.25
"""Seconds for which rows are collected before they are sent."""


@dataclass(frozen=True)
class Node:
    """The machine of a judge, the suite that is installed there, and its free bytes of memory."""

    name: str
    suite: dict[str, str]
    free: int


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run for its judges, most as in `Runner`.

    ``memory`` is what the run may take on a machine in bytes, 0 for what is free; ``sharing`` judges share it.
    """

    waive: Callable[[Row], Row]
    timeout: float
    shrinks: bool
    most_evidence: int
    memory: int
    judged: frozenset[tuple[str, str]] = frozenset()
    unplanned: frozenset[tuple[str, str]] = frozenset()
    sharing: int = 1


@dataclass(frozen=True)
class Single:
    """A single question and its backend; a ``further`` one is judged once, whatever its verdict."""

    id: str
    question: Question
    backend: str
    further: bool = False


Work = Block | Single


@dataclass(frozen=True)
class Batch:
    """Rows, and the contents of their evidence files, by path in the folder of the run."""

    rows: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


class Judge:
    """Judges works one after the other, as the process of a session would.

    ``number`` counts the judges of a run from 0: backends may choose a device by it (`WORKER_VARIABLE`).
    """

    def __init__(self, number: int) -> None:
        os.environ[WORKER_VARIABLE] = str(number)
        self._name = f"fleet{number}"
        self._folder = scratch_folder()
        self._surveys: dict[str, Survey] = {}
        self._loaded: dict[str, Sandbox] = {}
        self._rows: SimpleQueue[Row] = SimpleQueue()
        # one thread for all: a process is ended with the thread that started it
        self._thread = ThreadPoolExecutor(1)

    def node(self) -> Node:
        return Node(platform.node(), suite_identity(), free_memory())

    def survey(self, backend: str) -> Survey:
        """Survey a backend on this machine; it stays loaded."""
        return self._thread.submit(self._survey, backend).result()

    def join(self, backends: Iterable[str], settings: RunSettings) -> tuple[Node, dict[str, dict[str, str]]]:
        """Prepare to judge; return the node and the environments of the backends."""
        environments = {backend: self.survey(backend).environment for backend in backends}
        node = self.node()
        share(settings.memory or node.free, settings.sharing)
        self._thread.submit(self._begin, settings).result()
        return node, environments

    def _survey(self, backend: str) -> Survey:
        if backend not in self._surveys:
            self._surveys[backend], self._loaded[backend] = surveyed(backend)
        return self._surveys[backend]

    def _begin(self, settings: RunSettings) -> None:
        self._runner = Runner(
            self._folder,
            name=self._name,
            waive=settings.waive,
            record=self._rows.put,
            timeout=settings.timeout,
            shrinks=settings.shrinks,
            already_judged=settings.judged,
            already_unplanned=settings.unplanned,
            most_evidence=settings.most_evidence,
            loaded=self._loaded,
        )

    def judge(self, work: Work, judged: frozenset[str]) -> Iterator[Batch]:
        """Yield the rows of all cases whose ids are not in ``judged``, at most `HOLD_SECONDS` late."""
        ended = self._thread.submit(self._judge, work, judged)
        while not ended.done() or not self._rows.empty():
            batch = self._collect(ended)
            if batch.rows:
                yield batch
        ended.result()

    def _judge(self, work: Work, judged: frozenset[str]) -> None:
        if isinstance(work, Single):
            judge = self._runner.judge_further if work.further else self._runner.judge_one
            if work.question.id not in judged:
                judge(work.question, work.backend)
        else:
            self._runner.leave_out((work.id, case_id) for case_id in judged)
            self._runner.judge(work)

    def _collect(self, ended: Future[None]) -> Batch:
        """Collect rows until it is time to send them."""
        batch, until = Batch(), time.monotonic() + HOLD_SECONDS
        while (left := until - time.monotonic()) > 0 and not (ended.done() and self._rows.empty()):
            try:
                row = self._rows.get(timeout=min(left, 0.02))
            except Empty:
                continue
            batch.rows.append(row)
            batch.files.update(self._evidence_of(row))
        return batch

    def _evidence_of(self, row: Row) -> Iterator[tuple[str, bytes]]:
        """Take the evidence files of a row, which are removed here."""
        if not row.get("case_id"):
            return
        for path_of in (evidence_path, shrunk_path):
            path = path_of(self._folder, row["case_id"], row["backend"])
            if path.is_file():
                yield path.relative_to(self._folder).as_posix(), path.read_bytes()
                path.unlink()

    def close(self) -> None:
        """End all processes."""
        self._thread.submit(self._runner.close).result()
        shutil.rmtree(self._folder, ignore_errors=True)
