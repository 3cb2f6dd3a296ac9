"""A case as a question: run, held against every check of its aspect, and reported in one row."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Self

from poolproof.backends.base import Backend, Status
from poolproof.reports.rows.checks import NEIGHBOURS, REFUSAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.lists.entry import Entry
from poolproof.suites.cases.memory import SMALL
from poolproof.suites.cases.varying import auxiliary_cases, needs_producer, producers
from poolproof.suites.judging import expected
from poolproof.suites.judging.budget import has_room_for_standards, too_large
from poolproof.suites.judging.checks import USUAL, expected_checks, run_checks
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch
from poolproof.suites.judging.listed import place_of
from poolproof.suites.judging.measure import measure_output, measure_standards
from poolproof.suites.judging.question import Aspect, Prepared, Question, judged, verdict
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
        """More than once the usual time limit, because a huge plane takes long to judge."""
        return 1.0 + prod(self.case.shape) // (1 << 20)

    @property
    def max_repeats(self) -> int:
        """How often the call may be repeated and its outputs kept."""
        if "repeat" not in self.aspect.checks:
            return 1
        return self.aspect.repeats if self.repeats is None else self.repeats

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
        return row | place_of(self.entry) if self.entry else row

    def expected_checks(self) -> tuple[str, ...]:
        return (REFUSAL, *expected_checks(self.case, self.aspect.checks))

    def judge(self, backend: Backend) -> Row:
        return judge(self, backend)

    def prepare(self, backend: Backend) -> Prepared | None:
        if self.case.memory_bytes() > SMALL:
            return None
        makes_others = self.max_repeats > 1 or not {*self.aspect.checks} <= {*USUAL} or needs_producer(self.case)
        takes_own_indices = self.case.api.is_backward and not backend.abilities(self.case.api).indices
        if makes_others or takes_own_indices or not_judged(self, backend):
            return None
        trial = trial_of(self, backend)
        return (trial.call_batch, partial(judge, self, backend, trial)) if trial.is_small else None

    def auxiliary_calls(self) -> tuple[Question, ...]:
        cases = auxiliary_cases(self.case) if "state" in self.aspect.checks else []
        if "round_trip" in self.aspect.checks or needs_producer(self.case):
            cases += producers(self.case)
        return tuple(CaseQuestion(case, AUXILIARY, evidence=self.evidence) for case in cases)

    def without_auxiliary(self, ids: Collection[str]) -> Self:
        return replace(self, excluded_ids=frozenset(ids))

    def with_evidence_dir(self, evidence: EvidenceFolder) -> Self:
        return replace(self, evidence=evidence)


def judge(question: CaseQuestion, backend: Backend, trial: Trial | None = None) -> Row:
    """Return the row of one question; whatever the implementation does short of dying becomes a verdict."""
    started = time.perf_counter()
    row = question.describe()
    try:
        reason = None if trial else not_judged(question, backend)
        row |= reason or _judge_supported(question, trial or trial_of(question, backend), row)
    except ProducerFailed as error:
        row |= verdict(Verdict.REFUSED if error.refused else Verdict.NOT_RUN, str(error))
    return row | {"seconds": time.perf_counter() - started, "judged_at": time.time()}


def not_judged(question: CaseQuestion, backend: Backend) -> Row | None:
    """Return the columns that say why the call is not made; None if it is."""
    case = question.case
    unsupported = expected.unsupported(backend, case.api, case.dtype, case.index_dtype)
    if unsupported := unsupported or expected.lacking(backend, case):
        return verdict(Verdict.NOT_SUPPORTED, unsupported)
    left_out = too_large(case, question.max_repeats)
    return verdict(Verdict.NOT_RUN, left_out) if left_out else None


def trial_of(question: CaseQuestion, backend: Backend) -> Trial:
    aspect = question.aspect
    repeats = aspect.repeats if question.repeats is None else question.repeats
    return Trial(question.case, backend, repeats, question.excluded_ids, aspect.checks)


def _judge_supported(question: CaseQuestion, trial: Trial, described: Row) -> Row:
    aspect = question.aspect
    standards = aspect.standards and has_room_for_standards(question.case, question.max_repeats)
    row, findings = _judge_trial(trial, aspect.checks, standards)
    own = question.entry and question.entry.own.standard
    if standards and own and row.get("n") is not None:
        row["list_standard_passes"] = own.judge(trial.deviations)
    if findings:
        row |= judged(findings)
        if question.evidence and question.evidence.wants(described | row):
            question.evidence.put(trial, findings)
    return row


def _judge_trial(trial: Trial, checks: tuple[str, ...], standards: bool) -> tuple[Row, Sequence[Finding]]:
    """Return (columns, findings); where nothing was found the columns hold the verdict."""
    backend, outcome = trial.backend, trial.baseline.outcome
    row: dict[str, Any] = {"status_code": outcome.code, "call_seconds": outcome.seconds, "checks_judged": [REFUSAL]}
    row["route"] = backend.route(trial.baseline.call)
    refusal = expected.refusal(backend, trial.case, trial.baseline.call)
    if outcome.status is Status.UNAVAILABLE:
        return row | verdict(Verdict.NOT_RUN, outcome.message) | {"checks_judged": []}, ()
    if outcome.status is Status.REFUSED and refusal:
        return row | verdict(Verdict.REFUSED, refusal.reason), ()
    if outcome.status is Status.REFUSED and not expected.is_documented(backend) and backend.is_usable():
        reason = f"refused, and no document is known that says so: {outcome.message}"
        return row | verdict(Verdict.UNDOCUMENTED, reason) | {"checks_judged": []}, ()
    if outcome.status is Status.REFUSED:
        return row, [Finding(REFUSAL, Mismatch(f"a legal call was refused: {outcome.message}", got=outcome.message))]
    if refusal and refusal.required:
        return row, [Finding(REFUSAL, Mismatch(f"the call was accepted, although {refusal.reason}"))]
    try:
        checks_judged, findings = run_checks(trial, checks)
    except VariationFailed as error:
        return row, [Finding(REFUSAL, Mismatch(str(error)))]
    row["checks_judged"] = [REFUSAL, *checks_judged]
    if trial.case.api.is_backward and not trial.case.has_empty_window():
        row["model"] = str(trial.model)
        row |= measure_output(trial)
        if standards:
            row |= measure_standards(trial)
    return row | verdict(Verdict.CONFORMS), findings


CLASSES: dict[str, Callable[[Case], bool]] = {
    "padding": lambda case: case.attributes.is_padded,
    "dilation": lambda case: case.attributes.is_dilated,
    "ceil_mode": lambda case: case.attributes.rounds_up,
    "stride": lambda case: case.attributes.has_own_stride(case.api.spatial_rank),
    "empty window": Case.has_empty_window,
    "unbatched": lambda case: len(case.shape) == case.api.spatial_rank + 1,
    "empty tensor": lambda case: 0 in case.shape,
    "layouts": lambda case: bool(case.layouts),
    "deterministic": lambda case: case.deterministic,
}
"""What is special about a call, in words: the classes that an implementation may refuse as a whole.

A run has to make calls of every class that it draws; one that is only ever refused, though no document says that it
may be, is a gap.
"""
