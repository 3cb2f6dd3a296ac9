"""Ways through the two phases of a call as questions: what each of them is owed, status and values.

Values are those of the plain call, which is made first: what is wrong with that is no matter of phases.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, assert_never

from poolproof.backends.base import Backend, Call, Outcome, ScenarioResult, Status
from poolproof.references.contract.scenarios import SCENARIOS, Either, ExecutorScenario, Fails, Succeeds
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.judging import owed as owed_by
from poolproof.suites.judging.asked import Aspect, verdict
from poolproof.suites.judging.comparing import other_values
from poolproof.suites.judging.evidence import EvidenceFolder
from poolproof.suites.judging.findings import Finding, Mismatch, mismatch
from poolproof.suites.judging.trial import NotMade, Run, RunFailed, Trial

CHECKS = ("phase_status", "phase_values")
"""What a way is held to: the status that it is owed, and the values of the plain call."""


@dataclass(frozen=True)
class PhaseQuestion:
    """One way, gone with one case."""

    way: ExecutorScenario
    case: Case
    aspect: Aspect
    block: str = ""
    patience: float = field(default=1.0, init=False)
    evidence: None = field(default=None, init=False)

    @cached_property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self._record).encode()).hexdigest()[:12]

    def to_line(self) -> str:
        return json.dumps(self._record, separators=(",", ":"))

    @property
    def _record(self) -> dict[str, Any]:
        return {"way": self.way.id, "case": json.loads(self.case.to_json())}

    def describe(self) -> Row:
        case = self.case
        return {
            "case_id": self.id,
            "case": self.to_line(),
            "block": self.block,
            "aspect": self.aspect.id,
            "operator": case.operator,
            "dtype": case.dtype,
            "index_dtype": case.index_dtype,
            "shape": "x".join(map(str, case.shape)),
            "layouts": " ".join(f"{tensor}:{layout}" for tensor, layout in case.layouts),
            "clause": self.way.id,
            "statement": self.way.statement,
        }

    def judge(self, backend: Backend) -> Row:
        started = time.perf_counter()
        try:
            row = self._judged(Trial(self.case, backend))
        except NotMade as error:
            row = _not_run(str(error))
        return self.describe() | row | {"seconds": time.perf_counter() - started, "judged_at": time.time()}

    def owed_checks(self) -> tuple[str, ...]:
        """None: some ways need an occasion, such as a call that takes a workspace."""
        return ()

    def company(self) -> None:
        """The calls that a way takes are alike but for their data."""

    def leaving(self, evidence: EvidenceFolder) -> PhaseQuestion:  # noqa: ARG002  (a way is made again by its line)
        return self

    def _judged(self, trial: Trial) -> Row:
        backend, plain = trial.backend, trial.first.outcome
        if plain.status is not Status.COMPLETED:
            refusal = owed_by.refusal(backend, self.case, trial.first.call)
            if plain.status is Status.REFUSED and refusal:
                return verdict(Verdict.REFUSED, refusal.reason) | {"checks_judged": []}
            return _not_run(f"the plain call is {plain.status}: {plain.message}")
        other = Trial(replace(self.case, seed=self.case.seed ^ 1), backend)
        if backend.phases is None or other.first.outcome.status is not Status.COMPLETED:
            return _not_run("the backend has no phases, or its plain call does not complete")
        calls = trial.fresh(), other.fresh()
        passage = backend.phases.run_scenario(self.way, *calls)
        if not passage.applicable:
            return verdict(Verdict.CONFORMS, f"no occasion: {passage.text}") | {"checks_judged": []}
        if passage.status is None:
            return _not_run(passage.text)
        findings = list(_findings(self.way, passage, list(zip((trial, other), calls, strict=True))))
        row = {"status_code": passage.status, "checks_judged": list(CHECKS)}
        if findings:
            return row | verdict(Verdict.VIOLATES, findings[0].message, findings)
        return row | verdict(Verdict.CONFORMS)


def phase_questions(
    operator: Operator, dtype: str, index_dtype: str, aspect: Aspect, block: str
) -> list[PhaseQuestion]:
    """Every way, with each of the cases of an operator in a pair of dtypes."""
    cases = tuple(_cases(operator, dtype, index_dtype))
    return [PhaseQuestion(way, case, aspect, block) for way in SCENARIOS.values() for case in cases]


def read_phase_question(line: str, aspect: Aspect) -> PhaseQuestion | None:
    """The question that ``line`` is the JSON of, None if it names no way; `CaseError` says what is wrong with one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or "way" not in record:
        return None
    way = SCENARIOS.get(str(record["way"]))
    if way is None:
        raise CaseError(f"way {record['way']!r} is none of {', '.join(SCENARIOS)}")
    if set(record) != {"way", "case"} or not isinstance(record["case"], dict):
        raise CaseError("a way through the phases is an object of a way and a case")
    return PhaseQuestion(way, Case.from_record(record["case"]), aspect)


_SHAPES = {2: (2, 3, 9, 8), 3: (1, 2, 5, 6, 7)}


def _windowed(rank: int) -> Windows:
    return Windowed((3,) * rank, (2,) * rank, (1,) * rank)


def _adaptive(rank: int) -> Windows:
    return Adaptive((3,) * rank)


_OVERLAPPING: Mapping[type[Windows], Callable[[int], Windows]] = per_kind(
    "case that goes through the phases", {Windowed: _windowed, Adaptive: _adaptive}
)


def _cases(operator: Operator, dtype: str, index_dtype: str) -> Iterator[Case]:
    """Overlapping windows; the same on a tensor that has to be copied; and an empty batch, which needs no workspace."""
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


def _findings(way: ExecutorScenario, passage: ScenarioResult, gone: list[tuple[Trial, Call]]) -> Iterator[Finding]:
    wrong = _wrong_status(way, passage)
    if wrong:
        yield Finding("phase_status", wrong)
    for trial, call in gone[: passage.ran]:
        found = _wrong_values(trial, call, f"where {way.id} was asked")
        if found:
            yield Finding("phase_values", found)
            return
    if isinstance(way.expected, Fails):
        yield from _harm(way, gone[0][0])


def _wrong_status(way: ExecutorScenario, passage: ScenarioResult) -> Mismatch | None:
    """A status that the way is not owed."""
    match way.expected:
        case Succeeds():
            allowed: frozenset[int] = frozenset({0})
        case Fails(statuses):
            allowed = statuses
        case Either():
            return None
        case _:
            assert_never(way.expected)
    if passage.status in allowed:
        return None
    right = " or ".join(map(str, sorted(map(int, allowed))))
    guess = f"its text is: {passage.text}" if passage.text else ""
    return mismatch(f"the status of {way.id}", passage.status, right, way.statement.rstrip("."), guess=guess)


def _wrong_values(trial: Trial, call: Call, how: str) -> Mismatch | None:
    """The first element that is not what the plain call gave, where bits are owed."""
    run = Run(call, Outcome(Status.COMPLETED))
    return other_values(trial, run, trial.first, how, "as the plain call gave")


def _harm(way: ExecutorScenario, trial: Trial) -> Iterator[Finding]:
    """What a refusal has done to the plain call."""
    try:
        run = trial.in_mode("")
    except RunFailed as error:
        yield Finding("phase_values", Mismatch(f"after {way.id}: {error}"))
        return
    found = None if run is None else other_values(trial, run, trial.first, f"after {way.id}", "as before it")
    if found:
        yield Finding("phase_values", found)
