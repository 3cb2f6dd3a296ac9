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
"""Seconds for which one failure is shrunk."""

MOST_ERRORS = 10
"""Cases that may all end in the same error of their adapter, with nothing else judged, before a session stops."""

PROCESSES = "processes"
"""Name of the folder in that of a run that processes write to while they judge."""

MOST_EVIDENCE = 50
"""Files of evidence that a run keeps per backend, verdict and violated check; of each kind of failure at least one."""


_MOST_SHOWN = 3
"""Failures of a block that its test shows."""


@dataclass
class BlockResult:
    """The failures and the number of rows, by aspect, of a block, or of several.

    ``reasons`` counts why rows are no verdict; ``is_cut`` says that the deadline cut it off.
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
        """The most frequent reason why nothing was judged; empty if something was."""
        is_skipped = self.rows and self.reasons.total() == self.rows
        return safe(self.reasons.most_common(1)[0][0]) if is_skipped else ""

    def message(self, most: int = _MOST_SHOWN) -> str:
        """Describe the first failures, each with its cause and the line that replays it."""
        more = [f"and {len(self.failures) - most} more"] if len(self.failures) > most else []
        shown = map(failure_text, self.failures[:most])
        return "\n\n".join([f"{len(self.failures)} of {self.rows} cases failed", *shown, *more])


@dataclass(eq=False)
class Runner:
    """Judges blocks and single cases on any backend, one sandbox each, until closed.

    folder, name
        The folder of the run, and the name of this process in it.
    waive, record
        Apply waivers to a row; take a finished row.
    timeout, until
        Seconds that a case may take, and the monotonic time after which no case is begun and no failure is shrunk.
    done
        What an interrupted run has.
    loaded
        Workers with a loaded backend, by its name.
    shrinks, shrink_seconds, most_evidence
        As in `Failures`.
    keeps_going
        If false, `CannotGoOn` where an adapter does nothing but raise.
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

        Rows are recorded as they come, but for the first failure of each kind and the first that breaks a claim: those
        wait until the block is judged, to be repeated and shrunk. An interruption costs their repetition, never the
        row. If this process dies, a resumed run judges again whatever has no row.
        """
        questions = block.questions() if part is None else part
        if self.done.cases:  # else no ids are asked for: they are hashes, which cost as much as drawing
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
                question, row, others = next(judged)
                for each in (*others, row):
                    result.add(each)
                if row["verdict"] in FAILED and self._failures.is_new(row, (other for _, other, _ in waiting)):
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
        """Judge and record a single question, and how often it fails, unless ``repeats`` is false.

        Return its row, and those of auxiliary calls that are blamed instead.
        """
        ((question, row, others),) = self._rows(backend, [question])
        if repeats and row["verdict"] in FAILED:
            self._failures.repeat(question, row)
        self.keep(row)
        return row, *others

    def ask(self, question: Question, backend: str, block: Block) -> tuple[Row, ...]:
        """Judge a question of no plan, as `judge_one` does, and leave it to the caller to `keep` its row.

        A new failure is repeated, and made smaller as those of ``block`` are.
        """
        ((question, row, others),) = self._rows(backend, [question])
        if row["verdict"] in FAILED and self._failures.is_new(row, ()):
            self._failures.examine(block, question, row)
        return row, *others

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()
            self._record_unplanned(sandbox)
        for worker in self.loaded.values():
            worker.close()

    def _rows(self, backend: str, questions: Sequence[Question]) -> Generator[tuple[Question, Row, list[Row]]]:
        """Yield each question with its row, and the rows of calls that nobody planned, which are recorded."""
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
        """Record a row; `CannotGoOn` at so many of adapters that raise in one place, and none of another end."""
        self.record(row)
        if self.keeps_going or row["verdict"] in (Verdict.NOT_RUN, Verdict.NOT_SUPPORTED):
            return
        place = row["reason"].rpartition(" (")[2] if row["verdict"] == Verdict.ADAPTER_ERROR else ""
        self._ends[place] += 1
        if len(self._ends) == 1 and place and self._ends[place] == MOST_ERRORS:
            what = f"{row['backend']}: {MOST_ERRORS} cases, and nothing else, ended alike: {row['reason']}"
            raise CannotGoOn(f"{what}; mend the adapter and begin again, or have all cases asked by --keep-going")

    def _wants_evidence(self, row: Row) -> bool:
        is_recorded = row["aspect"] == NEIGHBOURS and (row["backend"], row["case_id"]) in self._recorded_unplanned
        return not is_recorded and self._failures.has_room(self.waive(row))

    def _sandbox(self, backend: str) -> Sandbox:
        if backend not in self._sandboxes:
            name = f"{self.name}-{backend}".replace("/", "_").replace(":", "_")
            loaded = self.loaded.get(backend)
            self._sandboxes[backend] = Sandbox(backend, self._scratch, name, self.timeout, self.until, loaded)
        return self._sandboxes[backend]
