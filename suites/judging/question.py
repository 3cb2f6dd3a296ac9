"""Questions to a backend: about a case, a low-level call, a scenario of the phases, or how a kernel adds.

Runs, replays, probes and searches use only this interface. A question that its backend did not survive gets a normal
row, with a finding.
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
    """One side of conformance: a claim, and the ids of the checks that judge it.

    Attributes:
        repeats: Most repetitions for the determinism check, unless a question has its own number.
        standards: Whether to judge the outputs by published standards, too, which costs time.
    """

    id: str
    claim: str
    checks: tuple[str, ...]
    repeats: int = 1
    standards: bool = False


class Question(ABC):
    """A question, which judges itself where the backend is, and describes itself if the backend dies of it.

    ``block`` is the id of its part of a plan. The defaults fit a question of one call in the usual time, without
    evidence.
    """

    aspect: Aspect
    block: str
    evidence: EvidenceFolder | None = None
    """The folder for the evidence of a violation; None for questions without evidence."""

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend only on the content."""
        return hashlib.sha256(self.to_line().encode()).hexdigest()[:12]

    @property
    def built_for(self) -> str:
        """The dtype of its calls, if backends are built per dtype."""
        return ""

    @property
    def timeout_scale(self) -> float:
        """Factor of the usual time limit of a call."""
        return 1.0

    @abstractmethod
    def to_line(self) -> str:
        """Return the JSON line that identifies the question on disk while it is judged."""

    @abstractmethod
    def describe(self) -> Row:
        """Return the columns that follow from the question alone."""

    def _described(self, operator: str, dtype: str = "", index_dtype: str = "", shape: Sequence[int] = ()) -> Row:
        """Return the columns of every question."""
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
        """Return the columns that follow from the data of its call, if the judge has died."""
        return {}

    @abstractmethod
    def judge(self, backend: Backend) -> Row:
        """Return the row; everything except death becomes a verdict."""

    def expected_checks(self) -> tuple[str, ...]:
        """Return the checks that judge a conforming answer in any case; more may follow from the data."""
        return ()

    def auxiliary_calls(self) -> tuple[Question, ...]:
        """Return a question for each further call that judging it makes."""
        return ()

    def without_auxiliary(self, ids: Collection[str]) -> Self:  # noqa: ARG002
        """Return the question without the auxiliary calls of these ids."""
        return self

    def with_evidence_dir(self, evidence: EvidenceFolder) -> Self:  # noqa: ARG002
        """Return the question with a folder for evidence, if its kind has evidence."""
        return self


def verdict(kind: Verdict, reason: str = "", findings: Sequence[Finding] = ()) -> Row:
    return {
        "verdict": str(kind),
        "reason": reason,
        "checks_violated": [finding.check for finding in findings],
        "findings": json.dumps([finding.to_record() for finding in findings]) if findings else "",
    }


def not_judged(kind: Verdict, reason: str) -> Row:
    """Return the columns of a verdict without any check."""
    return verdict(kind, reason) | {"checks_judged": []}


def judged(findings: Sequence[Finding]) -> Row:
    """Return the columns of a verdict; a sanitizer's report comes first, because it explains wrong values."""
    if not findings:
        return verdict(Verdict.CONFORMS)
    seen = [finding.mismatch.message for finding in findings[1:] if finding.check == SANITIZER]
    return verdict(Verdict.VIOLATES, "; ".join([*seen, findings[0].mismatch.message]), findings)


def not_survived(question: Question, kind: Verdict, reason: str, written: str = "") -> Row:
    """Return the row of a question that killed its process; ``kind`` is a crash or a timeout.

    ``written`` describes the call's output at that time.
    """
    described = question.describe() | question.describe_data()
    row = described | verdict(kind, reason, [Finding(SURVIVAL, Mismatch(reason, got=written))])
    return row | {"checks_judged": [SURVIVAL]}
