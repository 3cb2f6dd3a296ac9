"""A case as a question: run it, apply every check of its aspect, and report one row.

An unreadable row of a case list is a question, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from poolproof.backends.base import Backend, Outcome, Status
from poolproof.references.standards import judge_together
from poolproof.reports.rows.checks import NEIGHBOURS, REFUSAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.varying import (
    auxiliary_cases,
    differing_in_one,
    needs_producer,
    neighbours,
    pairs_one_apart,
    producers,
)
from poolproof.suites.judging import expected, measure
from poolproof.suites.judging.budget import too_large
from poolproof.suites.judging.checks import USUAL, expected_checks, run_checks
from poolproof.suites.judging.checks.registry import is_full_backward
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.question import Aspect, Question, judged, not_judged, verdict
from poolproof.suites.judging.trial import ProducerFailed, Trial, VariationFailed

AUXILIARY = Aspect(NEIGHBOURS, "a call that came before another is right by itself", USUAL)
"""The checks of auxiliary calls: if these are wrong, they may explain a deviation of another call."""


@dataclass(frozen=True)
class CaseQuestion(Question):
    """A case, to be judged by the checks of its aspect.

    Attributes:
        repeats: Number of repetitions for `repeat`, if it differs from the aspect's.
        excluded_ids: Ids of cases that must not be called before it.
        entry: The row of a case list that it comes from.
    """

    case: Case
    aspect: Aspect
    block: str = ""
    repeats: int | None = None
    evidence: EvidenceFolder | None = None
    excluded_ids: frozenset[str] = frozenset()
    entry: Entry | None = None

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def built_for(self) -> str:
        return self.case.dtype

    @property
    def timeout_scale(self) -> float:
        """Factor of the usual time limit of a call: above 1 for huge planes."""
        return 1.0 + prod(self.case.shape) // (1 << 20)

    @property
    def _repeats(self) -> int:
        return self.aspect.repeats if self.repeats is None else self.repeats

    @property
    def max_repeats(self) -> int:
        """The most repetitions of the call with outputs that are kept."""
        return self._repeats if "repeat" in self.aspect.checks else 1

    def to_line(self) -> str:
        return self.case.to_json()

    def describe(self) -> Row:
        case = self.case
        row = self._described(case.operator, case.dtype, case.index_dtype, case.shape) | {
            "batched": len(case.shape) == case.api.spatial_rank + 2,
            "planes": case.planes,
            "elements": prod(case.shape),
            "windows": prod(case.pooled_shape),
            "kernel_size": "x".join(map(str, case.attributes.sizes)),
            "overlapping": any(axis.is_overlapping for axis in case.axes),
            "dilated": case.attributes.is_dilated,
            "padded": case.attributes.is_padded,
            "ceil_mode": case.attributes.rounds_up,
            "layouts": " ".join(f"{tensor}:{layout}" for tensor, layout in case.layouts),
            "gradient": case.recipe("grad_output"),
            "indices": case.recipe("indices"),
            "values": case.values,
            "deterministic": case.deterministic,
            "classes": [name for name, holds in CLASSES.items() if holds(case)],
            "seed": case.seed,
        }
        return row | _place_of(self.entry) if self.entry else row

    def describe_data(self) -> Row:
        if needs_producer(self.case) or prod(self.case.shape) > measure.MOST_LOOKED_AT:
            return {}
        return measure.look_at_data(make_operands(self.case))

    def expected_checks(self) -> tuple[str, ...]:
        return (REFUSAL, *expected_checks(self.case, self.aspect.checks))

    def judge(self, backend: Backend) -> Row:
        described = self.describe()
        if not_made := self._not_judged(backend):
            return described | not_made
        trial = Trial(self.case, backend, self._repeats, self.excluded_ids, self.aspect.checks)
        try:
            trial.operands  # noqa: B018  (drawn once and kept)
        except ProducerFailed as error:
            return described | verdict(error.verdict, str(error))
        call, outcome = trial.baseline.call, trial.baseline.outcome
        row: Row = described | {"status_code": outcome.code, "call_seconds": outcome.seconds}
        row["checks_judged"] = [REFUSAL]
        has_run = outcome.status is Status.COMPLETED  # without a run, the route would be that of an earlier call
        row |= {"route": backend.route(call) if has_run else ""} | measure.look_at_data(trial.operands)
        refusal = expected.refusal(backend, self.case, call)
        if refusal and refusal.allows(outcome):
            return row | verdict(Verdict.REFUSED, refusal.reason)
        if excuse := expected.excuse(backend, outcome):
            prefix = "refused without a known document that allows it: " if outcome.status is Status.REFUSED else ""
            return row | not_judged(excuse, prefix + outcome.message)
        if findings := _of_refusal(refusal, outcome):
            return row | self._concluded(trial, findings, row)
        if "state" in self.aspect.checks:
            self._add_other_calls(trial)
        try:
            checks_judged, findings = run_checks(trial, self.aspect.checks)
            row |= {"checks_judged": [REFUSAL, *checks_judged], **self._measured(trial)}
        except ProducerFailed as error:
            return described | verdict(error.verdict, str(error))
        except VariationFailed as error:
            if error.excuse:
                return row | not_judged(error.excuse, str(error))
            findings = [Finding(REFUSAL, Mismatch(str(error)))]
        return row | self._concluded(trial, findings, row)

    def auxiliary_calls(self) -> tuple[Question, ...]:
        cases = auxiliary_cases(self.case) if "state" in self.aspect.checks else []
        if "round_trip" in self.aspect.checks or needs_producer(self.case):
            cases += producers(self.case)
        return tuple(CaseQuestion(case, AUXILIARY) for case in cases)

    def without_auxiliary(self, ids: Collection[str]) -> Self:
        return replace(self, excluded_ids=frozenset(ids))

    def with_evidence_dir(self, evidence: EvidenceFolder) -> Self:
        return replace(self, evidence=evidence)

    def _not_judged(self, backend: Backend) -> Row | None:
        """Return the verdict columns if the call is not made; None if it is made."""
        case = self.case
        if missing := expected.missing(backend, case):
            return verdict(Verdict.NOT_SUPPORTED, missing)
        if self.aspect == AUXILIARY and not expected.has_call(backend, case):
            return verdict(Verdict.NOT_SUPPORTED, "its layouts do not reach the implementation")
        left_out = too_large(case, self.max_repeats, self.aspect.checks)
        return verdict(Verdict.NOT_RUN, left_out) if left_out else None

    def _add_other_calls(self, trial: Trial) -> None:
        """Set the other calls that `state` makes, except the excluded ones and those that the backend does not have."""
        case, backend = self.case, trial.backend

        def can_call(*calls: Case) -> bool:
            return all(expected.has_call(backend, call) and call.id not in self.excluded_ids for call in calls)

        trial.neighbours = [other for other in neighbours(case) if can_call(other)]
        trial.pairs = [cases for cases in pairs_one_apart(case) if can_call(*cases)]
        if not trial.pairs:  # the adapter copies: no layout reaches the implementation
            trial.pairs = [(other,) for other in differing_in_one(case) if can_call(other)]
        if case.api.is_backward and not backend.abilities(case.api).indices:
            turn = case.seed % max(len(trial.pairs), 1)
            trial.pairs = trial.pairs[turn : turn + 1]  # inferring the indices that it takes can need dozens of calls

    def _concluded(self, trial: Trial, findings: list[Finding], row: Row) -> Row:
        """Return the columns of the verdict; write evidence of a violation if it is wanted."""
        columns = judged(findings)
        if findings and self.evidence and self.evidence.wants(row | columns):
            self.evidence.put(trial, findings)
        return columns

    def _measured(self, trial: Trial) -> Row:
        """Return the measurements of a backward if all its gradients have a cell; of a forward, its rule."""
        if not self.case.api.is_backward:
            return {"model": str(trial.forward_rule)}
        if not is_full_backward(self.case):
            return {}
        row: Row = {"model": str(trial.model)} | measure.measure_output(trial)
        if self.aspect.standards:
            row |= measure.measure_standards(trial)
            if (entry := self.entry) and entry.own.standard:
                (row["list_standard_passes"],) = judge_together([entry.own.standard], measure.deviation_parts(trial))
        return row


@dataclass(frozen=True)
class UnreadableRow(Question):
    """A row of a case list that is not a case: it is not run, and its row has the reason."""

    entry: Entry
    aspect: Aspect
    block: str

    def to_line(self) -> str:
        return self.entry.to_json()

    def describe(self) -> Row:
        named = {"case_id": self.id, "case": self.to_line(), "block": self.block, "aspect": self.aspect.id}
        return named | dict.fromkeys(("operator", "dtype", "index_dtype"), "") | _place_of(self.entry)

    def judge(self, backend: Backend) -> Row:  # noqa: ARG002
        return self.describe() | verdict(Verdict.NOT_RUN, self.entry.fault)


def _of_refusal(refusal: expected.DocumentedRefusal | None, outcome: Outcome) -> list[Finding]:
    """Return the finding about a refusal that no document allows, or about an accepted call that must be refused."""
    if outcome.status is Status.REFUSED:
        what = "call that may be refused was taken, and failed" if refusal else "legal call was refused"
        return [Finding(REFUSAL, Mismatch(f"a {what}: {outcome.message}", got=outcome.message))]
    if refusal and refusal.required:
        return [Finding(REFUSAL, Mismatch(f"the call was accepted, although {refusal.reason}"))]
    return []


def _place_of(entry: Entry) -> Row:
    return {"list": entry.label, "list_row": entry.row, "list_name": entry.name, "list_standard": entry.own.name}


CLASSES: dict[str, Callable[[Case], bool]] = {
    "padding": lambda case: case.attributes.is_padded,
    "dilation": lambda case: case.attributes.is_dilated,
    "ceil_mode": lambda case: case.attributes.rounds_up,
    "stride": lambda case: case.attributes.has_own_stride(case.api.spatial_rank),
    "empty window": lambda case: case.has_empty_window,
    "unbatched": lambda case: len(case.shape) == case.api.spatial_rank + 1,
    "empty tensor": lambda case: 0 in case.shape,
    "layouts": lambda case: bool(case.layouts),
    "deterministic": lambda case: case.deterministic,
}
"""Class of calls -> test of a case: the classes that an implementation may refuse as a whole.

A run must call every class that it draws. If a class is only refused, and no document allows that, it is a gap.
"""
