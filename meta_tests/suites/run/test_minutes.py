"""Minutes leave out no block and go beyond the plan, and what was asked can be drawn again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from made_blocks import Clock, Made
from poolproof.references.operators import OPERATORS
from poolproof.reports.bundle.packing import package
from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.bundle.verification import verify
from poolproof.reports.rows.merging import merge as join
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.suites.options import budget_of
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import Block, extend
from poolproof.suites.plan.plans import PLANS, Subject
from poolproof.suites.plan.selection import NotDrawable, mandatory, plan_cases, redraw, redraw_questions
from poolproof.suites.run import time_budget
from poolproof.suites.run.time_budget import Budget, InvalidTime, parse_minutes
from sessions import run_session


@pytest.mark.parametrize("minutes", [0.0, -1.0, 0.01, 10_081.0, float("nan"), float("inf")])
def test_what_is_no_time_is_named(minutes: float) -> None:
    with pytest.raises(InvalidTime, match=r"a number of minutes is needed, from 0\.02 to 10,080, a week"):
        parse_minutes(minutes)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"budget": "10m", "minutes": 3.0},
            "^--budget 10m stays within the plan, --minutes 3 goes beyond it: take one$",
        ),
        ({"minutes": 3.0, "case": ["a"]}, "^--minutes 3: a time is spent on a plan, not on the cases of --case$"),
    ],
)
def test_what_does_not_go_together_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        budget_of(cast(pytest.Config, SimpleNamespace(getoption=given.get)), 0.0)


@pytest.mark.parametrize("seconds", [60.0, 600.0, 28_800.0])
def test_turns_outlast_a_time_and_tell_of_it_often(seconds: float) -> None:
    budget = Budget(seconds, 0.0)
    assert seconds < budget.slices * budget.slice_seconds <= 1.3 * seconds
    assert budget.slice_seconds <= 120.0


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    made = [Made(f"{name}", 40, 0.05, endless=name > 2) for name in range(1, 5)]
    clock = Clock(tmp_path, made, 60.0, 3, extends_plan=True)
    clock.spend()
    judged = Counter((p.block.id, number) for p in clock.portions for number in range(p.start, p.stop))
    assert set(judged.values()) == {1}
    assert judged.total() == clock.taken().total()
    beyond = time_budget.extension_counts(tmp_path, cast(list[Block], made))
    assert set(beyond) == {"3", "4"}
    assert judged.total() == 4 * 40 + sum(beyond.values())
    assert beyond["3"] > 3 * 40


def test_a_plan_that_is_spent_goes_on_where_it_can(tmp_path: Path) -> None:
    made = [Made("1", 20, 0.05), Made("2", 20, 0.05, endless=True)]
    clock = Clock(tmp_path, made, 50.0, 1, extends_plan=True)
    clock.spend()
    assert 45.0 <= clock.times[0] <= 50.0
    assert clock.taken()["1"] == 20
    again = Clock(tmp_path, made, 0.1, 1, extends_plan=True)
    assert sum(p.stop - p.start for p in again.portions) == clock.taken().total()


ASKED = [
    "--operator",
    "MaxPool2dWithIndicesBackward",
    "--aspect",
    "values",
    "--aspect",
    "targets",
    "--dtype",
    "float32",
]
SMALL = [*ASKED, "--cases", "3", "--no-shrink"]
BACKEND = "torch-cpu"
DRAW = Redraw(redraw, mandatory, plan_cases)


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first session died when it had taken 207 cases beyond the plan, which the next one judged."""
    folder = tmp_path_factory.mktemp("minutes") / "run"
    ended = run_session(folder, BACKEND, "--minutes", "0.02", asked=SMALL)
    assert ended.status == Overall.CONFORMS, ended.output
    name = "torch-cpu-MaxPool2dWithIndicesBackward-float32-int64-values-0"
    taken = {name: 3, f"{name}+1": 200, f"{name}+2": 7}
    with (folder / time_budget.FILE).open("a") as journal:
        journal.writelines(json.dumps({"block": block, "taken": count}) + "\n" for block, count in taken.items())
    ended = run_session(folder, BACKEND, "--resume", "--minutes", "0.02", asked=SMALL)
    assert ended.status == Overall.CONFORMS, ended.output
    return folder


def beyond_of(folder: Path) -> dict[str, int]:
    beyond: dict[str, int] = read_run(folder)["budget"]["beyond"]
    return beyond


def test_a_run_says_what_it_asked_beyond_its_plan(spent: Path) -> None:
    ((name, cases),) = beyond_of(spent).items()
    assert name.endswith("-values-0")
    assert cases >= 207
    rows = [row for row in read_rows(spent, ["block", "case_id"]).to_pylist() if row["block"]]
    assert sum(row["block"].startswith(f"{name}+") for row in rows) == cases
    assert sum(group["planned"] for group in read_run(spent)["mandatory"]) == len(rows)
    assert len({(row["block"], row["case_id"]) for row in rows}) == len(rows)
    page = (spent / "index.html").read_text(encoding="utf-8")
    assert f"and {cases:,} cases beyond it, in " in page
    assert " s of a budget of 2 s: at least 1 case and " in page


def test_what_was_asked_is_drawn_again(spent: Path, tmp_path: Path) -> None:
    package(spent, tmp_path / "bundle.zip")
    found = verify(tmp_path / "bundle.zip", draw=DRAW)
    assert found.overall is Overall.CONFORMS, found.steps


def test_a_part_that_went_on_can_be_merged(spent: Path, tmp_path: Path) -> None:
    join([spent, Path(shutil.copytree(spent, tmp_path / "again"))], tmp_path / "run", mandatory)
    was, merged = read_run(spent), read_run(tmp_path / "run")
    assert merged["mandatory"] == was["mandatory"]
    assert merged["budget"]["beyond"] == was["budget"]["beyond"]


def test_what_goes_on_is_other_cases(spent: Path) -> None:
    run = read_run(spent)
    ids = [question.id for _, _, questions in redraw_questions(run) for question in questions]
    assert len(set(ids)) > 0.9 * len(ids)


def test_only_minutes_go_on_with_it(spent: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(spent, tmp_path / "run"))
    for options in ((), ("--budget", "2s")):
        ended = run_session(folder, BACKEND, "--resume", *options, asked=SMALL)
        assert ended.status == Overall.COULD_NOT_RUN
        assert "went beyond its plan: go on with it by --minutes" in " ".join(ended.output.split())
    assert beyond_of(folder) == beyond_of(spent)


def wrong_records(name: str) -> Iterator[dict[str, int]]:
    yield {"another": 3}
    yield {name: 10**9}
    yield {name.replace("-values-0", "-examples-0"): 3}


def test_what_cannot_have_gone_on_is_named(spent: Path) -> None:
    run = read_run(spent)
    (name,) = beyond_of(spent)
    for beyond in wrong_records(name):
        wrong = run | {"budget": run["budget"] | {"beyond": beyond}}
        with pytest.raises(NotDrawable, match=r"a time was spent on .* cases beyond .*, which does not go on"):
            list(redraw_questions(wrong))


def test_cases_beyond_a_block_depend_on_it_alone() -> None:
    subject = Subject("npu", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64")
    block = next(iter(CASE_ASPECTS["values"].blocks(subject, PLANS["smoke"], 0)))
    first, second = extend(block, 250)
    assert (first.count, second.count) == (200, 50)
    assert [more.id for more in (first, second)] == [f"{block.id}+1", f"{block.id}+2"]
    (longer,) = extend(block, 120)
    assert [asked.id for asked in longer.questions()] == [asked.id for asked in first.prefix(120)]
    assert len({asked.id for asked in first.questions()} & {asked.id for asked in second.questions()}) < 3
