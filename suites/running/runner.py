"""What a pytest process does with a block: have it judged, apply waivers, record rows, shrink what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from poolproof.reports.rows.evidence import evidence_path
from poolproof.reports.rows.failures import kind_of, replay_line, what_failed
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.judging.asked import Asked
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.running.culprit import settled
from poolproof.suites.running.interrupts import raise_lost_interrupt
from poolproof.suites.running.plans import Block
from poolproof.suites.running.sandbox import Sandbox

SHRINK_SECONDS = 20.0
"""What one failure may cost to make smaller."""

MOST_EVIDENCE = 50
"""Files of evidence that a run keeps per backend, verdict and violated check; of each kind of failure at least one."""


@dataclass
class Tally:
    """What became of one block."""

    rows: int = 0
    failures: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows += 1
        if row["verdict"] in FAILED:
            self.failures.append(row)

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
    ``already_judged`` holds (block, case id) of cases that an interrupted run has rows for. ``loaded`` are sandboxes
    in which a backend is loaded already, by its name.
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
        most_evidence: int = MOST_EVIDENCE,
        loaded: Mapping[str, Sandbox] | None = None,
    ) -> None:
        self._folder = folder
        self._scratch = folder / "processes"
        self._scratch.mkdir(exist_ok=True)
        self._name = name
        self._waive = waive
        self._record = record
        self._timeout = timeout
        self._shrinks = shrinks
        self._already_judged = already_judged
        self._most_evidence = most_evidence
        self._evidence: Counter[tuple[str, ...]] = Counter()
        self._sandboxes: dict[str, Sandbox] = {}
        for backend, sandbox in (loaded or {}).items():
            sandbox.take(self._scratch, self._name_of(backend), timeout)
            self._sandboxes[backend] = sandbox
        self._shrunk: set[tuple[str, ...]] = set()
        self._led_to: set[tuple[str, str]] = set()

    def judge(self, block: Block) -> Tally:
        """Judge every case of the block; all rows are recorded, failures with the smallest case that shows them.

        Rows are recorded as they come but for the first that breaks a claim: those wait for their smaller cases,
        which are looked for once the block is judged. An interruption costs the smaller case, never the row; after
        the death of this very process a resumed run judges again whatever has no row.
        """
        questions = [asked for asked in block.questions() if (block.id, asked.id) not in self._already_judged]
        tally = Tally()
        first: dict[tuple[str, ...], tuple[Asked, Row]] = {}
        try:
            judged = self._rows(block.subject.backend, questions)
            for question, (row, *others) in zip(questions, judged, strict=True):
                raise_lost_interrupt()
                for other in others:
                    tally.add(other)
                    self._record_once(other)
                tally.add(row)
                if row["verdict"] in FAILED and self._shrinks and _claim_of(row) not in (*first, *self._shrunk):
                    first[_claim_of(row)] = question, row
                else:
                    self._record(row)
            for claim, (question, row) in list(first.items()):
                self._make_smaller(block, question, row)
                del first[claim]
                self._record(row)
        finally:
            for _, row in first.values():
                self._record(row)
        return tally

    def judge_one(self, question: Asked, backend: str) -> tuple[Row, ...]:
        """Judge and record a single question; its row, and that of another call that is to blame instead."""
        ((row, *others),) = self._rows(backend, [question])
        self._record(row)
        for other in others:
            self._record_once(other)
        return row, *others

    def _record_once(self, led_to: Row) -> None:
        """Record the row of a call that several questions may have led to."""
        key = led_to["backend"], led_to["case_id"]
        if key not in self._led_to:
            self._record(led_to)
        self._led_to.add(key)

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def _rows(self, backend: str, questions: Sequence[Asked]) -> Iterable[tuple[Row, ...]]:
        """Per question its row and that of another call that is to blame instead; violations leave evidence."""
        evidence = EvidenceFolder(self._folder, backend)
        for rows in self._judged(backend, [asked.leaving(evidence) for asked in questions]):
            if rows[0]["verdict"] not in FAILED and len(rows) > 1:
                evidence_path(self._folder, rows[0]["case_id"], backend).unlink(missing_ok=True)
            for row in rows:
                evidence.put_unfinished(row)
                self._limit_evidence(row)
            yield rows

    def _judged(self, backend: str, questions: Sequence[Asked]) -> Iterable[tuple[Row, ...]]:
        sandbox = self._sandbox(backend)

        def ask(asked: Asked) -> Row:
            return self._waive(sandbox.judge_alone(asked))

        rows = map(self._waive, sandbox.judge(questions))
        return (settled(asked, row, ask) for asked, row in zip(questions, rows, strict=True))

    def _limit_evidence(self, row: Row) -> None:
        """Remove the evidence of the row where the run has enough of its kind."""
        path = evidence_path(self._folder, row["case_id"], row["backend"])
        if not path.exists():
            return
        check, kind = (row["backend"], row["verdict"], *row["checks_violated"][:1]), kind_of(row)
        if self._evidence[check] >= self._most_evidence and self._evidence[kind]:
            path.unlink()
        self._evidence.update((check, kind))

    def _sandbox(self, backend: str) -> Sandbox:
        if backend not in self._sandboxes:
            self._sandboxes[backend] = Sandbox(backend, self._scratch, self._name_of(backend), self._timeout)
        return self._sandboxes[backend]

    def _name_of(self, backend: str) -> str:
        """The name of a sandbox, of which files are made."""
        return f"{self._name}-{backend}".replace("/", "_").replace(":", "_")

    def _make_smaller(self, block: Block, question: Asked, row: Row) -> None:
        """Add the column with the smallest question that fails alike, and ask that once more for its evidence."""

        def still_fails(asked: Asked) -> bool:
            ((other, *_),) = self._judged(row["backend"], [asked])
            return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(
                other["checks_violated"]
            )

        smaller = block.smaller(question, still_fails, SHRINK_SECONDS)
        if smaller is not None:
            self._shrunk.add(_claim_of(row))
            row["shrunk"] = smaller.describe()["case"]
            evidence = EvidenceFolder(self._folder, row["backend"], shrunk_from=row["case_id"])
            for other, *_ in self._judged(row["backend"], [smaller.leaving(evidence)]):
                evidence.put_unfinished(other)


def _claim_of(row: Row) -> tuple[str, ...]:
    """What a smaller case is sought for once: it has to break the first of the violated checks, and no more."""
    return row["backend"], row["operator"], row["verdict"], *row["checks_violated"][:1]


def failure_text(row: Row) -> str:
    """One failed row in a few lines: what, why, and the line that reruns it."""
    about = f"{row['backend']} {row['operator']} {row['dtype']}, case {row['case_id']}"
    title = f"{row['verdict']}: {what_failed(row)} ({about})"
    return f"{title}\n  {row['reason']}\n  {replay_line(row)}"
