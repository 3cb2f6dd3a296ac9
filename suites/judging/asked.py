"""What a question to a backend is, whether about a case, a low-level call or the way a kernel adds.

Whoever puts questions (a run, a replay, a probe, a hunt) knows no more of them than stands here. It also says what
becomes of a question that its backend did not survive: a row like any other, with a finding.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from poolproof.backends.base import Backend
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch


@dataclass(frozen=True)
class Aspect:
    """One side of conformance: what is claimed, and the ids of the checks that hold it against an answer.

    ``repeats`` is what the determinism check may spend on a question that says nothing else. ``standards`` says
    whether the standards of others are held against the outputs too, which costs.
    """

    id: str
    claim: str
    checks: tuple[str, ...]
    repeats: int = 1
    standards: bool = False

    @property
    def alone(self) -> Aspect:
        """Without what only a plan needs: what goes with every question, to processes that know no plan."""
        return Aspect(self.id, self.claim, self.checks, self.repeats, self.standards)


@dataclass(frozen=True)
class Company:
    """The ``others`` that a question calls besides its own call, each as a question of its own.

    ``without`` is the question itself, which leaves out those of some ids.
    """

    others: tuple[Asked, ...]
    without: Callable[[Collection[str]], Asked]


class Asked(Protocol):
    """A question: it judges itself where the backend is, and describes itself if the backend dies of it."""

    @property
    def id(self) -> str:
        """A hash of what is asked."""

    @property
    def aspect(self) -> Aspect: ...

    @property
    def block(self) -> str:
        """The id of the part of a plan that it belongs to."""

    @property
    def evidence(self) -> EvidenceFolder | None:
        """Where a violation leaves evidence; None for kinds that leave none."""

    @property
    def patience(self) -> float:
        """How many times the usual time limit the answer may take."""

    def to_line(self) -> str:
        """One line of JSON, which identifies the question on disk while it is being answered."""

    def describe(self) -> Row:
        """The columns that follow from the question alone."""

    def owed_checks(self) -> tuple[str, ...]:
        """The checks that judge it, as follows from the question alone, if it conforms; there may be more."""

    def judge(self, backend: Backend) -> Row:
        """The row; whatever the implementation does short of dying becomes a verdict."""

    def company(self) -> Company | None:
        """What is called besides its own call, None for most questions."""

    def leaving(self, evidence: EvidenceFolder) -> Self:
        """The same question, which leaves evidence of a violation there if its kind leaves any."""


def verdict(kind: Verdict, reason: str = "", findings: Sequence[Finding] = ()) -> Row:
    """The columns of a verdict."""
    return {
        "verdict": str(kind),
        "reason": reason,
        "checks_violated": [finding.check for finding in findings],
        "findings": json.dumps([finding.to_record() for finding in findings]) if findings else "",
    }


def not_survived(question: Asked, kind: Verdict, reason: str, written: str = "") -> Row:
    """The row of a question that nobody is left to answer: ``kind`` says whether by a crash or a time-out.

    ``written`` says what the call had put out until then.
    """
    row = question.describe() | verdict(kind, reason, [Finding(SURVIVAL, Mismatch(reason, got=written))])
    return row | {"checks_judged": [SURVIVAL], "judged_at": time.time()}
