"""A case as a question: run, held against every check of its aspect, and reported in one row.

A row of a case list that is no case is a question, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from poolproof.backends.base import Backend, Status
from poolproof.references.standards import judge_together
from poolproof.reports.rows.checks import NEIGHBOURS, REFUSAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.varying import auxiliary_cases, needs_producer, producers
from poolproof.suites.judging import expected, measure
from poolproof.suites.judging.budget import too_large
from poolproof.suites.judging.checks import USUAL, expected_checks, run_checks
from poolproof.suites.judging.checks.registry import is_full_backward
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.question import Aspect, Question, judged, not_judged, verdict
from poolproof.suites.judging.trial import ProducerFailed, Trial, VariationFailed

AUXILIARY = Aspect(NEIGHBOURS, "a call that came before another is right by itself", USUAL)
"""What a call is held against that another call's deviation may be due to."""


@dataclass(frozen=True)
class CaseQuestion(Question):
    """A case, held against the checks of its aspect.

    ``repeats`` is how often `repeat` may repeat it where that is not the aspect's number. The cases of the ids
    ``excluded_ids`` are not called before it. ``entry`` is the row of a list that it comes from.
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
        """More than once the usual time limit, because a huge plane takes long to judge, and so do many calls."""
        return 1.0 + prod(self.case.shape) // (1 << 20) + self._repeats // 100

    @property
    def _repeats(self) -> int:
        return self.aspect.repeats if self.repeats is None else self.repeats

    @property
    def max_repeats(self) -> int:
        """How often the call may be repeated and its outputs kept."""
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
            "overlapping": any(axis.overlap > 1 for axis in case.axes),
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
        row = self.describe()
        try:
            trial = Trial(self.case, backend, self._repeats, self.excluded_ids, self.aspect.checks)
            row |= self._not_judged(backend) or self._judged(trial, row)
        except ProducerFailed as error:
            row |= verdict(error.verdict, str(error))
        return row

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
        """Return the columns that say why the call is not made; None if it is."""
        case = self.case
        if missing := expected.missing(backend, case):
            return verdict(Verdict.NOT_SUPPORTED, missing)
        if self.aspect == AUXILIARY and not expected.has_call(backend, case):
            return verdict(Verdict.NOT_SUPPORTED, "its layouts do not reach the implementation")
        left_out = too_large(case, self.max_repeats, self.aspect.checks)
        return verdict(Verdict.NOT_RUN, left_out) if left_out else None

    def _judged(self, trial: Trial, described: Row) -> Row:
        """Return the columns that say what came of the call."""
        backend, (call, outcome) = trial.backend, (trial.baseline.call, trial.baseline.outcome)
        row: Row = {"status_code": outcome.code, "call_seconds": outcome.seconds, "checks_judged": [REFUSAL]}
        has_run = outcome.status is Status.COMPLETED  # else a route would be that of a call before it
        row |= {"route": backend.route(call) if has_run else ""} | measure.look_at_data(trial.operands)
        refusal = expected.refusal(backend, self.case, call)
        if refusal and refusal.allows(outcome):
            return row | verdict(Verdict.REFUSED, refusal.reason)
        if excuse := expected.excuse(backend, outcome):
            said = "refused, and no document is known that says so: " if outcome.status is Status.REFUSED else ""
            return row | not_judged(excuse, said + outcome.message)
        if outcome.status is Status.REFUSED:
            what = "call that may be refused was taken, and failed" if refusal else "legal call was refused"
            findings = [Finding(REFUSAL, Mismatch(f"a {what}: {outcome.message}", got=outcome.message))]
        elif refusal and refusal.required:
            findings = [Finding(REFUSAL, Mismatch(f"the call was accepted, although {refusal.reason}"))]
        else:
            try:
                checks_judged, findings = run_checks(trial, self.aspect.checks)
                row |= {"checks_judged": [REFUSAL, *checks_judged], **self._measured(trial)}
            except VariationFailed as error:
                if error.excuse:
                    return row | not_judged(error.excuse, str(error))
                findings = [Finding(REFUSAL, Mismatch(str(error)))]
        row |= judged(findings)
        if findings and self.evidence and self.evidence.wants(described | row):
            self.evidence.put(trial, findings)
        return row

    def _measured(self, trial: Trial) -> Row:
        """Measure the output of a backward each of whose gradients has a cell to go to; of a forward, name its rule."""
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
    """A row of a case list that is no case: it is not run, and says why."""

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
"""What is special about a call, in words: the classes that an implementation may refuse as a whole.

A run has to make calls of every class that it draws; one that is only ever refused, though no document says that it
may be, is a gap.
"""
