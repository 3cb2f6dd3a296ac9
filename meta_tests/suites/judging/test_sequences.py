"""Drawn sequences: only what callers may do is drawn, no right backend is accused, what is wrong becomes one line."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from drawn_defects import Defect, Spoilt
from holding import judged_by
from poolproof.backends import torch_streams
from poolproof.backends.aclnn.sequences import ACTIONS
from poolproof.backends.base import SequenceResult
from poolproof.references.contract.scenarios import SCENARIOS
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.references.sequences import HAZARDS, MODES, Action, Actions, abilities_for, why_illegal
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import CaseError
from poolproof.suites.isolation.sandbox import Sandbox
from poolproof.suites.judging.phases import PhaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import PHASES
from poolproof.suites.plan.blocks import SequenceBlock
from poolproof.suites.plan.known import row_problem
from poolproof.suites.plan.lines import line_question
from poolproof.suites.plan.plans import Plan, Subject, blocks
from scatter import Scatter

KINDS = (0, 0, 1)
NOT_DRAWN = "it is not a part of sequences that are drawn"


def told(text: str) -> Actions:
    return tuple(Action.parse(words) for words in text.split(", "))


def sequence_block(count: int, operator: str = "MaxPool2dWithIndicesBackward", **declared: object) -> SequenceBlock:
    declared = {"product": PRODUCTS["950"], "actions": ACTIONS, **declared}
    subject = Subject("npu", OPERATORS[operator], "float32", "int32", **declared)  # type: ignore[arg-type]
    plan = Plan("meta", round(count / PHASES.weight), "")
    (block,) = (each for each in blocks([subject], [PHASES], plan, 0) if isinstance(each, SequenceBlock))
    return block


TWO, OTHER = "prepare, prepare executor=1, run", "prepare, prepare call=1 executor=1, run"
REPEATABLE, SET, DONE = "prepare uncached, make_repeatable", "set_addresses call", "prepare, run, synchronise"
COPIED, AT_ONCE = "fill inputs, copy inputs stream=2, prepare", "prepare thread=1 at_once"


@pytest.mark.parametrize(
    ("illegal", "reason", "legal"),
    [
        ("run", "no such executor", "prepare, run"),
        ("prepare, run, run", "no such executor", "prepare, run, prepare, run"),
        ("prepare, prepare, run", "there already", TWO),
        ("prepare", "no call runs", "prepare, run"),
        ("prepare, run stream=64", "64 or more", "prepare, run stream=63"),
        ("prepare call=3, run", "there are 3 calls", "prepare call=2, run"),
        ("prepare, run call=1", "run has no call", "prepare call=1, run"),
        ("need a workspace", "not a part", "prepare, run"),
        # of streams
        (
            f"{TWO}, run executor=1 stream=2",
            "call 0 is in use on stream 1",
            f"{TWO}, synchronise, run executor=1 stream=2",
        ),
        (
            f"{OTHER}, run executor=1 stream=2 workspace=0",
            "workspace 0 is in use",
            f"{OTHER}, run executor=1 workspace=0",
        ),
        (f"{COPIED}, record, wait, run", "call 0 is in use on stream 2", f"{COPIED}, record stream=2, wait, run"),
        ("prepare, run, wait stream=2", "nothing recorded", "prepare, run, record, wait stream=2"),
        ("prepare, run, record, record", "recorded before", "prepare, run, record, wait"),
        # of executors
        ("prepare, make_repeatable, run", "cache knows it", f"{REPEATABLE}, run, run"),
        ("prepare uncached, run, make_repeatable", "no such executor", f"{REPEATABLE}, run"),
        ("prepare uncached, run", "keeps what was prepared", "prepare readdressed, run"),
        (f"{REPEATABLE}, run, make_repeatable", "it ran before", f"{REPEATABLE}, run, synchronise, destroy"),
        ("prepare, destroy asked, run", "no such executor", "prepare, destroy asked, prepare, run"),
        ("prepare, destroy", "asked for where it never ran", "prepare, destroy asked, prepare, run"),
        (f"{REPEATABLE}, run, destroy", "executor 0 is in use", f"{REPEATABLE}, run, synchronise, destroy"),
        ("prepare, set_addresses call=1, run", "not repeatable", "prepare call=1, run"),
        (f"{REPEATABLE}, {SET}=2, run", "differ in more than their data", f"{REPEATABLE}, {SET}=1, run"),
        (f"{REPEATABLE}, run, {SET}=1, run", "executor 0 is in use", f"{REPEATABLE}, run, synchronise, {SET}=1, run"),
        ("prepare, destroy_descriptors, run", "may still need", "prepare, run, destroy_descriptors"),
        # of threads
        ("prepare, run, end_thread thread=1", "no such thread", "prepare, run thread=1, end_thread thread=1"),
        (f"{AT_ONCE}, run", "another, in another thread", f"{AT_ONCE}, prepare call=1 executor=1, run"),
        ("prepare at_once, prepare executor=1, run", "a thread of its own", TWO),
        ("prepare, run, prepare thread=1 at_once", "nothing begins", "prepare, run, prepare thread=1"),
        # of data
        ("fill inputs, prepare, run", "inputs are not there", "fill inputs, prepare, upload, run"),
        ("prepare, run, fill outputs", "call 0 is in use", f"{DONE}, copy outputs, synchronise, fill outputs"),
        (f"{DONE}, fill outputs", "are gone", "prepare, run, erase outputs, prepare, run"),
        ("prepare, run, upload", "call 0 is in use", f"{DONE}, upload"),
        ("copy inputs, prepare, run", "its inputs are there", "erase, copy inputs, prepare, run"),
        ("copy outputs, prepare, run", "has no results", "prepare, run, copy outputs, erase outputs"),
        ("refuse, prepare, run", "is asked for", "refuse asked, prepare, run"),
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
        "executor.repeatable_from_cache": "make_repeatable has no asked",
        "phase_one.two_threads": "the library's cache keeps what was prepared uncached and not made repeatable",
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


def test_a_line_is_the_question_again() -> None:
    for asked in sequence_block(30).questions():
        read = line_question(asked.to_line(), None)
        assert isinstance(read, PhaseQuestion)
        assert (read.scenario, read.cases, read.id) == (asked.scenario, asked.cases, asked.id)
    record = json.loads(asked.to_line())
    assert record.keys() == {"sequence", "calls"} and len(record["calls"]) == len(asked.cases)


CALL = '{"operator":"AdaptiveMaxPool2d","shape":[1,4,4],"output_size":[2,2]}'


@pytest.mark.parametrize(
    ("sequence", "calls", "said"),
    [
        ('["prepare","run run"]', CALL, "action 2, run run: it is not a part of sequences"),
        ('["prepare","run executor=x"]', CALL, "list of actions, such as 'run executor=1', with its calls"),
        ('["prepare","run"', CALL + "]", "a case is one JSON object"),
        ('["prepare","run"]', "1", "a sequence is a list of actions"),
        ('["prepare","run"]', "{}", "a case needs the field 'operator'"),
        ('["prepare call=1","run"]', CALL, "there are 1 calls"),
        (
            '["prepare","run"]',
            CALL + "," + CALL.replace("2d", "3d").replace("[1,", "[1,4,"),
            "output_size|one operator",
        ),
    ],
)
def test_a_wrong_line_is_told(sequence: str, calls: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        line_question(f'{{"sequence":{sequence},"calls":[{calls}]}}', None)


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
    defect, block = Defect("refuse", "", None, ("stream", 2), same=False), sequence_block(200)
    with closing(Sandbox("emulator-950", tmp_path, "sequences", timeout=60.0)) as sandbox:
        sandbox.start()
        spoilt = Spoilt(sandbox.backend_within(60.0), defect)

        def fails(question: Question) -> bool:
            return question.judge(spoilt)["checks_violated"] == ["phase_values"]  # type: ignore[arg-type]

        found = next(each for each in block.questions() if defect.spoils(each.scenario.actions) and fails(each))
        smallest = block.smaller(found, fails, 60.0)
        assert smallest is not None
        row = smallest.judge(spoilt)  # type: ignore[arg-type]
    record = json.loads(row["case"])
    assert record["sequence"] == ["refuse call=1 asked", "prepare", "run stream=2"]
    assert [call["shape"] for call in record["calls"]] == [[1, 1, 1], [1, 1, 2]]
    place = "grad_input[0, 0, 0] of call 0, behind action 3 of 3 (run stream=2)"
    assert row["reason"].startswith(f"{place}: got 2, expected "), row["reason"]


def test_a_status_is_told_with_its_action() -> None:
    """Those that are asked for may be any."""
    asked = line_question(f'{{"sequence":["refuse asked","prepare","run"],"calls":[{CALL}]}}', None)

    def row(*statuses: int) -> dict[str, object]:
        result = SequenceResult(statuses, "no such stream", (0,) * (len(statuses) == 3))
        return asked.judge(type("Ended", (Scatter,), {"actions": ACTIONS, "run_sequence": lambda *_: result})())

    assert row(161002, 0, 507000)["reason"] == (
        "the status of action 3 of 3 (run): got 507000, expected 0, Whatever was done before, a call gives what it "
        "gives alone; its text is: no such stream"
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
