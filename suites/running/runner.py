"""What a pytest process does with a block: have it judged, apply waivers, record rows, shrink what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from poolproof.reports.rows.evidence import evidence_path, shrunk_path
from poolproof.reports.rows.failures import failure_text, kind_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.question import Question
from poolproof.suites.running.culprit import settled
from poolproof.suites.running.interrupts import raise_lost_interrupt
from poolproof.suites.running.plans import Block
from poolproof.suites.running.repetition import Repetition, asked_again, deviates
from poolproof.suites.running.sandbox import Sandbox

SHRINK_SECONDS = 20.0
"""What one failure may usually cost to make smaller."""

MOST_EVIDENCE = 50
"""Files of evidence that a run keeps per backend, verdict and violated check; of each kind of failure at least one."""


@dataclass
class Tally:
    """What became of one block, or of what was judged of several."""

    aspects: Counter[str] = field(default_factory=Counter)
    """How many rows there are of each aspect."""
    failures: list[Row] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.aspects.total()

    def add(self, row: Row) -> None:
        self.aspects[row["aspect"]] += 1
        if row["verdict"] in FAILED:
            self.failures.append(row)

    def add_all(self, other: Tally) -> None:
        """What became of another part of the plan, too."""
        self.aspects += other.aspects
        self.failures += other.failures

    def text(self, most: int = 3) -> str:
        """The failures for a person: each with its cause and the line that reruns it."""
        shown = "\n\n".join(failure_text(row) for row in self.failures[:most])
        more = len(self.failures) - most
        return f"{len(self.failures)} of {self.rows} cases failed\n\n{shown}" + (
            f"\n\nand {more} more" if more > 0 else ""
        )


class Runner:
    """Judges blocks and single cases on any backend, one sandbox each, until closed.

    ``folder`` is that of the run, where violations leave evidence, ``most_evidence`` files for each kind of them.
    ``waive`` gives a row as it stands once accepted deviations are; ``record`` takes every finished row;
    ``already_judged`` holds (block, case id) of cases that an interrupted run has rows for, ``already_led_to``
    (backend, case id) of calls outside its blocks. ``loaded`` are sandboxes in which a backend is loaded already, by
    its name. ``shrink_seconds`` is what one failure may cost to make smaller.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        waive: Callable[[Row], Row],
        record: Callable[[Row], None],
        timeout: float,
        shrinks: bool,
        already_judged: frozenset[tuple[str, str]] = frozenset(),
        already_led_to: frozenset[tuple[str, str]] = frozenset(),
        most_evidence: int = MOST_EVIDENCE,
        loaded: Mapping[str, Sandbox] | None = None,
        shrink_seconds: float = SHRINK_SECONDS,
    ) -> None:
        self._folder = folder
        self._scratch = folder / "processes"
        self._scratch.mkdir(exist_ok=True)
        self._name = name
        self._waive = waive
        self._record = record
        self._timeout = timeout
        self._shrinks = shrinks
        self._shrink_seconds = shrink_seconds
        self._already_judged = already_judged
        self._most_evidence = most_evidence
        self._evidence: Counter[tuple[str, ...]] = Counter()
        self._sandboxes: dict[str, Sandbox] = {}
        for backend, sandbox in (loaded or {}).items():
            sandbox.take(self._scratch, self._name_of(backend), timeout, self._wants_evidence)
            self._sandboxes[backend] = sandbox
        self._shrunk: set[tuple[str, ...]] = set()
        self._kinds: set[tuple[str, ...]] = set()
        self._led_to = set(already_led_to)

    def leave_out(self, judged: Iterable[tuple[str, str]]) -> None:
        """Judge no more of these (block, case id): they have rows."""
        self._already_judged |= frozenset(judged)

    def judge(self, block: Block, start: int = 0, stop: int | None = None) -> Tally:
        """Judge every case of the block, or those from ``start`` to ``stop`` of its `first`; all rows are recorded,
        failures with the smallest case that shows them.

        Rows are recorded as they come but for the first of each kind that fails and the first that breaks a claim:
        those wait until the block is judged, to be asked again and made smaller. An interruption costs what would be
        learned of them, never the row; after the death of this very process a resumed run judges again whatever has no
        row.
        """
        questions = self._not_yet_judged(block, start, stop)
        tally = Tally()
        waiting: list[tuple[Question, Row]] = []
        try:
            judged = self._rows(block.subject.backend, questions)
            for question, (row, *others) in zip(questions, judged, strict=True):
                raise_lost_interrupt()
                for other in others:
                    tally.add(other)
                    self._record_once(other)
                tally.add(row)
                if row["verdict"] in FAILED and self._is_worth_a_look(row, waiting):
                    waiting.append((question, row))
                else:
                    self._record(row)
            while waiting:
                question, row = waiting[0]
                again = self._ask_again(question, row)
                if self._shrinks and _claim_of(row) not in self._shrunk:
                    self._make_smaller(block, question, row, again)
                del waiting[0]
                self._record(row)
        finally:
            for _, row in waiting:
                self._record(row)
        return tally

    def _not_yet_judged(self, block: Block, start: int, stop: int | None) -> Sequence[Question]:
        questions = block.questions() if stop is None else block.first(stop)[start:]
        name = block.id
        if not self._already_judged:
            return questions  # whose ids are hashes that cost as much as drawing them
        return [asked for asked in questions if (name, asked.id) not in self._already_judged]

    def judge_one(self, question: Question, backend: str) -> tuple[Row, ...]:
        """Judge and record a single question; its row, and that of another call that is to blame instead."""
        ((row, *others),) = self._rows(backend, [question])
        if row["verdict"] in FAILED:
            self._ask_again(question, row)
        self._record(row)
        for other in others:
            self._record_once(other)
        return row, *others

    def judge_further(self, question: Question, backend: str) -> Row:
        """Judge and record a question that nobody planned, once; its row."""
        ((row, *others),) = self._rows(backend, [question])
        self._record(row)
        for other in others:
            self._record_once(other)
        return row

    def _is_worth_a_look(self, row: Row, waiting: Iterable[tuple[Question, Row]]) -> bool:
        """Whether a failed row is the first of its kind, or may be made smaller and none that waits is to be."""
        if kind_of(row) not in {*self._kinds, *(kind_of(other) for _, other in waiting)}:
            return True
        return self._shrinks and _claim_of(row) not in {*self._shrunk, *(_claim_of(other) for _, other in waiting)}

    def _record_once(self, led_to: Row) -> None:
        """Record the row of a call that several questions may have led to."""
        key = led_to["backend"], led_to["case_id"]
        if key not in self._led_to:
            self._record(led_to)
        self._led_to.add(key)

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def _rows(self, backend: str, questions: Sequence[Question]) -> Iterable[tuple[Row, ...]]:
        """Per question its row and that of another call that is to blame instead; violations leave evidence."""
        evidence = EvidenceFolder(self._folder, backend)
        for rows in self._judged(backend, [asked.with_evidence_dir(evidence) for asked in questions]):
            if rows[0]["verdict"] not in FAILED and len(rows) > 1:
                evidence_path(self._folder, rows[0]["case_id"], backend).unlink(missing_ok=True)
            for row in rows:
                evidence.write_unfinished(row)
                self._limit_evidence(row)
            yield rows

    def _judged(self, backend: str, questions: Sequence[Question]) -> Iterable[tuple[Row, ...]]:
        rows = map(self._waive, self._sandbox(backend).judge(questions))
        ask = partial(self._first, backend)
        return (settled(asked, row, ask) for asked, row in zip(questions, rows, strict=True))

    def _first(self, backend: str, question: Question) -> Row:
        """The row of a question that is the first to be put to its process."""
        return self._waive(self._sandbox(backend).judge_alone(question))

    def _wants_evidence(self, row: Row) -> bool:
        """Whether the run has not enough evidence of what the row, not waived yet, will stand for."""
        return self._has_room(self._waive(row))

    def _has_room(self, row: Row) -> bool:
        check, kind = _evidence_kinds(row)
        return self._evidence[check] < self._most_evidence or not self._evidence[kind]

    def _limit_evidence(self, row: Row) -> None:
        """Count the evidence of the row; remove it where the run has enough of what the row came to stand for."""
        if not deviates(row):
            return
        path = evidence_path(self._folder, row["case_id"], row["backend"])
        if not path.exists():
            return
        if not self._has_room(row):
            path.unlink()
        self._evidence.update(_evidence_kinds(row))

    def _sandbox(self, backend: str) -> Sandbox:
        if backend not in self._sandboxes:
            name = self._name_of(backend)
            self._sandboxes[backend] = Sandbox(backend, self._scratch, name, self._timeout, self._wants_evidence)
        return self._sandboxes[backend]

    def _name_of(self, backend: str) -> str:
        """The name of a sandbox, of which files are made."""
        return f"{self._name}-{backend}".replace("/", "_").replace(":", "_")

    def _ask_again(self, question: Question, row: Row) -> Repetition:
        """Find out whether a failure repeats, and add to its row how often, if it is the first of its kind."""
        if kind_of(row) in self._kinds:
            return Repetition()
        self._kinds.add(kind_of(row))
        again = asked_again(question, partial(self._alone, row["backend"]))
        row |= again.columns
        return again

    def _alone(self, backend: str, question: Question) -> Row:
        """The row of a question in processes of its own, and of the calls beside it in others."""
        ask = partial(self._first, backend)
        return settled(question, ask(question), ask)[0]

    def _make_smaller(self, block: Block, question: Question, row: Row, again: Repetition) -> None:
        """Add the columns with the smallest question that fails alike, once it was seen to fail as often.

        What does not fail ``again`` at all is left as it is: nothing smaller could be told from it.
        """

        def still_fails(asked: Question) -> bool:
            ((other, *_),) = self._judged(row["backend"], [asked])
            return _fails_like(row, other)

        if again.rows and not again.failures:
            return
        smaller = block.smaller(question, still_fails, self._shrink_seconds)
        if smaller is not None:
            self._confirm(row, smaller, again)

    def _confirm(self, row: Row, smaller: Question, again: Repetition) -> None:
        """Ask a smaller question once more, for its evidence and for whether it fails as often as the row's."""
        evidence = EvidenceFolder(self._folder, row["backend"], shrunk_from=row["case_id"])
        repeated = asked_again(smaller.with_evidence_dir(evidence), partial(self._alone, row["backend"]))
        alike = [other for other in repeated.failures if _fails_like(row, other)]
        if not alike or not repeated.fails_as_often_as(again):
            shrunk_path(self._folder, row["case_id"], row["backend"]).unlink(missing_ok=True)
            return
        evidence.write_unfinished(alike[0])
        self._shrunk.add(_claim_of(row))
        row |= {"shrunk": alike[0]["case"], "shrunk_reason": alike[0]["reason"], **repeated.columns}


def _evidence_kinds(row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What evidence of a failed row is counted under: its backend, verdict and first violated check; its kind."""
    return (row["backend"], row["verdict"], *row["checks_violated"][:1]), kind_of(row)


def _fails_like(row: Row, other: Row) -> bool:
    """Whether another row ended as a failed one did, and breaks at least the first of its claims."""
    return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(other["checks_violated"])


def _claim_of(row: Row) -> tuple[str, ...]:
    """What a smaller case is sought for once: it has to break the first of the violated checks, and no more."""
    return row["backend"], row["operator"], row["verdict"], *row["checks_violated"][:1]
