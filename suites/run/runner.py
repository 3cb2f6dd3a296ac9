"""The runner of a process: it judges blocks, applies waivers, records rows and shrinks failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path

from poolproof.reports.rows.checks import NEIGHBOURS
from poolproof.reports.rows.evidence import evidence_path, shrunk_path
from poolproof.reports.rows.failures import (
    Progress,
    evidence_kinds,
    failure_text,
    kind_of,
    progress_of,
    properties_of,
)
from poolproof.reports.rows.io_errors import CannotGoOn
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import safe
from poolproof.reports.rows.verdicts import FAILED, SKIPPED, Verdict
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.blocks import Block
from poolproof.suites.run.interrupts import raise_lost_interrupt
from poolproof.suites.run.repetition import DEATHS, SECONDS, Repetition, attribute, deviates, repeat

SHRINK_SECONDS = 20.0
"""Seconds for which one failure is shrunk."""

MOST_ERRORS = 10
"""Cases that may all end in the same error of their adapter, with nothing else judged, before a session stops."""

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

    ``folder`` is that of the run, where failures leave evidence, at most ``most_evidence`` files of a kind. ``waive``
    applies waivers to a row; ``record`` takes every finished row. An interrupted run has rows for ``already_judged``,
    (block, case id), and ``already_unplanned``, (backend, case id) of calls outside its blocks; ``already_left`` counts
    its evidence, by `evidence_kinds`. ``loaded`` are sandboxes with a loaded backend, by its name. After ``until``, a
    monotonic time, no case is begun and no failure is shrunk. A failure is shrunk for ``shrink_seconds``; of a session
    with such a time one of each check, of others one for each operator.
    Unless it ``keeps_going``, `CannotGoOn` where an adapter does nothing but raise.
    """

    folder: Path
    name: str
    waive: Callable[[Row], Row]
    record: Callable[[Row], None]
    timeout: float
    shrinks: bool
    already_judged: frozenset[tuple[str, str]] = frozenset()
    already_unplanned: frozenset[tuple[str, str]] = frozenset()
    already_left: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    most_evidence: int = MOST_EVIDENCE
    loaded: Mapping[str, Sandbox] = field(default_factory=dict)
    shrink_seconds: float = SHRINK_SECONDS
    keeps_going: bool = True
    until: float = inf

    def __post_init__(self) -> None:
        self._scratch = self.folder / "processes"
        self._scratch.mkdir(exist_ok=True)
        self._sandboxes = dict(self.loaded)
        for backend, sandbox in self._sandboxes.items():
            sandbox.take(self._scratch, self._file_name(backend), self.timeout, self.until)
        self._evidence = Counter(self.already_left)
        self._shrunk: set[tuple[str, ...]] = set()
        self._kinds: set[tuple[str, ...]] = set()
        self._ends: Counter[str] = Counter()
        self._recorded_unplanned = set(self.already_unplanned)

    def judge(self, block: Block, part: Sequence[Question] | None = None) -> BlockResult:
        """Judge the cases of a block, or a ``part`` of them, and record all rows.

        Rows are recorded as they come, but for the first failure of each kind and the first that breaks a claim: those
        wait until the block is judged, to be repeated and shrunk. An interruption costs their repetition, never the
        row. If this process dies, a resumed run judges again whatever has no row.
        """
        questions = block.questions() if part is None else part
        if self.already_judged:  # else no ids are asked for: they are hashes, which cost as much as drawing
            name = block.row_block
            questions = [asked for asked in questions if (name, asked.id) not in self.already_judged]
        result = BlockResult()
        waiting: list[tuple[Question, Row]] = []
        try:
            judged = self._rows(block.backend, questions)
            for question in questions:
                if self._left <= 0.0:
                    result.is_cut = True
                    break
                row, *others = next(judged)
                raise_lost_interrupt()
                self._record_once(others)
                for each in (*others, row):
                    result.add(each)
                if row["verdict"] in FAILED and self._is_new(row, waiting):
                    waiting.append((question, row))
                else:
                    self._keep(row)
            judged.close()
            while waiting:
                question, row = waiting[0]
                again = self._repeat_first(question, row)
                if self.shrinks and self._claim_of(row) not in self._shrunk:
                    self._shrink(block, question, row, again)
                del waiting[0]
                self.record(row)
        finally:
            for _, row in waiting:
                self.record(row)
        return result

    def judge_one(self, question: Question, backend: str, repeats: bool = True) -> tuple[Row, ...]:
        """Judge and record a single question, and how often it fails, unless ``repeats`` is false.

        Return its row, and that of an auxiliary call that is blamed instead.
        """
        ((row, *others),) = self._rows(backend, [question])
        if repeats and row["verdict"] in FAILED:
            self._repeat_first(question, row)
        self._keep(row)
        self._record_once(others)
        return row, *others

    def _keep(self, row: Row) -> None:
        """Record a row; `CannotGoOn` at so many of adapters that raise in one place, and none of another end."""
        self.record(row)
        if self.keeps_going or row["verdict"] in (Verdict.NOT_RUN, Verdict.NOT_SUPPORTED):
            return
        place = row["reason"].rpartition(" (")[2] if row["verdict"] == Verdict.ADAPTER_ERROR else ""
        self._ends[place] += 1
        if len(self._ends) == 1 and place and self._ends[place] == MOST_ERRORS:
            what = f"{row['backend']}: {MOST_ERRORS} cases, and nothing else, ended alike: {row['reason']}"
            raise CannotGoOn(f"{what}; mend the adapter and begin again, or have all cases asked by --keep-going")

    def _is_new(self, row: Row, waiting: Iterable[tuple[Question, Row]]) -> bool:
        """Tell whether a failure is the first of its kind, or the first to be shrunk for its check."""
        kinds = self._kinds | {kind_of(other) for _, other in waiting}
        claims = self._shrunk | {self._claim_of(other) for _, other in waiting}
        return kind_of(row) not in kinds or (self.shrinks and self._claim_of(row) not in claims)

    def _record_once(self, unplanned: Iterable[Row]) -> None:
        for row in unplanned:
            key = row["backend"], row["case_id"]
            if key not in self._recorded_unplanned:
                self.record(row)
            self._recorded_unplanned.add(key)

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()
            self._record_once(self._unplanned(sandbox))

    def _rows(self, backend: str, questions: Sequence[Question]) -> Generator[tuple[Row, ...]]:
        """Yield per question its row and those of unplanned calls; failures leave evidence."""
        sandbox = self._sandbox(backend)
        labels = sandbox.labels
        evidence = EvidenceFolder(self.folder, backend, wants=lambda row: self._wants_evidence(row | labels))
        for rows in self._judged(backend, [asked.with_evidence_dir(evidence) for asked in questions]):
            if rows[0]["verdict"] not in FAILED and len(rows) > 1:
                evidence_path(self.folder, rows[0]["case_id"], backend).unlink(missing_ok=True)
            for row in rows:
                self._limit_evidence(row)
            yield *rows, *self._unplanned(sandbox)

    def _unplanned(self, sandbox: Sandbox) -> list[Row]:
        """Take the rows of unplanned calls that came meanwhile."""
        rows = list(map(self.waive, sandbox.unplanned))
        sandbox.unplanned.clear()
        return rows

    def _judged(self, backend: str, questions: Sequence[Question]) -> Iterable[tuple[Row, ...]]:
        rows = map(self.waive, self._sandbox(backend).judge(questions))
        ask = partial(self._judge_fresh, backend)
        return (attribute(asked, row, ask) for asked, row in zip(questions, rows, strict=True))

    def _judge_fresh(self, backend: str, question: Question) -> Row:
        return self.waive(self._sandbox(backend).judge_alone(question))

    def _wants_evidence(self, row: Row) -> bool:
        is_recorded = row["aspect"] == NEIGHBOURS and (row["backend"], row["case_id"]) in self._recorded_unplanned
        return not is_recorded and self._has_room(self.waive(row))

    def _has_room(self, row: Row) -> bool:
        """Tell whether the run needs evidence of a row."""
        check, kind = evidence_kinds(row)
        return self._evidence[check] < self.most_evidence or not self._evidence[kind]

    def _limit_evidence(self, row: Row) -> None:
        """Count the evidence of a row; remove it if the run has enough of its final kind."""
        path = evidence_path(self.folder, row["case_id"], row["backend"])
        if deviates(row) and path.exists():
            if not self._has_room(row):
                path.unlink()
            self._evidence.update(evidence_kinds(row))

    def _sandbox(self, backend: str) -> Sandbox:
        if backend not in self._sandboxes:
            name = self._file_name(backend)
            self._sandboxes[backend] = Sandbox(backend, self._scratch, name, self.timeout, self.until)
        return self._sandboxes[backend]

    @property
    def _left(self) -> float:
        return self.until - time.monotonic()

    def _claim_of(self, row: Row) -> tuple[str, ...]:
        """Return what is shrunk once: a smaller case has to violate the first of the checks, no more."""
        operator = row["operator"] if self.until == inf else ""
        return row["backend"], operator, row["verdict"], *row["checks_violated"][:1]

    def _file_name(self, backend: str) -> str:
        return f"{self.name}-{backend}".replace("/", "_").replace(":", "_")

    def _repeat_first(self, question: Question, row: Row) -> Repetition:
        """Repeat the first failure of its kind, and add to its row how often it fails."""
        if kind_of(row) in self._kinds:
            return Repetition()
        self._kinds.add(kind_of(row))
        again = repeat(question, partial(self._alone, row["backend"], row["verdict"]), min(SECONDS, self._left))
        row |= again.columns
        return again

    def _alone(self, backend: str, ending: str, question: Question) -> Row:
        """Judge a question, and its auxiliary calls, each in a fresh process.

        Where it dies as before, whose death that is was found out then: to ask again costs a hang its whole time-out.
        """
        ask = partial(self._judge_fresh, backend)
        row = ask(question)
        return row if row["verdict"] == ending in DEATHS else attribute(question, row, ask)[0]

    def _shrink(self, block: Block, question: Question, row: Row, again: Repetition) -> None:
        """Add the columns with the smallest question that fails alike and as often, if the failure ever repeats.

        It is repeated, for its evidence, and to see how often it fails.
        """
        backend, case_id = row["backend"], row["case_id"]

        def still_fails(asked: Question) -> bool:
            ((other, *_),) = self._judged(backend, [asked])
            return _fails_like(row, other)

        if self._left <= 0.0 or (again.rows and not again.failures):
            return
        smaller = block.smaller(question, still_fails, min(self.shrink_seconds, self._left))
        if smaller is None:
            return
        evidence = EvidenceFolder(self.folder, backend, shrunk_from=case_id)
        ask = partial(self._alone, backend, row["verdict"])
        repeated = repeat(smaller.with_evidence_dir(evidence), ask, min(SECONDS, self._left))
        alike = [other for other in repeated.failures if _fails_like(row, other)]
        if not alike or not repeated.fails_as_often_as(again):
            shrunk_path(self.folder, case_id, backend).unlink(missing_ok=True)
            return
        self._shrunk.add(self._claim_of(row))
        row |= {"shrunk": alike[0]["case"], "shrunk_reason": alike[0]["reason"], **repeated.columns}


def _fails_like(row: Row, other: Row) -> bool:
    """Tell whether another row has a failure's verdict, and violates at least its first check."""
    return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(other["checks_violated"])
