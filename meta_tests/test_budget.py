"""What is too large for the memory that there is: left out before anything is allocated, with its size, and counted."""

from __future__ import annotations

import pytest

from poolproof.backends.registry import create
from poolproof.suites.cases.case import Case
from poolproof.suites.judging import budget
from poolproof.suites.judging.judge import Question
from poolproof.suites.running.aspects import EVERYTHING

CASE = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 4, 64, 64), kernel_size=(2,))


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("500 MB", 500 * 10**6), ("1.5TiB", 3 << 39), ("7b", 7), ("2 kib", 2048)],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert budget.parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "8", "GiB", "-1GiB", "0B", "0.2B", "8 apples", "1e3GiB", "infGiB", "9" * 400 + "TiB"]
)
def test_anything_else_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(budget.NoSize, match="a size is a number above 0 and a unit, such as 8GiB"):
        budget.parse_size(text)


def test_a_case_beyond_the_budget_is_not_run_and_says_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, str(budget.needed_memory(CASE) - 1))
    monkeypatch.setattr("poolproof.suites.judging.judge.Trial", None)
    row = Question(CASE, EVERYTHING).judge(create("torch-cpu"))
    assert row["verdict"] == "not run"
    assert " GiB of tensors, about " in row["reason"]


def test_a_case_within_the_budget_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, str(budget.needed_memory(CASE)))
    assert Question(CASE, EVERYTHING).judge(create("torch-cpu"))["verdict"] == "conforms"


def test_workers_share_what_a_run_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, "1")
    budget.share(4 * budget.needed_memory(CASE), 4)
    assert budget.too_large(CASE) == ""
    budget.share(4 * budget.needed_memory(CASE), 5)
    assert "beyond the memory budget" in budget.too_large(CASE)


def test_without_a_budget_it_is_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget.VARIABLE, raising=False)
    assert budget.free_memory() > 0
    assert budget.too_large(CASE) == ""
    monkeypatch.setattr(budget, "free_memory", lambda: 1)
    assert budget.too_large(CASE)
