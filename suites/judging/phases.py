"""Scenarios of the two phases of a call as questions: the status and the values that are expected of each.

Values are those of the plain call, which is made first: what is wrong with that is no matter of phases.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from poolproof.backends.base import Backend, Call, Outcome, SequenceResult, Status, can_run
from poolproof.references.contract.scenarios import SCENARIOS, ExecutorScenario
from poolproof.references.operators import Operator
from poolproof.references.sequences import calls_in
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.varying import twin
from poolproof.suites.judging import expected
from poolproof.suites.judging.comparing import other_values
from poolproof.suites.judging.findings import Finding, Mismatch, mismatch
from poolproof.suites.judging.question import Aspect, Question, judged, verdict
from poolproof.suites.judging.trial import ExecutedCall, ProducerFailed, Trial, VariationFailed

CHECKS = ("phase_status", "phase_values")
"""What a scenario is held to: the expected status, and the values of the plain call."""


@dataclass(frozen=True)
class PhaseQuestion(Question):
    """One scenario of the two phases, with one case."""

    scenario: ExecutorScenario
    case: Case
    aspect: Aspect
    block: str = ""

    @cached_property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self._record).encode()).hexdigest()[:12]

    def to_line(self) -> str:
        return json.dumps(self._record, separators=(",", ":"))

    @property
    def _record(self) -> dict[str, Any]:
        return {"way": self.scenario.id, "case": json.loads(self.case.to_json())}

    def describe(self) -> Row:
        case = self.case
        return self._described(case.operator, case.dtype, case.index_dtype, case.shape) | {
            "layouts": " ".join(f"{tensor}:{layout}" for tensor, layout in case.layouts),
            "clause": self.scenario.id,
            "statement": self.scenario.statement,
        }

    def judge(self, backend: Backend) -> Row:
        started = time.perf_counter()
        try:
            row = self._judged(Trial(self.case, backend))
        except ProducerFailed as error:
            row = _not_run(str(error))
        return self.describe() | row | {"seconds": time.perf_counter() - started, "judged_at": time.time()}

    @property
    def _other_case(self) -> Case:
        """Other data in other windows, on tensors of the same shapes where that can be."""
        other = twin(self.case) or replace(self.case, attributes=self.case.attributes.other())
        return replace(other, seed=self.case.seed ^ 1)

    def _judged(self, trial: Trial) -> Row:
        backend, plain = trial.backend, trial.baseline.outcome
        if plain.status is not Status.COMPLETED:
            refusal = expected.refusal(backend, self.case, trial.baseline.call)
            if plain.status is Status.REFUSED and refusal:
                return verdict(Verdict.REFUSED, refusal.reason) | {"checks_judged": []}
            return _not_run(f"the plain call is {plain.status}: {plain.message}")
        other, actions = Trial(self._other_case, backend), self.scenario.actions
        if not can_run(backend, actions) or other.baseline.outcome.status is not Status.COMPLETED:
            return _not_run("the backend has no phases, or its plain call does not complete")
        trials = (trial, other)[: calls_in(actions)]
        calls = [each.new_call() for each in trials]
        result = backend.run_sequence(actions, calls)
        if not result.applicable:
            return verdict(Verdict.CONFORMS, f"no occasion: {result.text}") | {"checks_judged": []}
        if result.status is None:
            return _not_run(result.text)
        findings = list(_findings(self.scenario, result, list(zip(trials, calls, strict=True))))
        return {"status_code": result.status, "checks_judged": list(CHECKS)} | judged(findings)


def phase_questions(
    operator: Operator, dtype: str, index_dtype: str, aspect: Aspect, block: str
) -> list[PhaseQuestion]:
    """Make a question of every scenario, with each of the cases of an operator in a pair of dtypes."""
    cases = tuple(_cases(operator, dtype, index_dtype))
    return [PhaseQuestion(scenario, case, aspect, block) for scenario in SCENARIOS.values() for case in cases]


def read_phase_question(record: dict[str, Any], aspect: Aspect) -> PhaseQuestion:
    """Read the question of a line that names a scenario; `CaseError` says what is wrong with one."""
    scenario = SCENARIOS.get(str(record["way"]))
    if scenario is None:
        raise CaseError(f"way {record['way']!r} is none of {', '.join(SCENARIOS)}")
    if set(record) != {"way", "case"} or not isinstance(record["case"], dict):
        raise CaseError("a way through the phases is an object of a way and a case")
    return PhaseQuestion(scenario, Case.from_record(record["case"]), aspect)


_SHAPES = {2: (2, 3, 9, 8), 3: (1, 2, 5, 6, 7)}

_OVERLAPPING: Mapping[type[Windows], Callable[[int], Windows]] = per_kind(
    "case that goes through the phases",
    {
        Windowed: lambda rank: Windowed((3,) * rank, (2,) * rank, (1,) * rank),
        Adaptive: lambda rank: Adaptive((3,) * rank),
    },
)


def _cases(operator: Operator, dtype: str, index_dtype: str) -> Iterator[Case]:
    """Yield overlapping windows, once on a tensor that has to be copied; and an empty batch, without a workspace."""
    windows = _OVERLAPPING[operator.windows](operator.spatial_rank)
    plain = Case(
        operator=operator.name,
        shape=_SHAPES[operator.spatial_rank],
        dtype=dtype,
        index_dtype=index_dtype,
        attributes=windows,
        gradient="integers",
        indices="in_window",
        deterministic=True,
    )
    yield plain
    yield replace(plain, layouts=((operator.inputs[0], "sliced"),))
    yield replace(plain, shape=(0, *plain.shape[1:]))


def _not_run(reason: str) -> Row:
    return verdict(Verdict.NOT_RUN, reason) | {"checks_judged": []}


def _findings(scenario: ExecutorScenario, result: SequenceResult, calls: list[tuple[Trial, Call]]) -> Iterator[Finding]:
    if scenario.expected is not None and result.status != scenario.expected:
        right, guess = str(int(scenario.expected)), f"its text is: {result.text}" if result.text else ""
        reason = scenario.statement.rstrip(".")
        found = mismatch(f"the status of {scenario.id}", result.status, right, reason, guess=guess)
        yield Finding("phase_status", found)
    context = f"where {scenario.id} was asked"
    for trial, call in (calls[number] for number in result.computed):
        run = ExecutedCall(call, Outcome(Status.COMPLETED))
        if wrong := other_values(trial, run, trial.baseline, context, "as the plain call gave"):
            yield Finding("phase_values", wrong)
            return
    if scenario.expected and (harm := _harm(scenario, calls[0][0])):
        yield Finding("phase_values", harm)


def _harm(scenario: ExecutorScenario, trial: Trial) -> Mismatch | None:
    """Report what a refusal has done to the plain call."""
    try:
        run = trial.in_mode("")
    except VariationFailed as error:
        return Mismatch(f"after {scenario.id}: {error}")
    return None if run is None else other_values(trial, run, trial.baseline, f"after {scenario.id}", "as before it")
