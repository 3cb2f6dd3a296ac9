"""The runner of a process: it judges blocks, applies waivers and records rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from poolproof.reports.rows.checks import NEIGHBOURS
from poolproof.reports.rows.failures import Progress, failure_text, progress_of, properties_of
from poolproof.reports.rows.io_errors import CannotGoOn
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, Verdict
from poolproof.suites.isolation.worker import Worker
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.blocks import Block
from poolproof.suites.run.failures import Failures
from poolproof.suites.run.interrupts import raise_lost_interrupt
from poolproof.suites.run.repetition import deviates
from poolproof.suites.run.sandbox import Sandbox

SHRINK_SECONDS = 20.0
"""Time to shrink one failure, in seconds."""

MOST_ERRORS = 10
"""A session stops if this many cases end in the same error of their adapter, and nothing else was judged."""

PROCESSES = "processes"
"""Subfolder of a run that processes write to while they judge."""

MOST_EVIDENCE = 50
"""Most files of evidence per backend, verdict and violated check; each kind of failure has at least one."""


_MOST_SHOWN = 3
"""Most failures of a block in the message of its test."""


@dataclass
class BlockResult:
    """The failures of one or several blocks, and their number of rows by aspect.

    ``reasons`` counts the reasons of rows without a verdict; ``is_cut`` says that the deadline ended it.
    """

    aspects: Counter[str] = field(default_factory=Counter)
    failures: list[Row] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False

    @property
    def rows(self) -> int:
        return self.aspects.total()

    def add(self, row: Row) -> None:
        self.aspects[row["aspect"]] += 1
        if row["verdict"] in FAILED:
            self.failures.append(row)
        if row["verdict"] in SKIPPED:
            self.reasons[row["reason"]] += 1

    def merge(self, other: BlockResult) -> None:
        self.aspects += other.aspects
        self.failures += other.failures
        self.is_cut |= other.is_cut
        self.reasons += other.reasons

    @property
    def progress(self) -> Progress:
        return progress_of(self.aspects, self.failures)

    @property
    def properties(self) -> list[tuple[str, object]]:
        return properties_of(self.failures[:_MOST_SHOWN])

    @property
    def skipped(self) -> str:
        """The most frequent reason if nothing was judged; empty if something was."""
        is_skipped = self.rows and self.reasons.total() == self.rows
        return safe(self.reasons.most_common(1)[0][0]) if is_skipped else ""

    def message(self, most: int = _MOST_SHOWN) -> str:
        """Return the first failures as text, each with its cause and its replay line."""
        more = [f"and {len(self.failures) - most} more"] if len(self.failures) > most else []
        shown = map(failure_text, self.failures[:most])
        return "\n\n".join([f"{len(self.failures)} of {self.rows} cases failed", *shown, *more])


@dataclass(eq=False)
class Runner:
    """Judges blocks and single cases on any backend, with one sandbox each, until closed.

    Attributes:
        folder: Folder of the run.
        name: Name of this process in it.
        waive: Applies waivers to a row.
        record: Takes a finished row.
        timeout: Time limit of a case, in seconds.
        until: Monotonic deadline; no case begins and no failure is shrunk after it.
        done: Recorded cases of an interrupted run.
        loaded: Workers with a loaded backend, by its name.
        shrinks: As ``shrink_seconds`` and ``most_evidence``, see `Failures`.
        keeps_going: If false, `CannotGoOn` is raised if an adapter only raises.
    """

    folder: Path
    name: str
    waive: Callable[[Row], Row]
    record: Callable[[Row], None]
    timeout: float
    shrinks: bool
    done: Done = field(default_factory=Done)
    most_evidence: int = MOST_EVIDENCE
    loaded: Mapping[str, Worker] = field(default_factory=dict)
    shrink_seconds: float = SHRINK_SECONDS
    keeps_going: bool = True
    until: float = inf

    def __post_init__(self) -> None:
        self._scratch = self.folder / PROCESSES
        self._scratch.mkdir(exist_ok=True)
        self._sandboxes: dict[str, Sandbox] = {}
        self._ends: Counter[str] = Counter()
        self._recorded_unplanned = set(self.done.unplanned)
        self._failures = Failures(
            self.folder,
            self._sandbox,
            self.waive,
            Counter(self.done.evidence),
            self.most_evidence,
            self.shrinks,
            self.shrink_seconds,
            self.until,
        )

    def judge(self, block: Block, part: Sequence[Question] | None = None) -> BlockResult:
        """Judge the cases of a block, or a ``part`` of them, and record all rows.

        Rows are recorded at once. Only the first failure of each kind, and the first of each claim, wait for the end of
        the block, to be repeated and shrunk. An interrupt costs their repetition, never the row. If this process dies,
        a resumed run judges all cases without a row again.
        """
        questions = block.questions() if part is None else part
        if self.done.cases:  # ids are hashes, which cost as much as drawing
            name = block.row_block
            questions = [asked for asked in questions if (name, asked.id) not in self.done.cases]
        result = BlockResult()
        waiting: list[tuple[Question, Row, Sequence[Question]]] = []
        right: list[Question] = []
        try:
            judged = self._rows(block.backend, questions)
            for _ in questions:
                if time.monotonic() >= self.until:
                    result.is_cut = True
                    break
                question, row, further = next(judged)
                for each in (*further, row):
                    result.add(each)
                if row["verdict"] in FAILED and self._failures.is_new(row, (kept for _, kept, _ in waiting)):
                    waiting.append((question, row, tuple(right)))
                else:
                    self.keep(row)
                if row["verdict"] == Verdict.CONFORMS:
                    right.append(question)
            judged.close()
            while waiting:
                question, row, earlier = waiting[0]
                self._failures.examine(block, question, row, earlier)
                del waiting[0]
                self.record(row)
        finally:
            for _, row, _ in waiting:
                self.record(row)
        return result

    def judge_one(self, question: Question, backend: str, repeats: bool = True) -> tuple[Row, ...]:
        """Judge and record a single question; add its failure rate if ``repeats``.

        Return its row, and those of auxiliary calls that are blamed instead.
        """
        ((question, row, further),) = self._rows(backend, [question])
        if repeats and row["verdict"] in FAILED:
            self._failures.repeat(question, row)
        self.keep(row)
        return row, *further

    def ask(self, question: Question, backend: str, block: Block) -> tuple[Row, ...]:
        """Judge a question outside of the plan, as `judge_one`, but let the caller `keep` its row.

        A new failure is repeated, and shrunk like those of ``block``.
        """
        ((question, row, further),) = self._rows(backend, [question])
        if row["verdict"] in FAILED and self._failures.is_new(row, ()):
            self._failures.examine(block, question, row)
        return row, *further

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()
            self._record_unplanned(sandbox)
        for worker in self.loaded.values():
            worker.close()

    def _rows(self, backend: str, questions: Sequence[Question]) -> Generator[tuple[Question, Row, list[Row]]]:
        """Yield each question with its row, and the recorded rows of unplanned calls."""
        sandbox = self._sandbox(backend)
        evidence = EvidenceFolder(self.folder, backend, wants=lambda row: self._wants_evidence(row | sandbox.labels))
        asked = [question.with_evidence_dir(evidence) for question in questions]
        for question, row in zip(asked, map(self.waive, sandbox.judge(asked)), strict=True):
            final, *blamed = self._failures.settle(question, row) if deviates(row) else (row,)
            raise_lost_interrupt()
            yield question, final, self._record_unplanned(sandbox, blamed)

    def _record_unplanned(self, sandbox: Sandbox, blamed: Iterable[Row] = ()) -> list[Row]:
        """Record the rows of unplanned calls, each once in a run; return them."""
        rows = [*blamed, *map(self.waive, sandbox.unplanned)]
        sandbox.unplanned.clear()
        for row in rows:
            if (key := (row["backend"], row["case_id"])) not in self._recorded_unplanned:
                self.record(row)
                self._recorded_unplanned.add(key)
        return rows

    def keep(self, row: Row) -> None:
        """Record a row; raise `CannotGoOn` after `MOST_ERRORS` errors of one place in an adapter, and nothing else."""
        self.record(row)
        if self.keeps_going or row["verdict"] in (Verdict.NOT_RUN, Verdict.NOT_SUPPORTED):
            return
        place = row["reason"].rpartition(" (")[2] if row["verdict"] == Verdict.ADAPTER_ERROR else ""
        self._ends[place] += 1
        if len(self._ends) == 1 and place and self._ends[place] == MOST_ERRORS:
            what = f"{row['backend']}: the first {MOST_ERRORS} cases ended in the same error: {row['reason']}"
            raise CannotGoOn(f"{what}; fix the adapter and run again, or judge all cases with --keep-going")

    def _wants_evidence(self, row: Row) -> bool:
        is_recorded = row["aspect"] == NEIGHBOURS and (row["backend"], row["case_id"]) in self._recorded_unplanned
        return not is_recorded and self._failures.has_room(self.waive(row))

    def _sandbox(self, backend: str) -> Sandbox:
        if backend not in self._sandboxes:
            name = f"{self.name}-{backend}".replace("/", "_").replace(":", "_")
            loaded = self.loaded.get(backend)
            self._sandboxes[backend] = Sandbox(backend, self._scratch, name, self.timeout, self.until, loaded)
        return self._sandboxes[backend]
