"""A call is not accused of what another call, made before it in its process, does wrong by itself."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from places import SUPPORT
from poolproof.reports.recorder import finished_work
from poolproof.reports.rows.evidence import case_name, evidence_path
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, read_rows
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.varying import producers
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ASPECTS, EVERYTHING
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.run.repetition import ENOUGH, shortest_before
from poolproof.suites.run.runner import Runner
from poolproof.suites.run.sandbox import Sandbox
from sessions import replay
from shares import a_share

RIGHT = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 2, 7, 7), kernel_size=(2, 2), stride=(3, 3), index_dtype="int32"
)
"""Its twin has a kernel three wide, and a neighbour has ceil_mode."""

FORWARD = "MaxPool2dWithIndices"


@pytest.fixture
def runner(tmp_path: Path, forked_sandboxes: None) -> Iterator[Runner]:
    runner = Runner(tmp_path, "main", lambda row: row, lambda row: None, 20.0, shrinks=False)
    yield runner
    runner.close()


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_resumed_run_does_not_accuse_the_other_call_again(tmp_path: Path) -> None:
    """Its row was recorded, and the process was killed before that of the question which led to it."""
    backend = "plugged_backends:dies_of_threes"
    for _ in range(2):
        writer = RowWriter(tmp_path, "main")
        done = finished_work(tmp_path)
        runner = Runner(tmp_path, "main", lambda row: row, writer.append, 20.0, False, done)
        runner.judge_one(CaseQuestion(RIGHT, ASPECTS["state"], "block"), backend)
        runner.close()
        writer.close()
    rows = read_rows(tmp_path, ["block", "verdict"]).to_pylist()
    assert [row["verdict"] for row in rows if not row["block"]] == [Verdict.CRASHED]
    assert [row["verdict"] for row in rows if row["block"]] == [Verdict.CONFORMS] * 2


def test_whose_death_it_was_is_not_asked_again_when_it_repeats(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hang takes its whole time-out whenever it is asked: once without the other calls, then `ENOUGH` times."""
    asked: list[str] = []
    alone = Sandbox.judge_alone

    def counted(sandbox: Sandbox, question: Question) -> Row:
        asked.append(question.id)
        return alone(sandbox, question)

    monkeypatch.setattr(Sandbox, "judge_alone", counted)
    (row,) = judged(runner, "dying_backends:crashes_always")
    assert (row["verdict"], row["failed_again"], len(asked)) == (Verdict.CRASHED, ENOUGH, 1 + ENOUGH)


def judged(runner: Runner, backend: str, aspect: str = "state", case: Case = RIGHT) -> tuple[Row, ...]:
    return runner.judge_one(CaseQuestion(case, ASPECTS.get(aspect, EVERYTHING), "block"), backend)


@pytest.mark.parametrize("aspect", ["state", "case"])
@pytest.mark.parametrize(
    ("backend", "verdict", "check"),
    a_share(
        [
            ("dies_of_threes", Verdict.CRASHED, "survival"),
            ("unforkable_dies_of_threes", Verdict.CRASHED, "survival"),
            ("loses_threes", Verdict.VIOLATES, "interval"),
            ("tramples_at_ceiling", Verdict.VIOLATES, "memory_untouched"),
        ],
        2,
    ),
)
def test_the_other_call_is_accused(
    runner: Runner, tmp_path: Path, backend: str, verdict: Verdict, check: str, aspect: str
) -> None:
    row, guilty = judged(runner, f"plugged_backends:{backend}", aspect)
    assert (row["case_id"], row["verdict"], row["checks_violated"]) == (RIGHT.id, Verdict.CONFORMS, [])
    assert "state" in row["checks_judged"]
    assert (guilty["verdict"], guilty["aspect"]) == (verdict, "neighbours")
    assert check in guilty["checks_violated"]
    assert Case.from_json(guilty["case"]).attributes.sizes != RIGHT.attributes.sizes or guilty["ceil_mode"]
    said = "judged without an earlier call that deviates by itself: poolproof replay --backend plugged_backends:"
    assert row["reason"].startswith(f"{said}{backend} ")
    assert row["reason"].endswith(f" '{guilty['case']}'")
    assert not evidence_path(tmp_path, RIGHT.id, guilty["backend"]).exists()
    assert evidence_path(tmp_path, guilty["case_id"], guilty["backend"]).exists()


@pytest.mark.parametrize(
    ("backend", "operator", "verdict", "checks"),
    a_share(
        [
            ("plugged_backends:RemembersCeiling", RIGHT.operator, Verdict.VIOLATES, "state"),
            ("plugged_backends:LosesThreesAndRemembers", RIGHT.operator, Verdict.VIOLATES, "state"),
            ("plugged_backends:crashes_always", RIGHT.operator, Verdict.CRASHED, "survival"),
            ("scatter_backends:remembers", RIGHT.operator, Verdict.VIOLATES, "scale_equivariance state"),
            ("scatter_backends:remembers_windows", FORWARD, Verdict.VIOLATES, "state"),
        ],
        2,
    ),
)
def test_who_dies_by_itself_or_is_wrong_after_calls_that_are_right_stays_accused(
    runner: Runner, tmp_path: Path, backend: str, operator: str, verdict: Verdict, checks: str
) -> None:
    """All the other calls are right if each has a process of its own, and only then."""
    (row,) = judged(runner, backend, case=replace(RIGHT, operator=operator))
    assert {path.stem for path in tmp_path.rglob("*.npz")} <= {case_name(row["case_id"], row["backend"])}
    assert (row["verdict"], row["checks_violated"]) == (verdict, checks.split())


EMPTY_WINDOW = Case.of(
    RIGHT.operator, shape=(1, 1, 4, 4), kernel_size=(2, 2), stride=(1, 1), padding=(1, 1), dilation=(5, 5)
)


@pytest.mark.parametrize(
    ("backend", "aspect", "case", "cleared", "verdict"),
    [
        ("plugged_backends:dies_in_forward", "round_trip", RIGHT, Verdict.CONFORMS, Verdict.CRASHED),
        ("scatter_backends:tensor_indices", "round_trip", RIGHT, Verdict.CONFORMS, Verdict.VIOLATES),
        ("plugged_backends:dies_in_forward", "empty_windows", EMPTY_WINDOW, Verdict.NOT_RUN, Verdict.CRASHED),
    ],
)
def test_a_backward_is_not_accused_of_its_forward(
    runner: Runner, backend: str, aspect: str, case: Case, cleared: Verdict, verdict: Verdict
) -> None:
    row, guilty = judged(runner, backend, aspect, case)
    assert (row["verdict"], guilty["verdict"], guilty["operator"]) == (cleared, verdict, FORWARD)
    assert guilty["case_id"] in {producer.id for producer in producers(case)}


def test_replay_tells_of_both(tmp_path: Path) -> None:
    given = f"--backend plugged_backends:dies_of_threes --pythonpath '{SUPPORT}'"
    ended = replay(f"poolproof replay {given} '{RIGHT.to_json()}'", tmp_path)
    assert ended.returncode == 1
    assert "conforms: judged without an earlier call" in ended.stdout
    assert "crashed: crashed" in ended.stdout


@pytest.mark.parametrize(("needed", "most"), [({99}, 8), ({40}, 40), ({3, 70}, 60), ({100}, 10)])
def test_the_shortest_list_of_earlier_calls_is_found_in_few_calls(needed: set[int], most: int) -> None:
    asked: list[Sequence[int]] = []

    def fails(numbers: Sequence[int]) -> bool:
        asked.append(numbers)
        return needed <= {*numbers}

    found = shortest_before(range(100), fails, time.monotonic() + 60.0)
    assert [*found] == sorted(needed - {100}) and len(asked) <= most


def test_what_hangs_on_earlier_calls_is_told_as_a_sequence_that_replays(tmp_path: Path) -> None:
    rows: list[Row] = []
    runner = Runner(tmp_path, "main", lambda row: row, rows.append, 20.0, shrinks=True)
    cases = [replace(RIGHT, shape=(1, 1, 4, width)) for width in (4, 3, 6, 5, 8, 9, 7, 2)]
    questions = [CaseQuestion(case, ASPECTS["special_values"], "block") for case in cases]
    backend = "two_operators:hangs_on_two_earlier"
    runner.judge(SingleBlock(questions[0], backend), questions)
    runner.close()
    (row,) = (row for row in rows if row["verdict"] == Verdict.VIOLATES)
    line = json.loads(row["shrunk"])
    assert [call["shape"][-1] for call in line["calls"]] == [3, 5, 7]
    assert (row["asked_again"], row["failed_again"]) == (ENOUGH, ENOUGH)
    assert row["shrunk_reason"].startswith("conforms on its own, fails after 2 other calls of its block: grad_input[")
    ended = replay(replay_line(row | {"given": ["--pythonpath", str(SUPPORT)]}), tmp_path)
    assert ended.returncode == 1 and "of call 2, behind action 6 of 6 (run executor=2)" in ended.stdout
