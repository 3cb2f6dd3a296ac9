"""Ways through two phases: every wrong answer is noticed, no right one accused, and nothing undefined is asked."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holding import judged_by
from poolproof.backends.aclnn.sequences import ACTIONS, Interpreter, run_sequence
from poolproof.backends.aclnn.status import AclError
from poolproof.backends.base import Call, Outcome, SequenceResult, Status
from poolproof.references.contract.scenarios import SCENARIOS, ExecutorScenario
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.references.sequences import FORMS, HAZARDS, MODES, REFUSED, VERBS, Action, Actions, abilities_for
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.phases import PhaseQuestion, phase_questions
from poolproof.suites.plan.aspects import PHASES
from poolproof.suites.plan.blocks import PhaseBlock, SequenceBlock
from poolproof.suites.plan.lines import line_question, parse_line
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter, completed

OPERATOR = OPERATORS["MaxPool2dWithIndicesBackward"]
BOTH = ("phase_two.interleaved",)
ASKED = tuple(SCENARIOS.values())


def question(way: ExecutorScenario, number: int = 0) -> PhaseQuestion:
    asked = phase_questions(OPERATOR, "float32", "int32", PHASES, "block")
    return [each for each in asked if each.scenario == way][number]


class Phased(Scatter):
    """Answers as owed; ``work`` on the calls of the ways that go through. After a refusal it is ``spoilt``."""

    actions = ACTIONS
    spoilt = False

    def status(self, way: ExecutorScenario) -> int:
        return way.expected or 0

    def calls(self, calls: Sequence[Call]) -> Sequence[Call]:
        return calls

    def work(self, call: Call) -> None:
        self.run(call)

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        (way,) = (way for way in ASKED if way.actions == actions)
        if status := self.status(way):
            self.spoilt = True
            return SequenceResult((status,), "why")
        for each in self.calls(calls):
            self.work(each)
        return completed(actions, calls)


def phased(**steps: Callable[..., Any]) -> type[Phased]:
    """A backend that does some steps otherwise."""
    return type("Otherwise", (Phased,), steps)


def exchanged(self: Phased, calls: Sequence[Call]) -> Sequence[Call]:
    """Of two calls each gets the other's data."""
    for name in calls[0].operator.inputs:
        ours, theirs = (call.tensors[name].array for call in (calls[0], calls[-1]))
        kept = ours.copy()
        ours[...], theirs[...] = theirs, kept
    return calls


def harmed(self: Phased, call: Call, mode: str = "") -> Outcome:
    """A refusal spoils every later call."""
    outcome = Scatter.run(self, call, mode)
    if self.spoilt:
        for name in call.operator.outputs:
            call.tensors[name].array[...] = 0
    return outcome


def lost(self: Phased, call: Call, mode: str = "") -> Outcome:
    """A refusal ends the context."""
    return Outcome(Status.REFUSED, 507053, "the card is lost") if self.spoilt else Scatter.run(self, call, mode)


ACCEPTS, REFUSES = phased(status=lambda self, way: 0), phased(status=lambda self, way: 361001)
REFUSES_OTHERWISE = phased(status=lambda self, way: 507000 if way.expected else 0)
UNAVAILABLE = phased(run_sequence=lambda *_: SequenceResult(text="no device memory"))
NO_OCCASION = phased(run_sequence=lambda *_: SequenceResult(text="phase one asks for no workspace", applicable=False))
RAISING = phased(run_sequence=lambda self, *_: 1 / 0)
REFUSING = phased(run=lambda *_: Outcome(Status.REFUSED, 161002, "no such call"))

FAILING = [way for way in ASKED if way.expected]
SUCCEEDING = [way for way in ASKED if way.expected == 0]
OPEN = [way for way in ASKED if way.expected is None]


def test_every_kind_of_answer_is_owed_somewhere() -> None:
    assert FAILING and SUCCEEDING and OPEN
    assert len(FAILING) + len(SUCCEEDING) + len(OPEN) == len(ASKED)
    assert all(way.statement.endswith(".") and way.source for way in SCENARIOS.values())


def test_every_action_can_be_done_and_is_asked_for() -> None:
    sequences = [*(way.actions for way in ASKED), *MODES.values(), *HAZARDS.values(), REFUSED]
    drawn = abilities_for(tuple(Action(verb, what) for verb, (whats, _) in FORMS.items() for what in whats))
    assert drawn.union(*map(abilities_for, sequences)) == {*ACTIONS}
    assert all(callable(getattr(Interpreter, verb, None)) for verb in VERBS)


@pytest.mark.parametrize("way", ASKED, ids=lambda way: way.id)
def test_the_answer_that_is_owed_conforms(way: ExecutorScenario) -> None:
    for number in range(3):
        row = question(way, number).judge(Phased())
        assert row["verdict"] == Verdict.CONFORMS, row["reason"]
        assert set(row) <= set(SCHEMA.names)


@pytest.mark.parametrize(
    ("backend", "ways", "violated"),
    [
        (ACCEPTS, FAILING, ["phase_status"]),
        (REFUSES_OTHERWISE, FAILING, ["phase_status"]),
        (REFUSES, SUCCEEDING, ["phase_status"]),
        (REFUSES, OPEN, []),
        (phased(work=lambda self, call: None), [*SUCCEEDING, *OPEN], ["phase_values"]),
        (phased(calls=exchanged), [SCENARIOS[way] for way in BOTH], ["phase_values"]),
        (phased(run=harmed), FAILING, ["phase_values"]),
        (phased(run=lost), FAILING, ["phase_values"]),
    ],
    ids=[
        *("accepts", "refuses otherwise", "refuses what is legal", "refuses what is open", "computes nothing"),
        *("exchanges two calls", "a refusal spoils what follows", "a refusal ends the context"),
    ],
)
def test_a_wrong_answer_is_seen(backend: type[Phased], ways: Iterable[ExecutorScenario], violated: list[str]) -> None:
    for way in ways:
        assert question(way).judge(backend())["checks_violated"] == violated, way.id


def test_the_message_names_the_way_what_came_and_what_was_expected() -> None:
    row = question(SCENARIOS["phase_two.executor_null"]).judge(REFUSES_OTHERWISE())
    told = "got 507000, expected 161001, The executor is not null; its text is: why"
    assert row["reason"] == f"the status of phase_two.executor_null: {told}"


@pytest.mark.parametrize(
    ("backend", "verdict", "reason"),
    [
        (UNAVAILABLE, Verdict.NOT_RUN, ""),
        (REFUSING, Verdict.NOT_RUN, ""),
        (RAISING, Verdict.ADAPTER_ERROR, ""),
        (NO_OCCASION, Verdict.CONFORMS, "no occasion: phase one asks for no workspace"),
    ],
)
def test_what_cannot_be_asked_accuses_nobody(backend: type[Phased], verdict: Verdict, reason: str) -> None:
    row = answer(question(ASKED[0]), backend())
    assert (row["verdict"], row["checks_judged"]) == (verdict, [])
    assert not reason or row["reason"] == reason


def test_only_backends_with_phases_are_asked_for_them() -> None:
    for backend, kinds in ((Scatter(), {SequenceBlock}), (Phased(), {SequenceBlock, PhaseBlock})):
        chosen = subjects("scatter", backend)
        assert {*map(type, blocks(chosen, [PHASES], PLANS["smoke"], seed=0))} == kinds


def test_a_line_is_the_question_again_and_the_row_names_the_way() -> None:
    asked = question(ASKED[0], 1)
    row = asked.judge(Phased())
    assert (row["aspect"], row["clause"], row["statement"]) == ("phases", ASKED[0].id, ASKED[0].statement)
    line = asked.describe()["case"]
    assert row["case"] == line and json.loads(line)["way"] == ASKED[0].id
    parse_line(line)
    read = line_question(line, PRODUCTS["A2"])
    with pytest.raises(CaseError, match="only be put to a backend with a contract"):
        line_question(line, None)
    assert isinstance(read, PhaseQuestion)
    assert (read.scenario, read.cases, read.id) == (asked.scenario, asked.cases, asked.id)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"way": "nowhere", "case": {}}', "way 'nowhere' is none of phase_two.workspace_null, "),
        ('{"way": "executor.destroy_null"}', "is an object of a way and a case"),
        ('{"way": "executor.destroy_null", "case": {}}', "a case needs the field 'operator'"),
    ],
)
def test_a_wrong_line_is_told(line: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        parse_line(line)


class Failing:
    """In place of a device: setting an option fails with ``code``."""

    def __init__(self, code: int) -> None:
        self.code = code

    def set_deterministic(self, enabled: bool) -> None:
        raise AclError("aclrtSetSysParamOpt", self.code)


@pytest.mark.parametrize(("code", "status"), [(507053, 507053), (107003, 107003), (207001, None), (0, None)])
def test_a_lack_of_memory_and_a_null_pointer_are_no_answers(code: int, status: int | None) -> None:
    call = allocate(make_operands(Case.smallest(OPERATOR)), 0)
    result = run_sequence(Failing(code), {}, ASKED[0].actions, [call])  # type: ignore[arg-type]
    assert result.status == status


@pytest.mark.parametrize("product", ["a2", "950"])
def test_the_emulator_answers_as_owed(tmp_path: Path, product: str) -> None:
    asked = phase_questions(OPERATORS["AdaptiveMaxPool3d"], "float32", "int32", PHASES, "block")
    rows = judged_by(f"emulator-{product}", asked, tmp_path)
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}
    missed = {row["clause"] for row in rows} - {row["clause"] for row in rows if row["checks_judged"]}
    assert not missed, "every way has an occasion"
