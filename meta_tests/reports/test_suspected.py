"""What is wrong over a history: it begins, stays, moves its threshold, ends, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolproof.reports.figures.history import add, read_entries
from poolproof.reports.figures.issues import IssueHistory, issue_histories
from poolproof.reports.rows.store import read_run, write_run
from reports_made_up import ASPECTS, OPERATORS, Recipe, make_run

HALF = {(operator, "float16", aspect): ["violates"] * 4 for operator in OPERATORS for aspect in ASPECTS}
FULL = {(operator, "float32", aspect): ["violates"] * 4 for operator in OPERATORS for aspect in ASPECTS}
DAY = 86_400.0


def history(folder: Path, *verdicts: dict[tuple[str, ...], list[str]], plan: str = "smoke") -> list[IssueHistory]:
    """The courses over runs a day apart, each with these verdicts."""
    for day, verdict in enumerate(verdicts):
        run = make_run(folder / f"run{day}", Recipe(verdicts=verdict))
        began = 1_800_000_000.0 + day * DAY
        write_run(run, read_run(run) | {"id": f"{day:032x}", "plan": plan, "started": began, "finished": began + 60})
        add(folder / "history", run)
    return issue_histories(read_entries(folder / "history"))


def days(course: IssueHistory) -> tuple[int, int, int | None]:
    gone = None if course.gone is None else day_of(course.gone)
    return day_of(course.since), day_of(course.last), gone


def day_of(time: float) -> int:
    return round((time - 1_800_000_000.0) / DAY)


def test_what_stays_is_one_thing(tmp_path: Path) -> None:
    (course,) = history(tmp_path, {}, HALF, HALF)
    assert (course.condition, days(course), course.runs) == (("dtype",), (1, 2, None), 2)
    assert course.sentence.startswith("every case with dtype = float16 fails")


def test_what_is_gone_says_when(tmp_path: Path) -> None:
    (course,) = history(tmp_path, HALF, HALF, {}, {})
    assert (days(course), course.runs) == ((0, 1, 2), 2)


def test_what_comes_back_begins_anew(tmp_path: Path) -> None:
    (course,) = history(tmp_path, HALF, {}, HALF)
    assert (days(course), course.runs) == ((2, 2, None), 1)


def test_a_history_without_violations_has_none(tmp_path: Path) -> None:
    assert history(tmp_path, {}, {}) == []


@pytest.mark.parametrize("later", ["acceptance"])
def test_a_run_of_another_plan_ends_nothing(tmp_path: Path, later: str) -> None:
    history(tmp_path, HALF)
    run = make_run(tmp_path / "other", Recipe())
    began = 1_800_000_000.0 + 5 * DAY
    write_run(run, read_run(run) | {"id": "f" * 32, "plan": later, "started": began, "finished": began + 60})
    add(tmp_path / "history", run)
    (course,) = issue_histories(read_entries(tmp_path / "history"))
    assert course.gone is None


def test_products_are_gathered(tmp_path: Path) -> None:
    for number, product in enumerate(("A2", "A3")):
        run = make_run(tmp_path / f"run{number}", Recipe(backends={"npu": product}, verdicts=HALF))
        began = 1_800_000_000.0 + number * DAY
        write_run(run, read_run(run) | {"id": f"{number:032x}", "started": began, "finished": began + 60})
        add(tmp_path / "history", run)
    (course,) = issue_histories(read_entries(tmp_path / "history"))
    assert (course.products, course.runs) == (["A2", "A3"], 2)
