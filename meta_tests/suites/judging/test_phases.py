"""Ways through two phases, and sequences: wrong answers are noticed, right ones accepted, nothing undefined asked."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import scatter_backends
import two_operators
from holding import judged_by
from poolproof.backends import torch_streams
from poolproof.backends.aclnn.sequences import ACTIONS, Interpreter, run_sequence
from poolproof.backends.aclnn.status import AclError
from poolproof.backends.base import Backend, Call, Outcome, SequenceResult, Status
from poolproof.references.contract.scenarios import SCENARIOS, ExecutorScenario
from poolproof.references.indices import MASK
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS
from poolproof.references.sequences import (
    FORMS,
    HAZARDS,
    MODES,
    REFUSED,
    VERBS,
    Action,
    Actions,
    abilities_for,
    why_illegal,
)
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.sequences import CallSequence, pairs_visited
from poolproof.suites.cases.varying import beside
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.phases import PhaseQuestion, phase_questions
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import PHASES
from poolproof.suites.plan.blocks import PhaseBlock, SequenceBlock
from poolproof.suites.plan.known import row_problem
from poolproof.suites.plan.lines import line_question, parse_line
from poolproof.suites.plan.plans import PLANS, Plan, Subject, blocks, subjects
from poolproof.suites.run.repetition import attribute
from poolproof.suites.run.sandbox import Sandbox
from scatter import Scatter, completed
from spoilt import SPOILING, Spoilt, spoils

OPERATOR = OPERATORS["MaxPool2dWithIndicesBackward"]
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
NO_OCCASION = phased(run_sequence=lambda *_: SequenceResult(text="phase one requests no workspace", applicable=False))
RAISING = phased(run_sequence=lambda self, *_: 1 / 0)
REFUSING = phased(run=lambda *_: Outcome(Status.REFUSED, 161002, "no such call"))

FAILING = [way for way in ASKED if way.expected]
SUCCEEDING = [way for way in ASKED if way.expected == 0]
OPEN = [way for way in ASKED if way.expected is None]


def test_every_action_can_be_done_and_is_asked_for() -> None:
    sequences = [*(way.actions for way in ASKED), *MODES.values(), *HAZARDS.values(), REFUSED]
    drawn = abilities_for(tuple(Action(verb, what) for verb, (whats, _) in FORMS.items() for what in whats))
    assert drawn.union(*map(abilities_for, sequences)) == {*ACTIONS}
    assert all(callable(getattr(Interpreter, verb, None)) for verb in VERBS)


@pytest.mark.parametrize("way", ASKED, ids=lambda way: way.id)
def test_the_answer_that_is_owed_conforms(way: ExecutorScenario) -> None:
    assert way.statement.endswith(".") and way.source
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
        (phased(calls=exchanged), [SCENARIOS["phase_two.interleaved"]], ["phase_values"]),
        (phased(run=harmed), FAILING, ["phase_values"]),
        (phased(run=lost), FAILING, ["phase_values"]),
    ],
    ids=[
        *("accepts", "refuses otherwise", "refuses what is legal", "refuses what is open", "computes nothing"),
        *("exchanges two calls", "a refusal spoils what follows", "a refusal ends the context"),
    ],
)
def test_a_wrong_answer_is_seen(backend: type[Phased], ways: Iterable[ExecutorScenario], violated: list[str]) -> None:
    assert ways
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
        (NO_OCCASION, Verdict.CONFORMS, "no occasion: phase one requests no workspace"),
    ],
)
def test_what_cannot_be_asked_accuses_nobody(backend: type[Phased], verdict: Verdict, reason: str) -> None:
    row = answer(question(ASKED[0]), backend())
    assert (row["verdict"], row["checks_judged"]) == (verdict, [])
    assert not reason or row["reason"] == reason


def test_only_backends_with_phases_are_asked_for_them() -> None:
    for backend, kinds in ((Scatter(), {SequenceBlock}), (Phased(), {SequenceBlock, PhaseBlock})):
        chosen = subjects("scatter", backend)
        made = list(blocks(chosen, [PHASES], PLANS["smoke"], seed=0))
        assert {*map(type, made)} == kinds
    block = next(each for each in made if isinstance(each, PhaseBlock))
    made = block.questions()
    assert (block.count, block.clauses) == (len(made), Counter(each.scenario.id for each in made))


def test_a_line_is_the_question_again_and_the_row_names_the_way() -> None:
    way, drawn = question(ASKED[0], 1), sequence_block(30).questions()
    row = way.judge(Phased())
    assert (row["aspect"], row["clause"], row["statement"]) == ("phases", ASKED[0].id, ASKED[0].statement)
    line = way.describe()["case"]
    assert row["case"] == line and json.loads(line)["way"] == ASKED[0].id
    for asked in (way, *drawn):
        read = line_question(asked.describe()["case"], PRODUCTS["A2"])
        assert isinstance(read, PhaseQuestion)
        assert (read.scenario, read.cases, read.id) == (asked.scenario, asked.cases, asked.id)
    with pytest.raises(CaseError, match="only be put to a backend with a contract"):
        line_question(line, None)
    assert line_question(drawn[0].to_line(), None).id == drawn[0].id


CALL = '{"operator":"AdaptiveMaxPool2d","shape":[1,4,4],"output_size":[2,2]}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"way": "nowhere", "case": {}}', "way 'nowhere' is none of phase_two.workspace_null, "),
        ('{"way": "executor.destroy_null"}', "is an object of a way and a case"),
        ('{"way": "executor.destroy_null", "case": {}}', "a case needs the field 'operator'"),
        (f'["prepare","run run"],"calls":[{CALL}]', "action 2, run run: drawn sequences do not contain it"),
        (f'["prepare","run executor=x"],"calls":[{CALL}]', "list of actions, such as 'run executor=1', with its calls"),
        (f'["prepare","run","calls":[{CALL}]', "a case is one JSON object"),
        ('["prepare","run"],"calls":[1]', "a sequence is a list of actions"),
        ('["prepare","run"],"calls":[{}]', "a case needs the field 'operator'"),
        (f'["prepare call=1","run"],"calls":[{CALL}]', "there are 1 calls"),
    ],
)
def test_a_wrong_line_is_told(line: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        parse_line(line if line.startswith("{") else f'{{"sequence":{line}}}')


@pytest.mark.parametrize(("code", "status"), [(507053, 507053), (107003, 107003), (207001, None), (0, None)])
def test_a_lack_of_memory_and_a_null_pointer_are_no_answers(code: int, status: int | None) -> None:
    """In place of a device: setting an option fails with ``code``."""

    def fails(enabled: bool) -> None:
        raise AclError("aclrtSetSysParamOpt", code)

    device: Any = SimpleNamespace(set_deterministic=fails)
    call = allocate(make_operands(Case.smallest(OPERATOR)))
    assert run_sequence(device, {}, ASKED[0].actions, [call]).status == status


@pytest.mark.parametrize("product", ["a2", "950"])
def test_the_emulator_answers_as_owed(tmp_path: Path, product: str) -> None:
    asked = phase_questions(OPERATORS["AdaptiveMaxPool3d"], "float32", "int32", PHASES, "block")
    rows = judged_by(f"emulator-{product}", asked, tmp_path)
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}
    missed = {row["clause"] for row in rows} - {row["clause"] for row in rows if row["checks_judged"]}
    assert not missed, "every way has an occasion"


@pytest.mark.parametrize("scenario", SPOILING)
def test_each_scenario_of_legal_arguments_shows_a_defect_of_its_own(tmp_path: Path, scenario: str) -> None:
    operator = OPERATORS["AdaptiveMaxPool3d"]
    asked = phase_questions(operator, "float32", "int32", PHASES, "block")
    with closing(Sandbox("emulator-950", tmp_path, "scenarios", timeout=60.0)) as sandbox:
        sandbox.start()
        right = sandbox.worker.backend_within(60.0)
        spoilt: Any = Spoilt(right, lambda actions: [0] * SPOILING[scenario](actions))
        rows = [each.judge(spoilt) for each in asked]
    assert {row["clause"] for row in rows if row["verdict"] != Verdict.CONFORMS} == {scenario}


KINDS = (0, 0, 1)
NOT_DRAWN = "drawn sequences do not contain it"


def told(text: str) -> Actions:
    return tuple(Action.parse(words) for words in text.split(", "))


def sequence_block(count: int, operator: str = "MaxPool2dWithIndicesBackward", **declared: object) -> SequenceBlock:
    declared = {"product": PRODUCTS["950"], "actions": ACTIONS, **declared}
    subject = Subject("npu", OPERATORS[operator], "float32", "int32", **declared)  # type: ignore[arg-type]
    plan = Plan("meta", round(count / PHASES.weight), "")
    (block,) = (each for each in blocks([subject], [PHASES], plan, 0) if isinstance(each, SequenceBlock))
    return block


def test_sequences_have_calls_in_dtypes_of_the_backend_alone() -> None:
    def dtypes(*declared: str) -> set[str]:
        return {case.dtype for each in sequence_block(200, dtypes=declared).questions() for case in each.sequence.cases}

    assert dtypes("float32") == {"float32"} and dtypes("float32", "float16") == {"float32", "float16"}


TWO, OTHER = "prepare, prepare executor=1, run", "prepare, prepare call=1 executor=1, run"
REPEATABLE, SET, DONE = "prepare uncached, make_repeatable", "set_addresses call", "prepare, run, synchronise"
COPIED, AT_ONCE = "fill inputs, copy inputs stream=2, prepare", "prepare thread=1 at_once"
AGAIN = "run executor=1"


@pytest.mark.parametrize(
    ("illegal", "reason", "legal"),
    [
        ("run", "no such executor", "prepare, run"),
        ("prepare, run, run", "no such executor", "prepare, run, prepare, run"),
        ("prepare, prepare, run", "there already", TWO),
        ("prepare", "no call runs", "prepare, run"),
        ("prepare, run stream=64", "stream is not in [0, 64)", "prepare, run stream=63"),
        ("prepare call=3, run", "there are 3 calls", "prepare call=2, run"),
        ("prepare, run call=1", "run has no call", "prepare call=1, run"),
        ("need a workspace", "do not contain it", "prepare, run"),
        # of streams
        (f"{TWO}, {AGAIN} stream=2", "call 0 is in use on stream 1", f"{TWO}, synchronise, {AGAIN} stream=2"),
        (f"{OTHER}, {AGAIN} stream=2 workspace=0", "workspace 0 is in use", f"{OTHER}, {AGAIN} workspace=0"),
        (f"{COPIED}, record, wait, run", "call 0 is in use on stream 2", f"{COPIED}, record stream=2, wait, run"),
        ("prepare, run, wait stream=2", "nothing recorded", "prepare, run, record, wait stream=2"),
        ("prepare, run, record, record", "recorded before", "prepare, run, record, wait"),
        # of executors
        ("prepare, make_repeatable, run", "came from the library's cache", f"{REPEATABLE}, run, run"),
        ("prepare uncached, run, make_repeatable", "no such executor", f"{REPEATABLE}, run"),
        ("prepare uncached, run", "was not made repeatable", "prepare readdressed, run"),
        (f"{REPEATABLE}, run, make_repeatable", "it ran before", f"{REPEATABLE}, run, synchronise, destroy"),
        ("prepare, destroy asked, run", "no such executor", "prepare, destroy asked, prepare, run"),
        ("prepare, destroy", "must be set if it never ran", "prepare, destroy asked, prepare, run"),
        (f"{REPEATABLE}, run, destroy", "executor 0 is in use", f"{REPEATABLE}, run, synchronise, destroy"),
        ("prepare, set_addresses call=1, run", "not repeatable", "prepare call=1, run"),
        (f"{REPEATABLE}, {SET}=2, run", "differ in more than their data", f"{REPEATABLE}, {SET}=1, run"),
        (f"{REPEATABLE}, run, {SET}=1, run", "executor 0 is in use", f"{REPEATABLE}, run, synchronise, {SET}=1, run"),
        ("prepare, destroy_descriptors, run", "may still need", "prepare, run, destroy_descriptors"),
        # of threads
        ("prepare, run, end_thread thread=1", "no such thread", "prepare, run thread=1, end_thread thread=1"),
        (f"{AT_ONCE}, run", "another phase one, in another thread", f"{AT_ONCE}, prepare call=1 executor=1, run"),
        ("prepare at_once, prepare executor=1, run", "a thread of its own", TWO),
        ("prepare, run, prepare thread=1 at_once", "nothing begins", "prepare, run, prepare thread=1"),
        # of data
        ("fill inputs, prepare, run", "inputs are not there", "fill inputs, prepare, upload, run"),
        ("prepare, run, fill outputs", "call 0 is in use", f"{DONE}, copy outputs, synchronise, fill outputs"),
        (f"{DONE}, fill outputs", "are lost", "prepare, run, erase outputs, prepare, run"),
        ("prepare, run, upload", "call 0 is in use", f"{DONE}, upload"),
        ("copy inputs, prepare, run", "its inputs are there", "erase, copy inputs, prepare, run"),
        ("copy outputs, prepare, run", "has no results", "prepare, run, copy outputs, erase outputs"),
        ("refuse, prepare, run", "a refusal must be", "refuse asked, prepare, run"),
    ],
)
def test_what_no_source_defines_is_illegal(illegal: str, reason: str, legal: str) -> None:
    assert reason in why_illegal(told(illegal), KINDS)
    assert not why_illegal(told(legal), KINDS)


def test_what_sources_define_is_legal() -> None:
    known = {**MODES, **HAZARDS, **{way.id: way.actions for way in SCENARIOS.values() if not way.expected}}
    illegal = {name: reason for name, actions in known.items() if (reason := why_illegal(actions, (0, 0)))}
    assert {name: reason.partition(": ")[2] or reason for name, reason in illegal.items()} == {
        "with repeated executor": NOT_DRAWN,
        "with two inputs in one memory": NOT_DRAWN,
        "with two inputs in memory that overlaps": NOT_DRAWN,
        "phase_two.workspace_unasked": NOT_DRAWN,
        "phase_two.workspace_understated": NOT_DRAWN,
        "phase_two.workspace_enlarged": NOT_DRAWN,
        "phase_two.workspace_shifted": NOT_DRAWN,
        "executor.repeatable_from_cache": "make_repeatable has no asked",
        "phase_one.two_threads": "an uncached executor was not made repeatable, so the library's cache keeps it",
    }


@pytest.mark.parametrize("actions", [ACTIONS, torch_streams.ACTIONS, Scatter.actions], ids=["aclnn", "torch", "plain"])
def test_drawn_sequences_are_legal_and_depend_on_the_seed_alone(actions: tuple[str, ...]) -> None:
    first, again = (sequence_block(60, actions=actions).questions() for _ in range(2))
    assert [question.to_line() for question in first] == [question.to_line() for question in again]
    sequences = [question.sequence for question in first]
    assert not any(sequence.why_illegal() for sequence in sequences)
    assert set().union(*(abilities_for(sequence.actions) for sequence in sequences)) <= {*actions}
    assert {len(sequence.cases) for sequence in sequences} == {1, 2, 3}
    assert max(sum(action.do == "run" for action in sequence.actions) for sequence in sequences) > 3


def test_what_a_backend_lacks_is_not_drawn_and_no_line_of_it_conforms() -> None:
    drawn = {has: sequence_block(200, index_dtypes=has).questions() for has in (("int32",), ("int32", "int64"))}
    stored = {has: {case.index_dtype for each in asked for case in each.cases} for has, asked in drawn.items()}
    assert stored == {has: {*has} for has in drawn}
    lacking = type("Lacking", (Scatter,), {"unsupported": lambda *_: "no such indices"})()
    row = drawn["int32",][0].judge(lacking)
    assert (row["verdict"], row["reason"]) == (Verdict.NOT_SUPPORTED, "no such indices")


@pytest.mark.parametrize("product", ["A2", "950"])
def test_a_right_library_is_not_accused(tmp_path: Path, product: str) -> None:
    block = sequence_block(150, "MaxPool3dWithArgmaxBackward", product=PRODUCTS[product])
    rows = judged_by(f"emulator-{product.lower()}", block.questions(), tmp_path)
    right = (Verdict.CONFORMS, Verdict.REFUSED)
    assert not [(row["reason"], row["case"]) for row in rows if row["verdict"] not in right]
    assert sum(bool(row["checks_judged"]) for row in rows) > 120


def test_a_sequence_whose_mask_no_forward_may_make_is_refused(tmp_path: Path) -> None:
    """An honest acceptance run of an A2 was incomplete by six of them."""
    operator = {"operator": "MaxPool2dWithMaskBackward", "index_dtype": "int8", "shape": [1, 1, 4, 4]}
    calls = [operator | {"kernel_size": [1, 1], "dilation": [length, length]} for length in (1, 2)]
    line = json.dumps({"sequence": ["prepare", "prepare call=1 executor=1", "run"], "calls": calls})
    (row,) = judged_by("emulator-a2", [line_question(line, None)], tmp_path)
    assert (row["verdict"], row["reason"][:27]) == ("refused as documented", "the forward does not make a")


def test_what_is_wrong_is_found_and_made_as_small_as_it_can_be(tmp_path: Path) -> None:
    """Of a defect that a run on the third stream shows behind a refusal, whatever lies between."""
    block = sequence_block(200)
    with closing(Sandbox("emulator-950", tmp_path, "sequences", timeout=60.0)) as sandbox:
        sandbox.start()
        spoilt = Spoilt(sandbox.worker.backend_within(60.0))

        def fails(question: Question) -> bool:
            return question.judge(spoilt)["checks_violated"] == ["phase_values"]  # type: ignore[arg-type]

        found = next(each for each in block.questions() if spoils(each.scenario.actions) and fails(each))
        smallest = block.smaller(found, fails, 60.0)
        assert smallest is not None
        row = smallest.judge(spoilt)  # type: ignore[arg-type]
    record = json.loads(row["case"])
    assert record["sequence"] == ["refuse call=1 asked", "prepare", "run stream=2"]
    assert [call["shape"] for call in record["calls"]] == [[1, 1, 1], [1, 1, 1]]
    place = "grad_input[0, 0, 0] of call 0, behind action 3 of 3 (run stream=2)"
    assert row["reason"].startswith(f"{place}: got 2, expected "), row["reason"]


def several(count: int, backend: Backend, **declared: object) -> SequenceBlock:
    """A block of sequences, of a backend with more operators."""
    supported = tuple(each for each in subjects("npu", backend) if not each.unsupported)
    return sequence_block(count, supported=supported, **declared)


def test_every_other_operator_runs_before_and_behind_in_an_acceptance_plan() -> None:
    block = several(150, Scatter(), actions=Scatter.actions)
    orders, verbs = pairs_visited(question.sequence for question in block.questions())
    others = {name for name, each in OPERATORS.items() if each.indices is not MASK} - {OPERATOR.name}
    assert {OPERATOR.name, *others} == {name for pair in orders for name in pair}
    assert {pair for name in others for pair in ((OPERATOR.name, name), (name, OPERATOR.name))} <= orders
    assert verbs == {*product(("prepare", "run"), repeat=2)}


def test_drawn_sequences_reach_actions_after_others() -> None:
    """Of one operator in one pair of dtypes. All of an acceptance plan reach 253 of 256 pairs; two are illegal."""
    _, verbs = pairs_visited(question.sequence for question in sequence_block(200).questions())
    assert len(verbs) > 150 and len({first for first, second in verbs if second == "make_repeatable"}) > 4


@pytest.mark.parametrize(("plain", "other"), [*permutations(OPERATORS.values(), 2)], ids=lambda each: each.name)
def test_the_call_of_another_operator_has_much_in_common(plain: Operator, other: Operator) -> None:
    made = beside(Case.smallest(plain, "float16"), other, "float16", other.indices.dtypes[0])
    assert made is not None and made.operator == other.name
    assert made.pooled_shape[-2:] == (1, 1) and made.shape[-2:] == (2, 2)


@pytest.mark.parametrize(
    ("backend", "actions"),
    [
        (two_operators.key_lacks_operator, ["prepare call=1", "run", "prepare executor=1"]),
        (two_operators.one_slot_between_phases, ["prepare", "prepare call=1 executor=1", "run"]),
    ],
)
def test_what_one_operator_leaves_to_another_is_found_and_told(backend: type[Scatter], actions: list[str]) -> None:
    """Each question has a process of its own."""
    block = several(40, Scatter(), actions=Scatter.actions)

    def fails(question: Question) -> bool:
        return question.judge(backend())["checks_violated"] in (["phase_values"], ["phase_criterion"])

    found = next(filter(fails, block.questions()))
    smallest = block.smaller(found, fails, 60.0)
    assert smallest is not None
    row = smallest.judge(backend())
    record = json.loads(row["case"])
    first, second = (call["operator"] for call in record["calls"])
    assert record["sequence"] == actions and OPERATOR.name in (first, second) and first != second
    assert any(f"({one}, with calls of {other})" in row["reason"] for one, other in ((first, second), (second, first)))
    assert line_question(row["case"], None).judge(backend())["reason"] == row["reason"]
    assert line_question(row["case"], None).judge(Scatter())["verdict"] == Verdict.CONFORMS


def test_a_sequence_is_not_accused_of_what_one_of_its_operators_does_wrong_alone() -> None:
    """A forward that is wrong by itself is blamed; a backward with it conforms."""
    sequence = CallSequence(told("prepare, run, prepare call=1 executor=1, run executor=1"), two_calls())
    asked, wrong = PhaseQuestion.of_sequence(sequence, PHASES), scatter_backends.zero_padded()

    def ask(question: Question) -> dict[str, Any]:
        return question.judge(wrong) | {"backend": "scatter_backends:zero_padded", "given": None}

    row = ask(asked)
    rows = attribute(asked, row, ask)
    assert row["verdict"] == Verdict.VIOLATES
    assert [(each["verdict"], each["operator"]) for each in rows] == [
        (Verdict.CONFORMS, OPERATOR.name),
        (Verdict.VIOLATES, "MaxPool2dWithIndices"),
    ]


def two_calls() -> tuple[Case, Case]:
    """A backward and a forward whose maxima are negative."""
    backward = replace(Case.smallest(OPERATOR), values="mostly_negative_infinity")
    forward = beside(backward, OPERATORS["MaxPool2dWithIndices"], "float32", "int64")
    assert forward is not None
    return backward, forward


def test_a_status_is_told_with_its_action() -> None:
    """Those that are asked for may be any."""
    asked = line_question(f'{{"sequence":["refuse asked","prepare","run"],"calls":[{CALL}]}}', None)

    def row(*statuses: int) -> dict[str, object]:
        result = SequenceResult(statuses, "no such stream", (0,) * (len(statuses) == 3))
        return asked.judge(type("Ended", (Scatter,), {"actions": ACTIONS, "run_sequence": lambda *_: result})())

    assert row(161002, 0, 507000)["reason"] == (
        "the status of action 3 of 3 (run): got 507000, expected 0, "
        "A call gives the same result whatever ran before it; its text is: no such stream"
    )


OF_A2 = {"operator": "MaxPool2dWithIndicesBackward", "shape": [1, 1, 4, 4], "index_dtype": "int32"}


@pytest.mark.parametrize("second", [[1, 1], [2, 2]])
def test_whichever_call_of_a_sequence_is_refused_the_row_says_what_its_document_says(second: list[int]) -> None:
    """A sequence was held to its first call alone, and honest runs with it did not stand."""
    calls = [OF_A2 | {"kernel_size": [2, 2], "dilation": dilation} for dilation in ([1, 1], second)]
    row = {"backend": "emulator-a2", "product": "A2", "model": None, "verdict": "refused as documented"}
    row |= {"reason": "161002 in phase 1 by 2d-bwd.dilation.one: Every value of dilation is 1."}
    row |= {"case": json.dumps({"sequence": ["prepare", "prepare call=1"], "calls": calls})}
    assert bool(row_problem(row, {"backends": {}})) is (second == [1, 1])
