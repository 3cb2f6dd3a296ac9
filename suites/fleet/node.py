"""What judges on a device of a fleet: a runner, whose rows and evidence are handed over as they come."""

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
from poolproof.suites.judging.budget import free_memory, share
from poolproof.suites.judging.question import Question
from poolproof.suites.running.plans import Block
from poolproof.suites.running.runner import Runner
from poolproof.suites.running.sandbox import Sandbox, surveyed
from poolproof.suites.running.serving import Survey

HOLD_SECONDS = 0.25
"""How long rows are held back to be handed over together."""


@dataclass(frozen=True)
class Node:
    """Who judges: the machine, the suite that is installed there, and the bytes that are free."""

    name: str
    suite: dict[str, str]
    free: int


@dataclass(frozen=True)
class Given:
    """What a judge of a run is told. ``memory`` is what the run may take on a machine in bytes, 0 for what is free, and
    ``sharing`` how many judges share it; the rest is as `Runner` says.
    """

    waive: Callable[[Row], Row]
    timeout: float
    shrinks: bool
    most_evidence: int
    memory: int
    judged: frozenset[tuple[str, str]] = frozenset()
    led_to: frozenset[tuple[str, str]] = frozenset()
    sharing: int = 1


@dataclass(frozen=True)
class Single:
    """A single question and the backend that it is put to; a ``further`` one is asked once, whatever comes."""

    id: str
    question: Question
    backend: str
    further: bool = False


Work = Block | Single


@dataclass(frozen=True)
class Batch:
    """Rows, and by its path in the folder of a run the content of each file of evidence that they left."""

    rows: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


class Judge:
    """Judges what it is given, one after the other, as the process of a session would.

    ``number`` tells it from the others of its run, counted from 0: backends may choose a device by it
    (`WORKER_VARIABLE`).
    """

    def __init__(self, number: int) -> None:
        os.environ[WORKER_VARIABLE] = str(number)
        self._name = f"fleet{number}"
        self._folder = scratch_folder()
        self._said: dict[str, Survey] = {}
        self._loaded: dict[str, Sandbox] = {}
        self._rows: SimpleQueue[Row] = SimpleQueue()
        # one thread for all: what guards a process ends it when the thread is gone that started it
        self._thread = ThreadPoolExecutor(1)

    def node(self) -> Node:
        return Node(platform.node(), suite_identity(), free_memory())

    def survey(self, backend: str) -> Survey:
        """What a backend says about itself on this machine, as the function of that name; it stays loaded."""
        return self._thread.submit(self._survey, backend).result()

    def join(self, backends: Iterable[str], given: Given) -> tuple[Node, dict[str, dict[str, str]]]:
        """Be ready to judge; who that is, and what the backends run on here."""
        environments = {backend: self.survey(backend).environment for backend in backends}
        node = self.node()
        share(given.memory or node.free, given.sharing)
        self._thread.submit(self._begin, given).result()
        return node, environments

    def _survey(self, backend: str) -> Survey:
        if backend not in self._said:
            self._said[backend], self._loaded[backend] = surveyed(backend)
        return self._said[backend]

    def _begin(self, given: Given) -> None:
        self._runner = Runner(
            self._folder,
            name=self._name,
            waive=given.waive,
            record=self._rows.put,
            timeout=given.timeout,
            shrinks=given.shrinks,
            already_judged=given.judged,
            already_led_to=given.led_to,
            most_evidence=given.most_evidence,
            loaded=self._loaded,
        )

    def judge(self, work: Work, judged: frozenset[str]) -> Iterator[Batch]:
        """The rows of all that is not ``judged`` yet, by the ids of its cases, `HOLD_SECONDS` behind at most."""
        ended = self._thread.submit(self._judge, work, judged)
        while not ended.done() or not self._rows.empty():
            batch = self._collected(ended)
            if batch.rows:
                yield batch
        ended.result()

    def _judge(self, work: Work, judged: frozenset[str]) -> None:
        if isinstance(work, Single):
            ask = self._runner.judge_further if work.further else self._runner.judge_one
            if work.question.id not in judged:
                ask(work.question, work.backend)
        else:
            self._runner.leave_out((work.id, case_id) for case_id in judged)
            self._runner.judge(work)

    def _collected(self, ended: Future[None]) -> Batch:
        """What comes until it is time to hand something over."""
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
        """What a row left behind, which is not kept here."""
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
