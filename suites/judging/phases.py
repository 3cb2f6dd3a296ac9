"""Scenarios of the two phases, and drawn sequences of calls, as questions with an expected status and values.

The expected values are those of plain calls, which come first: the faults of a plain call are not the sequence's. In a
drawn sequence, the criterion also judges calls behind others, because a plain call may be wrong because of earlier
ones.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import msgspec

from poolproof.backends.base import Backend, Call, SequenceResult, Status, can_run
from poolproof.references.contract.scenarios import SCENARIOS, ExecutorScenario
from poolproof.references.operators import Operator
from poolproof.references.sequences import Action, calls_in
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.sequences import CallSequence
from poolproof.suites.cases.varying import twin
from poolproof.suites.judging.case_question import AUXILIARY, CaseQuestion
from poolproof.suites.judging.checks.variants import is_held_to_criterion, with_blame, wrong_by_itself
from poolproof.suites.judging.comparing import other_values
from poolproof.suites.judging.expected import missing, refusal
from poolproof.suites.judging.findings import Finding, Mismatch, mismatch
from poolproof.suites.judging.question import Aspect, Question, judged, not_judged
from poolproof.suites.judging.trial import ExecutedCall, ProducerFailed, Trial, VariationFailed

CHECKS = ("phase_status", "phase_values", "phase_criterion")
"""The checks of a scenario: the expected status, the values of the plain calls; the third only for drawn sequences."""

DRAWN = "sequence"
"""Replaces a scenario's id."""


@dataclass(frozen=True)
class PhaseQuestion(Question):
    """A scenario of the two phases, or a drawn sequence, with the cases of its calls."""

    scenario: ExecutorScenario
    cases: tuple[Case, ...]
    aspect: Aspect
    block: str = ""
    excluded_ids: frozenset[str] = frozenset()

    @classmethod
    def of_sequence(cls, sequence: CallSequence, aspect: Aspect, block: str = "") -> Self:
        statement = "A call gives the same result whatever ran before it."
        return cls(ExecutorScenario(DRAWN, statement, "", sequence.actions), sequence.cases, aspect, block)

    @cached_property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self._record).encode()).hexdigest()[:12]

    def to_line(self) -> str:
        return json.dumps(self._record, separators=(",", ":"))

    @property
    def is_drawn(self) -> bool:
        return self.scenario.id == DRAWN

    @property
    def sequence(self) -> CallSequence:
        return CallSequence(self.scenario.actions, self.cases)

    def auxiliary_calls(self) -> tuple[Question, ...]:
        """Return a question for each call that comes behind others: it may be wrong by itself."""
        return tuple(CaseQuestion(case, AUXILIARY) for case in self.cases[1:])

    def without_auxiliary(self, ids: Collection[str]) -> Self:
        return replace(self, excluded_ids=frozenset(ids))

    @property
    def _record(self) -> dict[str, Any]:
        cases = [json.loads(case.to_json()) for case in self.cases]
        if self.is_drawn:
            return {"sequence": list(map(str, self.scenario.actions)), "calls": cases}
        return {"way": self.scenario.id, "case": cases[0]}

    def describe(self) -> Row:
        case = self.cases[0]
        return self._described(case.operator, case.dtype, case.index_dtype, case.shape) | {
            "layouts": " ".join(f"{tensor}:{layout}" for tensor, layout in case.layouts),
            "clause": self.scenario.id,
            "statement": self.scenario.statement,
        }

    def judge(self, backend: Backend) -> Row:
        try:
            row = self._judged([Trial(case, backend) for case in self.cases], backend)
        except ProducerFailed as error:
            row = not_judged(error.verdict, str(error))
        return self.describe() | row

    def _judged(self, trials: Sequence[Trial], backend: Backend) -> Row:
        for trial in trials:
            case = trial.case
            if reason := missing(backend, case):
                return not_judged(Verdict.NOT_SUPPORTED, reason)
            plain = trial.baseline.outcome
            if plain.status is Status.COMPLETED:
                continue
            documented = refusal(backend, case, trial.baseline.call)
            if documented and documented.allows(plain):
                return not_judged(Verdict.REFUSED, documented.reason)
            return not_judged(Verdict.NOT_RUN, f"the plain call is {plain.status}: {plain.message}")
        actions = self.scenario.actions
        if not can_run(backend, actions):
            return not_judged(Verdict.NOT_RUN, "the backend cannot do all of its actions")
        calls = [each.new_call() for each in trials]
        result = backend.run_sequence(actions, calls)
        if not result.applicable:
            return not_judged(Verdict.CONFORMS, f"no occasion: {result.text}")
        if result.status is None:
            return not_judged(Verdict.NOT_RUN, result.text)
        findings = [*self._wrong_status(result), *self._wrong_values(result, trials, calls)]
        checks = CHECKS if self.is_drawn else CHECKS[:2]
        return {"status_code": result.status, "checks_judged": list(checks)} | judged(findings)

    def _wrong_status(self, result: SequenceResult) -> Iterator[Finding]:
        """Check the status: of a drawn sequence, the first failed action that is not `asked`."""
        scenario, subject, got = self.scenario, self.scenario.id, result.status
        if self.is_drawn:
            codes = zip(scenario.actions, result.statuses, strict=False)
            failed = ((number, code) for number, (action, code) in enumerate(codes) if code and not action.asked)
            number, got = next(failed, (0, 0))
            subject = self._place(number)
        if scenario.expected is not None and got != scenario.expected:
            right, guess = str(int(scenario.expected)), f"its text is: {result.text}" if result.text else ""
            reason = scenario.statement.rstrip(".")
            yield Finding("phase_status", mismatch(f"the status of {subject}", got, right, reason, guess=guess))

    def _wrong_values(
        self, result: SequenceResult, trials: Sequence[Trial], calls: Sequence[Call]
    ) -> Iterator[Finding]:
        """Check the values of the computed calls up to the first wrong one, and the plain call after a refusal."""
        if violations := result.guard_violations:
            yield Finding("phase_values", Mismatch(f"{self.scenario.id}: {'; '.join(violations)}"))
        last_runs = self.sequence.last_runs() if self.is_drawn else {}
        for number in result.computed:
            trial, context = trials[number], f"in {self.scenario.id}"
            if self.is_drawn:
                context = f"of {self._call(number)}, behind {self._place(last_runs[number])}"
            run = ExecutedCall(calls[number], trial.baseline.outcome)
            wrong = other_values(trial, run, trial.baseline, context, "as the plain call gave")
            if deviation := with_blame(trial, wrong, {"the plain call": trial.baseline, f"call {number}": run}):
                yield Finding("phase_values", deviation)
                return
            if number and self.is_drawn and (deviation := self._wrong_behind(trials[0], trial, run, context)):
                yield Finding("phase_criterion", deviation)
                return
        if self.scenario.expected and (harm := _harm(self.scenario, trials[0])):
            yield Finding("phase_values", harm)

    def _wrong_behind(self, first: Trial, trial: Trial, run: ExecutedCall, context: str) -> Mismatch | None:
        """Judge a call behind others by the criterion, unless the first call, which is behind none, is also wrong."""
        if trial.case.id in self.excluded_ids or not is_held_to_criterion(trial.case):
            return None
        wrong = wrong_by_itself(trial, run, context)
        if wrong and is_held_to_criterion(first.case) and wrong_by_itself(first, first.baseline, context):
            return None
        return wrong

    def _call(self, number: int) -> str:
        """Return a call's name, with the operators of all calls if there are several."""
        operator = self.cases[number].operator
        further = dict.fromkeys(case.operator for case in self.cases if case.operator != operator)
        return f"call {number}" + (f" ({operator}, with calls of {', '.join(further)})" if further else "")

    def _place(self, number: int) -> str:
        actions = self.scenario.actions
        return f"action {number + 1} of {len(actions)} ({actions[number]})"


def phase_questions(
    operator: Operator, dtype: str, index_dtype: str, aspect: Aspect, block: str
) -> list[PhaseQuestion]:
    """Return a question per scenario and case of an operator in a pair of dtypes."""
    cases = tuple(_cases(operator, dtype, index_dtype))
    return [_scenario_question(scenario, case, aspect, block) for scenario in SCENARIOS.values() for case in cases]


def count_phase_questions(operator: Operator, dtype: str, index_dtype: str) -> Counter[str]:
    """Return the number of `phase_questions` by scenario."""
    return Counter(dict.fromkeys(SCENARIOS, len(list(_cases(operator, dtype, index_dtype)))))


def _scenario_question(scenario: ExecutorScenario, case: Case, aspect: Aspect, block: str = "") -> PhaseQuestion:
    """Return a scenario's question; a second call has other data, and usually other windows on the same shapes.

    If an executor gets the addresses of the other call, both have the same windows.
    """
    is_same_kind = any(action.do == "set_addresses" for action in scenario.actions)
    other = case if is_same_kind else twin(case) or replace(case, attributes=case.attributes.other())
    cases = (case, replace(other, seed=case.seed ^ 1))[: calls_in(scenario.actions)]
    return PhaseQuestion(scenario, cases, aspect, block)


def read_phase_question(record: dict[str, Any], aspect: Aspect) -> PhaseQuestion:
    """Read the question of a line with a scenario or a sequence; raise `CaseError` if it is invalid."""
    if "sequence" in record:
        return PhaseQuestion.of_sequence(_read_sequence(record), aspect)
    scenario = SCENARIOS.get(str(record["way"]))
    if scenario is None:
        raise CaseError(f"way {record['way']!r} is none of {', '.join(SCENARIOS)}")
    if set(record) != {"way", "case"} or not isinstance(record["case"], dict):
        raise CaseError("a way through the phases is an object of a way and a case")
    return _scenario_question(scenario, Case.from_record(record["case"]), aspect)


class _SequenceLine(msgspec.Struct, forbid_unknown_fields=True):
    sequence: list[str]
    calls: list[dict[str, Any]]


def _read_sequence(record: dict[str, Any]) -> CallSequence:
    try:
        line = msgspec.convert(record, _SequenceLine)
        actions = tuple(map(Action.parse, line.sequence))
    except (TypeError, ValueError) as error:
        what = "a list of actions, such as 'run executor=1', with its calls"
        raise CaseError(f"a sequence is {what}: {error}") from error
    sequence = CallSequence(actions, tuple(map(Case.from_record, line.calls)))
    if reason := sequence.why_illegal():
        raise CaseError(reason)
    return sequence


_OVERLAPPING: Mapping[type[Windows], Callable[[int], Windows]] = per_kind(
    "case that goes through the phases",
    {
        Windowed: lambda rank: Windowed((3,) * rank, (2,) * rank, (1,) * rank),
        Adaptive: lambda rank: Adaptive((3,) * rank),
    },
)


def _cases(operator: Operator, dtype: str, index_dtype: str) -> Iterator[Case]:
    """Yield overlapping windows, the same on a tensor that must be copied, and an empty batch, without a workspace."""
    rank = operator.spatial_rank
    shape, windows = (2, 3, 9, 8) if rank == 2 else (1, 2, 5, 6, 7), _OVERLAPPING[operator.windows](rank)
    small = replace(Case.smallest(operator, dtype), index_dtype=index_dtype, indices="in_window", deterministic=True)
    plain = replace(small, shape=shape, attributes=windows)
    yield plain
    yield replace(plain, layouts=((operator.inputs[0], "sliced"),))
    yield replace(plain, shape=(0, *plain.shape[1:]))


def _harm(scenario: ExecutorScenario, trial: Trial) -> Mismatch | None:
    """Return the mismatch of a plain call after a refusal."""
    try:
        run = trial.in_mode("")
    except VariationFailed as error:
        return Mismatch(f"after {scenario.id}: {error}")
    return None if run is None else other_values(trial, run, trial.baseline, f"after {scenario.id}", "as before it")
