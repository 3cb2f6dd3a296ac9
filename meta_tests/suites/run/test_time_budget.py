"""A budget ends a session in time, reaches all blocks first, and continues with further seeds."""

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forging import rewrite
from places import ROOT
from poolproof.backends.aclnn.sequences import ACTIONS
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.bundle.packing import package
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.merging import merge as join
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import duration
from poolproof.reports.rows.verdicts import BadInput, Overall, Verdict
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.strategies import cases
from poolproof.suites.options import budget_of
from poolproof.suites.plan.aspects import ASPECTS, CASE_ASPECTS
from poolproof.suites.plan.blocks import Block, ListedBlock
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from poolproof.suites.plan.selection import mandatory
from poolproof.suites.run.runner import Runner
from poolproof.suites.run.time_budget import Budget, parse_time, parts
from poolproof.suites.verify.verification import verify
from scatter_backends import stores
from sessions import run_session
from shared_runs import verified

COUNTED: Counter[str] = Counter()


@dataclass(frozen=True)
class Made:
    """A block that only has a number of cases, and notes how often that is counted."""

    id: str
    cases: int
    kind: str = "values"

    @property
    def count(self) -> int:
        COUNTED[self.id] += 1
        return self.cases

    @property
    def aspect(self) -> Any:
        return SimpleNamespace(id=self.kind)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1.5 h", 5400.0), (" 1s ", 1.0)])
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_each_block_has_its_first_cases_judged_before_more_of_any_the_cheapest_first() -> None:
    made: list[Any] = [Made("huge", 30, "huge"), Made("few", 3), Made("many", 60)]
    COUNTED.clear()
    cut = [(part.id, part.stop) for part in parts(made, {})]
    first, later = [("few@0", 3), ("many@0", 4), ("huge@0", 4)], [("many@4", 29), ("huge@4", 29)]
    assert cut == [*first, *later, ("many@29", 54), ("huge@29", 30), ("many@54", 60)]
    assert set(COUNTED.values()) == {1}, "which can take long"
    assert [part.id for part in parts(made, {"few": 3, "many": 28, "huge": 29})] == [
        *("many@4", "many@29", "huge@29", "many@54")
    ]


def test_the_end_of_a_budget_is_left_for_the_report() -> None:
    left = [seconds - Budget(seconds, 0.0).until for seconds in (2.0, 20.0, 100.0, 86_400.0)]
    assert left == [1.0, 3.0, 10.0, 60.0]
    assert 60.0 - Budget(60.0, 0.0, slowness=4.0).until == 12.0


def test_a_session_has_as_many_further_seeds_as_it_has_time_for() -> None:
    assert not Budget(60.0, 0.0).further_seeds(5, 10, 2)
    assert Budget(60.0, 0.0, goes_beyond=True).further_seeds(5, 40_000, 2) == range(6, 11)
    assert len(Budget(86_400.0, 0.0, goes_beyond=True).further_seeds(-1, 1, 2)) == 1000


def test_what_is_no_time_is_named() -> None:
    for text in ("", "10", "m", "0m", "0.5s", "-1m", "1e3s", "10 minutes", "200h", "9" * 400 + "h"):
        with pytest.raises(BadInput, match="a budget is a number and a unit"):
            parse_time(text)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"budget": "10m", "case": ["a"], "case_list": []}, "not on the cases of --case$"),
        ({"budget": "10m", "case": [], "case_list": ["a"]}, "not on the cases of --case-list$"),
        ({"budget": "3m+", "case": ["a"]}, r"^--budget 3m\+: a time is spent on a plan, not on the cases of --case$"),
    ],
)
def test_what_does_not_go_together_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        budget_of(SimpleNamespace(getoption=given.get), 0.0)  # type: ignore[arg-type]


def test_durations_are_told_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 12.4, 600.0, 90.0)] == ["0 s", "12 s", "10 min", "1 min 30 s"]


def test_a_session_begins_with_its_process() -> None:
    script = "import time; time.sleep(0.5); from poolproof.suites.run.time_budget import *; print(starting_seconds())"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert 0.45 <= float(ended.stdout) <= time.monotonic() - began


@pytest.mark.parametrize(("left", "smaller", "repetitions"), [(inf, True, 3), (0.2, False, 1)])
def test_nothing_is_made_smaller_when_time_is_up(tmp_path: Path, left: float, smaller: bool, repetitions: int) -> None:
    """The time is up when the process of the backend has started, and the case with it."""
    rows: list[Row] = []
    subject = Subject("scatter_backends:lost", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64")
    block = next(iter(CASE_ASPECTS["values"].blocks(subject, replace(PLANS["smoke"], cases=1), 0)))
    until = time.monotonic() + left
    with closing(Runner(tmp_path, "main", lambda row: row, rows.append, 20.0, shrinks=True, until=until)) as runner:
        runner.judge(block)
    (row,) = rows
    assert (row["verdict"], "shrunk" in row, row["asked_again"]) == (Verdict.VIOLATES, smaller, repetitions)


def planned() -> list[Block]:
    """A block of each kind and aspect."""
    operator = OPERATORS["MaxPool3dWithArgmaxBackward"]
    subject = Subject("npu", operator, "float32", "int32", tags=("nhwc",), product=PRODUCTS["A2"])
    whole = replace(subject, actions=ACTIONS)
    small = replace(PLANS["smoke"], cases=12)
    return list(blocks([whole], ASPECTS.values(), small, 0))


@pytest.mark.parametrize("block", planned(), ids=lambda block: block.id.partition("-")[2])
def test_the_first_cases_of_a_block_are_those_of_the_whole(block: Block) -> None:
    """And its groups count what its questions are."""
    whole = block.questions()
    for count in (1, min(29, block.count)):
        assert [question.id for question in block.prefix(count)] == [question.id for question in whole[:count]]
    described = [question.describe() for question in whole]
    for group, count in block.groups().items():
        assert sum(all(row.get(name, "npu") == value for name, value in group) for row in described) == count


def test_the_first_case_of_a_block_is_none_that_shows_nothing() -> None:
    subject = Subject("stores", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64", index_dtypes=("int64",))
    for name in ("values", "precision", "special_values"):
        (block,) = CASE_ASPECTS[name].blocks(subject, PLANS["smoke"], 0)
        assert block.prefix(1)[0].judge(stores())["verdict"] == Verdict.VIOLATES
        drawn = generate(
            cases.make(subject.operator, "float32", "int64", block.aspect.profile), block.count, block.seed
        )
        assert Counter(asked.case for asked in block.questions()) == Counter(drawn)


VALUES = ["--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--no-shrink", "--aspect", "values"]
ASKED = [*VALUES, "--cases", "800"]
HONEST = "scatter_backends:honest"
SMALL = [*VALUES, "--aspect", "targets", "--cases", "3"]


def recorded(folder: Path) -> Counter[str]:
    """How many cases of each block have a row; none has two."""
    rows = [(row["block"], row["case_id"]) for row in read_rows(folder, ["block", "case_id"]).to_pylist()]
    judged = [row for row in rows if row[0]]
    assert len(judged) == len(set(judged))
    return Counter(block for block, _ in judged)


LEAPING = ("-p", "disturbing")


def leap(test: int) -> dict[str, str]:
    """The clock leaps past the budget before so many tests have begun: no machine is too slow for this, or too fast."""
    return {"DISTURBANCE": f"leap {test}"}


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose budget ends in the third round of its eight blocks."""
    folder = tmp_path_factory.mktemp("spent") / "run"
    ended = run_session(folder, HONEST, "--budget", "10m", "-rs", *LEAPING, asked=ASKED, variables=leap(20))
    assert ended.status == Overall.CONFORMS, ended.output
    assert "budget of 10 min used up" in ended.output.partition("short test summary")[2].partition("= poolproof")[0]
    return folder


def test_a_run_says_what_its_budget_left_of_the_plan(spent: Path) -> None:
    counts, digest = recorded(spent), read_digest(spent)
    assert len(counts) == 8
    assert sorted(counts.values()) == [29] * 5 + [54] * 3
    judged = counts.total()
    assert (digest.conclusion.missing, digest.conclusion.planned) == (0, 1600)
    assert f"narrowed: {judged:,} of " in digest.conclusion.narrowed
    left = f"not judged: {1600 - judged:,} of 1,600 planned cases, budget of 10 min used up"
    assert left in digest.conclusion.narrowed
    assert left in (spent / "index.html").read_text(encoding="utf-8")
    assert set(read_run(spent)["budget"]) == {"seconds", "took", "until"}


@pytest.mark.thorough
def test_first_cases_of_a_block_and_no_others_are_drawn_again(spent: Path, tmp_path: Path) -> None:
    assert "budget of 10 min used up" in verified(spent, tmp_path).account[0]
    folder = Path(shutil.copytree(spent, tmp_path / "run"))
    rewrite(folder, lambda rows: [row for number, row in enumerate(rows) if number != 2])
    package(folder, tmp_path / "another.zip")
    found = verify(tmp_path / "another.zip")
    assert any("was planned and has no row" in problem for step in found.steps for problem in step.problems)


@pytest.mark.thorough
def test_a_resumed_run_has_time_for_more(spent: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(spent, tmp_path / "run"))
    ended = run_session(folder, HONEST, "--budget", "10m", "--resume", *LEAPING, asked=ASKED, variables=leap(9))
    assert ended.status == Overall.CONFORMS, ended.output
    before, after = read_run(spent)["budget"], read_run(folder)["budget"]
    assert (before["seconds"], after["seconds"]) == (600.0, 1200.0)
    assert after["took"] > before["took"]
    assert recorded(folder).total() > recorded(spent).total()
    verified(folder, tmp_path)


@pytest.mark.parametrize("name", ["targets", "models"])
def test_listed_cases_are_counted_without_being_made(name: str) -> None:
    subject = Subject("scatter", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64")
    listed = [each for each in CASE_ASPECTS[name].blocks(subject, PLANS["smoke"], 0) if isinstance(each, ListedBlock)]
    assert [each.count for each in listed] == [len(each.questions()) for each in listed] != []


def test_a_test_behind_the_deadline_has_no_phases(tmp_path: Path) -> None:
    """Fixtures of thousands of tests take seconds."""
    told = ("--budget", "10m", "--durations=0", "-vvv", *LEAPING)
    ended = run_session(tmp_path / "run", HONEST, *told, asked=SMALL, variables=leap(1))
    phases = Counter(re.findall(r"^\d\S*s (setup|call|teardown) ", ended.output, re.MULTILINE))
    assert phases["setup"] == 1 < phases["call"], ended.output


def test_blocks_that_nothing_was_asked_of_make_a_run_incomplete(tmp_path: Path) -> None:
    ended = run_session(tmp_path / "run", HONEST, "--budget", "1s", *LEAPING, asked=SMALL, variables=leap(1))
    assert ended.status == Overall.INCOMPLETE, ended.output
    last = " ".join(ended.output.split()).partition("INCOMPLETE (exit status 2): ")[2]
    assert "budget of 1 s used up" in last and last.endswith(". Continue with --resume --budget TIME")


@pytest.mark.thorough
def test_a_clock_that_is_set_back_changes_no_budget(tmp_path: Path) -> None:
    given, way = ("--budget", "100s", "-p", "disturbing"), {"DISTURBANCE": "clock"}
    ended = run_session(tmp_path / "run", HONEST, *given, asked=SMALL, variables=way, fresh=True)
    assert ended.status == Overall.CONFORMS, ended.output
    assert 0.0 < read_run(tmp_path / "run")["budget"]["took"] < 600.0


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that continued with further seeds."""
    folder = tmp_path_factory.mktemp("further") / "run"
    ended = run_session(folder, HONEST, "--budget", "10m+", *LEAPING, asked=SMALL, variables=leap(16))
    assert ended.status == Overall.CONFORMS, ended.output
    return folder


def test_cases_of_further_seeds_are_not_counted_in_the_plan(extended: Path) -> None:
    counts, conclusion = recorded(extended), read_digest(extended).conclusion
    name = f"{HONEST}-MaxPool2dWithIndicesBackward-float32-int64-values-0"
    assert [counts[each] for each in (name, f"{name}+1", f"{name}+2")] == [3, 3, 3]
    beyond = sum(count for block, count in counts.items() if "+" in block)
    assert conclusion.judged == conclusion.planned == counts.total() - beyond
    assert f"{beyond:,} cases beyond the plan" in conclusion.narrowed


@pytest.mark.thorough
def test_a_run_with_further_seeds_is_drawn_again_merged_and_resumed(extended: Path, tmp_path: Path) -> None:
    verified(extended, tmp_path)
    join([extended, Path(shutil.copytree(extended, tmp_path / "again"))], tmp_path / "run", mandatory)
    verified(tmp_path / "run", tmp_path)
    seeds = {name: count for name, count in recorded(extended).items() if "+" in name}
    assert {name: count for name, count in recorded(tmp_path / "run").items() if "+" in name} == seeds
    ended = run_session(tmp_path / "again", HONEST, "--resume", asked=SMALL)
    assert ended.status == Overall.CONFORMS, ended.output
    assert recorded(tmp_path / "again") == recorded(extended)
    assert "budget" not in read_run(tmp_path / "again")
