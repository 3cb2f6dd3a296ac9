"""What is too large for the memory that there is: left out before anything is allocated, with its size, and counted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from places import SUPPORT
from poolproof.backends.registry import create
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case
from poolproof.suites.judging import budget
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import EVERYTHING

CASE = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 4, 64, 64), kernel_size=(2,))


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 8 << 30), ("500 MB", 500 * 10**6), ("1.5TiB", 3 << 39), ("7b", 7), ("2 kib", 2048)]
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert budget.parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "8", "GiB", "-1GiB", "0B", "0.2B", "8 apples", "1e3GiB", "infGiB", "9" * 400 + "TiB"]
)
def test_anything_else_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="a size is a number above 0 and a unit, such as 8GiB"):
        budget.parse_size(text)


def test_a_case_beyond_the_budget_is_not_run_and_says_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, str(budget.needed_memory(CASE, EVERYTHING.repeats) - 1))
    monkeypatch.setattr("poolproof.suites.judging.case_question.Trial", None)
    row = CaseQuestion(CASE, EVERYTHING).judge(create("scatter_backends:honest"))
    assert row["verdict"] == "not run"
    assert " GiB of tensors, about " in row["reason"]


def test_workers_share_what_a_run_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, "1")
    budget.share(4 * budget.needed_memory(CASE), 4)
    assert budget.too_large(CASE) == ""
    budget.share(4 * budget.needed_memory(CASE), 5)
    assert "beyond the memory budget" in budget.too_large(CASE)


def test_without_a_budget_it_is_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget.VARIABLE, raising=False)
    assert budget.free_memory() > 0
    assert budget.too_large(CASE) == ""
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("file 3000\ninactive_file 2000\n")
    monkeypatch.setattr(budget, "_GROUP", tmp_path)
    assert budget.free_memory() > 1000
    (tmp_path / "memory.max").write_text("6000\n")
    assert budget.free_memory() == 6000 - (5000 - 2000)  # what is cached of files is no memory that is taken
    monkeypatch.setattr(budget, "free_memory", lambda: 1)
    assert budget.too_large(CASE)


def test_the_estimate_holds_and_a_failing_case_takes_little_more_than_a_passing_one() -> None:
    """And of a tensor of many planes no more than six times its tensors: measured in some large cases."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the most that a process held can be measured on Linux alone")
    pytest.importorskip("torch")
    program = [sys.executable, str(SUPPORT / "peaks.py")]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    peaks = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [each["verdict"] for each in peaks] == ["conforms", "violates"] * (len(peaks) // 2)
    for each in peaks:
        assert 1.0 < each["needed"] / each["peak"] < 2.0, each
    for passing, failing in zip(peaks[::2], peaks[1::2], strict=True):
        assert failing["peak"] < 1.25 * passing["peak"], failing
        assert failing["planes"] == 1 or failing["peak"] < 6 * failing["tensors"], failing
