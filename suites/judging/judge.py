"""From one case to one row: run it, hold every check against it, state the verdict and its reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

from poolproof.backends.base import Backend, Status
from poolproof.references.standards import Standard
from poolproof.reports.rows.checks import NEIGHBOURS, REFUSAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.classes import classes_of
from poolproof.suites.cases.neighbours import companions, needs_producer, producers
from poolproof.suites.judging import owed
from poolproof.suites.judging.asked import Aspect, Company, verdict
from poolproof.suites.judging.budget import has_room_for_standards, too_large
from poolproof.suites.judging.checks import USUAL, owed_checks, run_checks
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.measure import measure_output, measure_standards
from poolproof.suites.judging.trial import NotMade, RunFailed, Trial

BY_ITSELF = Aspect(NEIGHBOURS, "a call that came before another is right by itself", USUAL)
"""What a call is held against that another call's deviation may be due to."""


@dataclass(frozen=True)
class Question:
    """A case, held against the checks of its aspect.

    ``repeats`` is how often `repeat` may repeat it where that is not the aspect's number. A violation leaves evidence
    in the folder ``evidence``, if there is one. The cases of the ids ``shunned`` are not called before it.
    """

    case: Case
    aspect: Aspect
    block: str = ""
    repeats: int | None = None
    evidence: EvidenceFolder | None = None
    shunned: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def patience(self) -> float:
        """By how much the usual time limit is stretched: a huge plane takes long to judge."""
        return 1.0 + prod(self.case.shape) // (1 << 20)

    @property
    def most_repeats(self) -> int:
        """How often the call may be repeated and its outputs kept."""
        if "repeat" not in self.aspect.checks:
            return 1
        return self.aspect.repeats if self.repeats is None else self.repeats

    def to_line(self) -> str:
        """One line of JSON, which identifies the question on disk while it is being answered."""
        return self.case.to_json()

    @property
    def own_standard(self) -> Standard | None:
        """A standard that this question is held against besides those of its aspect."""
        return None

    def describe(self) -> Row:
        return describe(self)

    def owed_checks(self) -> tuple[str, ...]:
        return (REFUSAL, *owed_checks(self.case, self.aspect.checks))

    def judge(self, backend: Backend) -> Row:
        return judge(self, backend)

    def company(self) -> Company | None:
        cases = companions(self.case) if "state" in self.aspect.checks else []
        if "round_trip" in self.aspect.checks or needs_producer(self.case):
            cases += producers(self.case)
        if not cases:
            return None
        others = tuple(Question(case, BY_ITSELF, evidence=self.evidence) for case in cases)
        return Company(others, lambda ids: replace(self, shunned=frozenset(ids)))

    def leaving(self, evidence: EvidenceFolder) -> Self:
        return replace(self, evidence=evidence)


def judge(question: Question, backend: Backend) -> Row:
    """The row of one question; whatever the implementation does short of dying becomes a verdict."""
    started = time.perf_counter()
    row = question.describe()
    case = question.case
    unsupported = owed.unsupported(backend, case.api, case.dtype, case.index_dtype) or owed.lacking(backend, case)
    left_out = too_large(case, question.most_repeats)
    if unsupported:
        row |= verdict(Verdict.NOT_SUPPORTED, unsupported)
    elif left_out:
        row |= verdict(Verdict.NOT_RUN, left_out)
    else:
        try:
            row |= _judge_supported(question, backend, row)
        except NotMade as error:
            row |= verdict(Verdict.REFUSED if error.refused else Verdict.NOT_RUN, str(error))
    row["seconds"] = time.perf_counter() - started
    row["judged_at"] = time.time()
    return row


def describe(question: Question) -> Row:
    """The columns that follow from the question alone."""
    case = question.case
    return {
        "case_id": case.id,
        "case": case.to_json(),
        "block": question.block,
        "aspect": question.aspect.id,
        "operator": case.operator,
        "dtype": case.dtype,
        "index_dtype": case.index_dtype,
        "shape": _list_text(case.shape),
        "batched": len(case.shape) == case.api.spatial_rank + 2,
        "planes": case.planes,
        "elements": prod(case.shape),
        "windows": prod(case.pooled_shape),
        "kernel_size": _list_text(case.attributes.sizes),
        "overlapping": any(axis.overlaps for axis in case.axes),
        "dilated": case.attributes.is_dilated,
        "padded": case.attributes.is_padded,
        "ceil_mode": case.attributes.rounds_up,
        "layouts": " ".join(f"{tensor}:{layout}" for tensor, layout in case.layouts),
        "gradient": case.recipe("grad_output"),
        "indices": case.recipe("indices"),
        "values": case.values,
        "deterministic": case.deterministic,
        "classes": classes_of(case),
        "seed": case.seed,
    }


def _judge_supported(question: Question, backend: Backend, described: Row) -> Row:
    aspect = question.aspect
    repeats = aspect.repeats if question.repeats is None else question.repeats
    trial = Trial(question.case, backend, repeats, question.shunned)
    standards = aspect.standards and has_room_for_standards(question.case, question.most_repeats)
    row, findings = _judge_trial(trial, aspect.checks, standards)
    if standards and question.own_standard and row.get("n") is not None:
        row["list_standard_passes"] = question.own_standard.judge(trial.deviations)
    if not findings:
        return row
    row |= verdict(Verdict.VIOLATES, findings[0].message, findings)
    if question.evidence and question.evidence.wants(described | row):
        question.evidence.put(trial, findings)
    return row


def _judge_trial(trial: Trial, checks: tuple[str, ...], standards: bool) -> tuple[Row, Sequence[Finding]]:
    """(columns, findings); where nothing was found the columns hold the verdict."""
    backend, outcome = trial.backend, trial.first.outcome
    row: dict[str, Any] = {"status_code": outcome.code, "call_seconds": outcome.seconds, "checks_judged": [REFUSAL]}
    row["route"] = backend.route(trial.first.call)
    refusal = owed.refusal(backend, trial.case, trial.first.call)
    if outcome.status is Status.UNAVAILABLE:
        return row | verdict(Verdict.NOT_RUN, outcome.message) | {"checks_judged": []}, ()
    if outcome.status is Status.REFUSED and refusal:
        return row | verdict(Verdict.REFUSED, refusal.reason), ()
    if outcome.status is Status.REFUSED and not owed.is_documented(backend) and backend.is_usable():
        reason = f"refused, and no document is known that says so: {outcome.message}"
        return row | verdict(Verdict.UNDOCUMENTED, reason) | {"checks_judged": []}, ()
    if outcome.status is Status.REFUSED:
        return row, [Finding(REFUSAL, Mismatch(f"a legal call was refused: {outcome.message}", got=outcome.message))]
    if refusal and refusal.required:
        return row, [Finding(REFUSAL, Mismatch(f"the call was accepted, although {refusal.reason}"))]
    try:
        judged, findings = run_checks(trial, checks)
    except RunFailed as error:
        return row, [Finding(REFUSAL, Mismatch(str(error)))]
    row["checks_judged"] = [REFUSAL, *judged]
    if trial.case.api.is_backward and not trial.case.has_empty_window():
        row["model"] = str(trial.model)
        row |= measure_output(trial)
        if standards:
            row |= measure_standards(trial)
    return row | verdict(Verdict.CONFORMS), findings


def _list_text(values: Sequence[int]) -> str:
    return "x".join(map(str, values))
