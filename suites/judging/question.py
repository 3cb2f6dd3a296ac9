"""Questions to a backend: about a case, a low-level call, a way through the phases, or how a kernel adds.

Runs, replays, probes and hunts know no more of a question than stands here. A question that its backend did not
survive gets a row like any other, with a finding.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from poolproof.backends.base import Backend
from poolproof.reports.rows.checks import SANITIZER, SURVIVAL
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


class Question(ABC):
    """A question: it judges itself where the backend is, and describes itself if the backend dies of it.

    ``block`` is the id of the part of a plan that it belongs to. The defaults are those of a question that makes one
    call in the usual time and leaves no evidence.
    """

    aspect: Aspect
    block: str
    evidence: EvidenceFolder | None = None
    """Where a violation leaves evidence; None for kinds that leave none."""

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend on the content alone."""
        return hashlib.sha256(self.to_line().encode()).hexdigest()[:12]

    @property
    def built_for(self) -> str:
        """The dtype of its calls, where backends are built for each."""
        return ""

    @property
    def timeout_scale(self) -> float:
        """How many times the usual time limit the answer may take."""
        return 1.0

    @abstractmethod
    def to_line(self) -> str:
        """Write the line of JSON that identifies the question on disk while it is being answered."""

    @abstractmethod
    def describe(self) -> Row:
        """Return the columns that follow from the question alone."""

    def _described(self, operator: str, dtype: str = "", index_dtype: str = "", shape: Sequence[int] = ()) -> Row:
        """Return the columns that every question has."""
        return {
            "case_id": self.id,
            "case": self.to_line(),
            "block": self.block,
            "aspect": self.aspect.id,
            "operator": operator,
            "dtype": dtype,
            "index_dtype": index_dtype,
            "shape": "x".join(map(str, shape)),
        }

    def describe_data(self) -> Row:
        """Return the columns that follow from the data of its call, where nobody is left who has them."""
        return {}

    @abstractmethod
    def judge(self, backend: Backend) -> Row:
        """Return the row; whatever the implementation does short of dying becomes a verdict."""

    def expected_checks(self) -> tuple[str, ...]:
        """List the checks that are sure to judge a conforming answer, whatever the data; there may be more."""
        return ()

    def auxiliary_calls(self) -> tuple[Question, ...]:
        """Make a question of each call besides its own that judging it makes."""
        return ()

    def without_auxiliary(self, ids: Collection[str]) -> Self:  # noqa: ARG002
        """Leave out the auxiliary calls of these ids."""
        return self

    def with_evidence_dir(self, evidence: EvidenceFolder) -> Self:  # noqa: ARG002
        """Leave evidence of a violation there, if the kind of question leaves any."""
        return self


def verdict(kind: Verdict, reason: str = "", findings: Sequence[Finding] = ()) -> Row:
    return {
        "verdict": str(kind),
        "reason": reason,
        "checks_violated": [finding.check for finding in findings],
        "findings": json.dumps([finding.to_record() for finding in findings]) if findings else "",
    }


def not_judged(kind: Verdict, reason: str) -> Row:
    """Return the columns of a verdict that no check has come to."""
    return verdict(kind, reason) | {"checks_judged": []}


def judged(findings: Sequence[Finding]) -> Row:
    """Return the columns of a verdict; what was seen from inside comes first, for it is why a value is wrong."""
    if not findings:
        return verdict(Verdict.CONFORMS)
    seen = [finding.mismatch.message for finding in findings[1:] if finding.check == SANITIZER]
    return verdict(Verdict.VIOLATES, "; ".join([*seen, findings[0].mismatch.message]), findings)


def not_survived(question: Question, kind: Verdict, reason: str, written: str = "") -> Row:
    """Return the row of a question that nobody is left to answer: ``kind`` says whether by a crash or a time-out.

    ``written`` says what the call had put out until then.
    """
    described = question.describe() | question.describe_data()
    row = described | verdict(kind, reason, [Finding(SURVIVAL, Mismatch(reason, got=written))])
    return row | {"checks_judged": [SURVIVAL]}
