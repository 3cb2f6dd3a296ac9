"""The failures of a run: which call is to blame, their evidence, their rate, and the smallest failing case."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import cast

from poolproof.references.sequences import MOST
from poolproof.reports.rows.evidence import evidence_path, shrunk_path
from poolproof.reports.rows.failures import evidence_kinds, kind_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import FAILED, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.sequences import one_by_one
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.phases import PhaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import PHASES
from poolproof.suites.plan.blocks import Block
from poolproof.suites.run.repetition import DEATHS, SECONDS, Repetition, attribute, deviates, repeat, shortest_before
from poolproof.suites.run.sandbox import Sandbox

_SMALL = 1 << 22
"""Most bytes of a call that is repeated before another: a sequence has all of its calls in memory."""


@dataclass(eq=False)
class Failures:
    """Settles, repeats and shrinks rows that deviate.

    Attributes:
        folder: Folder of the run, for evidence: at most ``most_evidence`` files of a kind.
        sandbox: Returns the sandbox of a backend.
        waive: Returns a row with waivers applied.
        evidence: Number of files of each kind.
        shrinks: Whether failures are shrunk.
        shrink_seconds: Time to shrink one failure.
        until: Monotonic deadline; no failure is repeated or shrunk after it. With a deadline, one failure per check is
            shrunk, otherwise one per check and operator.
    """

    folder: Path
    sandbox: Callable[[str], Sandbox]
    waive: Callable[[Row], Row]
    evidence: Counter[tuple[str, ...]]
    most_evidence: int
    shrinks: bool
    shrink_seconds: float
    until: float
    _kinds: set[tuple[str, ...]] = field(default_factory=set)
    _shrunk: set[tuple[str, ...]] = field(default_factory=set)

    def settle(self, question: Question, row: Row) -> tuple[Row, ...]:
        """Return the final row of a deviating question, and that of an auxiliary call that is blamed instead."""
        rows = attribute(question, row, partial(self._judge_fresh, row["backend"]))
        if rows[0]["verdict"] not in FAILED and len(rows) > 1:
            evidence_path(self.folder, row["case_id"], row["backend"]).unlink(missing_ok=True)
        for each in filter(deviates, rows):
            path = evidence_path(self.folder, each["case_id"], each["backend"])
            if path.exists():
                if not self.has_room(each):
                    path.unlink()
                self.evidence.update(evidence_kinds(each))
        return rows

    def has_room(self, row: Row) -> bool:
        """Tell whether the run needs evidence of a row."""
        check, kind = evidence_kinds(row)
        return self.evidence[check] < self.most_evidence or not self.evidence[kind]

    def is_new(self, row: Row, waiting: Iterable[Row]) -> bool:
        """Tell whether a failure is the first of its kind, or the first to be shrunk for its check."""
        waiting = list(waiting)
        if kind_of(row) not in self._kinds.union(map(kind_of, waiting)):
            return True
        return self.shrinks and self._claim_of(row) not in self._shrunk.union(map(self._claim_of, waiting))

    def examine(self, block: Block, question: Question, row: Row, earlier: Sequence[Question] = ()) -> None:
        """Add to the row of a new failure its rate, and the smallest failing case.

        If it never fails alone, the shortest failing sequence of ``earlier`` calls of the block is added instead.
        """
        again = self.repeat(question, row)
        if self.shrinks and again.rows and not again.failures and isinstance(question, CaseQuestion):
            self._add_sequence(question.case, row, earlier)
        elif self.shrinks and self._claim_of(row) not in self._shrunk:
            self._shrink(block, question, row, again)

    def repeat(self, question: Question, row: Row) -> Repetition:
        """Repeat the first failure of its kind, and add its rate to its row."""
        if kind_of(row) in self._kinds:
            return Repetition()
        self._kinds.add(kind_of(row))
        again = repeat(question, partial(self._alone, row["backend"], row["verdict"]), min(SECONDS, self._left))
        row |= again.columns
        return again

    def _shrink(self, block: Block, question: Question, row: Row, again: Repetition) -> None:
        """Add the columns of the smallest question with the same failure and rate, if the failure ever repeats.

        It is repeated for its evidence and its rate.
        """
        backend, case_id = row["backend"], row["case_id"]

        def still_fails(candidate: Question) -> bool:
            (other,) = map(self.waive, self.sandbox(backend).judge([candidate]))
            return _fails_like(row, attribute(candidate, other, partial(self._judge_fresh, backend))[0])

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

    def _add_sequence(self, case: Case, row: Row, earlier: Sequence[Question]) -> None:
        """Add the shortest sequence of earlier calls after which a case's call fails, each time in a fresh process."""
        cases = [each.case for each in earlier if isinstance(each, CaseQuestion)]
        small = [each for each in cases if each.memory_bytes() < _SMALL][1 - MOST :]

        def ask(calls: Question) -> Row:
            judged = self._judge_fresh(row["backend"], calls)
            is_alike = deviates(judged) and f" of call {len(cast(PhaseQuestion, calls).cases) - 1}" in judged["reason"]
            return judged if is_alike else judged | {"verdict": str(Verdict.CONFORMS)}

        def behind(before: Sequence[Case]) -> PhaseQuestion:
            return PhaseQuestion.of_sequence(one_by_one((*before, case)), PHASES, row["block"])

        seconds = min(self.shrink_seconds, self._left)
        before = shortest_before(small, lambda cases: deviates(ask(behind(cases))), time.monotonic() + seconds)
        repeated = repeat(behind(before), ask, min(SECONDS, self._left)) if before else Repetition()
        if repeated.failures:
            reason = f"conforms on its own, fails after {count_of(len(before), 'other call')} of its block"
            row |= {"shrunk": behind(before).to_line(), **repeated.columns}
            row["shrunk_reason"] = f"{reason}: {repeated.failures[0]['reason']}"

    def _alone(self, backend: str, ending: str, question: Question) -> Row:
        """Judge a question, and its auxiliary calls, each in a fresh process.

        If it dies the same way, it is not attributed again: each repeat of a hang costs a full timeout.
        """
        row = self._judge_fresh(backend, question)
        if row["verdict"] == ending in DEATHS:
            return row
        return attribute(question, row, partial(self._judge_fresh, backend))[0]

    def _judge_fresh(self, backend: str, question: Question) -> Row:
        return self.waive(self.sandbox(backend).judge_alone(question))

    def _claim_of(self, row: Row) -> tuple[str, ...]:
        """Return the key of failures to shrink once: a smaller case must violate the first check only."""
        operator = row["operator"] if self.until == inf else ""
        return row["backend"], operator, row["verdict"], *row["checks_violated"][:1]

    @property
    def _left(self) -> float:
        return self.until - time.monotonic()


def _fails_like(row: Row, other: Row) -> bool:
    """Tell whether another row has a failure's verdict, and violates at least its first check."""
    return other["verdict"] == row["verdict"] and set(row["checks_violated"][:1]) <= set(other["checks_violated"])
