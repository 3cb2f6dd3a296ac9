"""A budget is spent to its end, all blocks get as much of it, nothing is asked twice, and all can be drawn again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from made_blocks import Clock, Made
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.bundle.packing import package
from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.bundle.verification import verify
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import duration
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.suites.options import budget_of
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from poolproof.suites.plan.selection import NotDrawable, mandatory, plan_cases, redraw, redraw_questions
from poolproof.suites.run import time_budget
from poolproof.suites.run.time_budget import Allotment, Budget, InvalidTime, Portion, parse_time
from sessions import run_session


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1.5 h", 5400.0), (" 1s ", 1.0)])
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "0m", "0.5s", "-1m", "1e3s", "10 minutes", "200h", "9" * 400 + "h"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(InvalidTime, match="a budget is a number and a unit"):
        parse_time(text)


@pytest.mark.parametrize("option", ["case", "case_list"])
def test_single_cases_have_no_budget(option: str) -> None:
    given = {"budget": "10m", "case": [], "case_list": [], option: ["something"]}
    with pytest.raises(BadInput, match=rf"not on the cases of --{option.replace('_', '-')}$"):
        budget_of(cast(pytest.Config, SimpleNamespace(getoption=given.get)), 0.0)


def test_durations_are_told_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 12.4, 600.0, 90.0)] == ["0 s", "12 s", "10 min", "1 min 30 s"]


UNEVEN = [Made(f"{number}", 40 + 40 * (number % 5), 0.05 * (1 + number % 7)) for number in range(60)]
"""60 blocks of 40 to 200 cases that take 0.05 s to 0.35 s: 1,400 s for all."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seconds", [100.0, 300.0])
def test_a_budget_is_spent_to_its_end_and_all_blocks_get_as_much(tmp_path: Path, seconds: float, workers: int) -> None:
    clock = Clock(tmp_path, UNEVEN, seconds, workers)
    clock.spend()
    assert all(0.9 * seconds <= time <= seconds for time in clock.times)
    taken = clock.taken()
    had = [taken[block.id] * block.seconds for block in UNEVEN if taken[block.id] < block.count]
    assert max(had) - min(had) < 0.1 * seconds * workers / len(UNEVEN) + 0.7
    judged = Counter((p.block.id, number) for p in clock.portions for number in range(p.start, p.stop))
    assert set(judged.values()) == {1}
    assert judged.total() == clock.taken().total()


def test_a_plan_that_fits_is_asked_whole(tmp_path: Path) -> None:
    clock = Clock(tmp_path, UNEVEN, 2000.0, 1)
    clock.spend()
    assert clock.taken() == {block.id: block.count for block in UNEVEN}
    assert time_budget.partial_counts(tmp_path, cast(list[Block], UNEVEN)) == {}


def test_the_least_is_asked_whatever_the_budget(tmp_path: Path) -> None:
    """And a few cases of each block while there is time."""
    slow = [Made(f"{number}", 80, 3.0) for number in range(10)]
    clock = Clock(tmp_path, slow, 10.0, 1)
    clock.spend()
    assert [clock.taken()[block.id] for block in slow] == [4, *[1] * 9]
    assert clock.times == [39.0]


def test_what_no_longer_fits_is_not_begun(tmp_path: Path) -> None:
    clock = Clock(tmp_path, [Made("quick", 10_000, 0.01), Made("slow", 100, 15.0)], 130.0, 1)
    clock.spend()
    assert 117.0 <= clock.times[0] <= 130.0
    assert clock.taken()["slow"] == 4


def test_what_was_taken_is_owed_and_begun_with(tmp_path: Path) -> None:
    """By whoever goes on after a death: portions whose cases nobody judged, and lines that were cut short."""
    made = cast(list[Block], [Made("a", 100, 0.1), Made("b", 100, 0.1)])
    Allotment(tmp_path, made, Budget(3e9, 0.0), 1).first_portions(made[0])
    with (tmp_path / time_budget.FILE).open("a") as journal:
        journal.write('{"block": "a", "taken": 40}\n{"block": "a", "tak')
    assert time_budget.partial_counts(tmp_path, made) == {"a": (40, 100), "b": (1, 100)}
    again = Allotment(tmp_path, made, Budget(3e9, 0.0), 1)
    assert again.first_portions(made[0]) == [Portion(made[0], 0, 40)]
    assert again.first_portions(made[1]) == [Portion(made[1], 0, 4)]
    lines = (tmp_path / time_budget.FILE).read_text().splitlines()
    assert [json.loads(line) for line in lines[-2:]] == [{"block": "a", "taken": 40}, {"block": "b", "taken": 4}]


def test_blocks_that_were_begun_without_a_budget_are_asked_whole(tmp_path: Path) -> None:
    made = cast(list[Block], [Made("a", 100, 0.1), Made("b", 100, 0.1)])
    time_budget.take_whole(tmp_path, made[:1])
    assert time_budget.partial_counts(tmp_path, made) == {"b": (1, 100)}
    time_budget.remove_journal(tmp_path)
    assert time_budget.partial_counts(tmp_path, made) == {"a": (1, 100), "b": (1, 100)}


def planned() -> list[Block]:
    """A block of each kind and aspect."""
    operator = OPERATORS["MaxPool3dWithArgmaxBackward"]
    subject = Subject("npu", operator, "float32", "int32", tags=("nhwc",), product=PRODUCTS["A2"])
    whole = replace(subject, on_streams=True, in_phases=True)
    small = replace(PLANS["smoke"], cases=12)
    return list(blocks([whole], ASPECTS.values(), small, 0))


@pytest.mark.parametrize("block", planned(), ids=lambda block: block.id.partition("-")[2])
def test_a_part_of_a_block_is_part_of_a_larger_one(block: Block) -> None:
    """And owes what its questions are; the least has one of all that the whole owes."""
    more = min(block.min_cases + 5, block.count)
    larger, least = block.prefix(more), block.prefix(block.min_cases)
    assert [question.id for question in larger[: block.min_cases]] == [question.id for question in least]
    assert {question.id for question in larger} <= {question.id for question in block.questions()}
    assert block.groups(block.min_cases).keys() == block.groups().keys()
    assert sum(block.groups(more).values()) == more == len(larger)
    described = [question.describe() for question in larger]
    for group, count in block.groups(more).items():
        assert sum(all(row.get(name, "npu") == value for name, value in group) for row in described) == count


ASKED = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--cases", "2000", "--dtype", "float32"]
SLOW = "dying_backends:slow"
DRAW = Redraw(redraw, mandatory, plan_cases)


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose budget was too small for its plan, on any machine: of its 200 cases each takes 40 ms and more."""
    folder = tmp_path_factory.mktemp("spent") / "run"
    ended = run_session(folder, SLOW, "--budget", "2s", "--no-shrink", asked=[*ASKED, "-k", "values-1"])
    assert ended.status == Overall.CONFORMS, ended.output
    return folder


def asked_of(folder: Path) -> dict[str, Any]:
    budget: dict[str, Any] = read_run(folder)["budget"]
    return budget


def test_a_run_says_what_its_budget_left_of_the_plan(spent: Path) -> None:
    ((name, (part, count)),) = asked_of(spent)["asked"].items()
    assert name.endswith("values-1")
    assert 1 <= part < count == 200
    rows = read_rows(spent, ["case_id", "block"]).filter(read_rows(spent, ["block"])["block"].is_valid())
    assert rows.num_rows == len(set(rows["case_id"].to_pylist())) == part
    page = (spent / "index.html").read_text(encoding="utf-8")
    assert "s of a budget of 2 s: at least 1 case and " in page
    assert f"narrowed: {part} of " in page


def test_what_was_asked_is_drawn_again(spent: Path, tmp_path: Path) -> None:
    package(spent, tmp_path / "bundle.zip")
    found = verify(tmp_path / "bundle.zip", draw=DRAW)
    assert found.overall is Overall.CONFORMS, found.steps
    assert "s of a budget of 2 s" in found.verdict


def test_a_resumed_run_has_time_for_more(spent: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(spent, tmp_path / "run"))
    options = ["--budget", "2s", "--no-shrink", "--resume"]
    ended = run_session(folder, SLOW, *options, asked=[*ASKED, "-k", "values-1"])
    assert ended.status == Overall.CONFORMS, ended.output
    before, after = asked_of(spent), asked_of(folder)
    assert (before["seconds"], after["seconds"]) == (2.0, 4.0)
    assert after["took"] > before["took"]
    ((name, (part, count)),) = after["asked"].items()
    assert before["asked"][name][0] < part < count
    rows = read_rows(folder, ["case_id", "block"]).to_pylist()
    judged = [row["case_id"] for row in rows if row["block"]]
    assert len(judged) == len(set(judged)) == part


@pytest.mark.parametrize(
    ("part", "complaint"),
    [([0, 200], "a budget left 0 of 200"), ([7, 199], "at least 1 of 200 are expected"), ([200, 200], "200 of 200")],
)
def test_a_part_that_cannot_be_is_named(spent: Path, part: list[int], complaint: str) -> None:
    run = read_run(spent)
    (name,) = run["budget"]["asked"]
    run["budget"]["asked"] = {name: part}
    with pytest.raises(NotDrawable, match=complaint):
        list(redraw_questions(run))
    run["budget"]["asked"] = {"another": [1, 2]}
    with pytest.raises(NotDrawable, match="'another', which is no block of the plan"):
        list(redraw_questions(run))
