"""What a case is as a question: the columns that describe it and its data, the time and memory that it may take.

What is said of data is so of what recipes made, and not of the recipes.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract_calls import made
from places import SUPPORT
from poolproof.backends.registry import create
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.features import DATA
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.verdicts import BadInput, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.sequences import CallSequence
from poolproof.suites.cases.varying import auxiliary_cases, needs_producer, producers
from poolproof.suites.judging import budget, case_question
from poolproof.suites.judging.budget import needed_memory
from poolproof.suites.judging.case_question import CaseQuestion, UnreadableRow
from poolproof.suites.judging.checks import CHECKS, expected_checks
from poolproof.suites.judging.contract import contract_question
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.measure import MOST_LOOKED_AT, _spread, look_at_data
from poolproof.suites.judging.phases import PhaseQuestion
from poolproof.suites.judging.question import not_survived
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS, CONTRACT, EVERYTHING
from scatter import Scatter

LINE = (
    '{"operator":"MaxPool2dWithIndicesBackward","shape":[3,6,5],"dtype":"float16","kernel_size":[3,2],"stride":[1,2],'
    '"padding":[1,0],"dilation":[1,2],"ceil_mode":true,"gradient":"uniform","indices":"crowded","values":"ties",'
    '"layouts":{"grad_output":"expanded_c","self":"sliced"},"deterministic":true,"seed":5}'
)
PLAIN = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 4, 64, 64), kernel_size=(2,))


def test_a_row_describes_its_case() -> None:
    question = CaseQuestion(Case.from_json(LINE), CASE_ASPECTS["values"], "a block")
    numbers = {"planes": 3, "elements": 90, "windows": 36, "kernel_size": "3x2", "seed": 5}
    told = {"batched": False, "overlapping": True, "dilated": True, "padded": True, "ceil_mode": True}
    recipes = {"gradient": "uniform", "indices": "crowded", "values": "ties"}
    layouts = {"layouts": "grad_output:expanded_c self:sliced", "deterministic": True}
    classes = ["padding", "dilation", "ceil_mode", "stride", "unbatched", "layouts", "deterministic"]
    named = {"case_id": question.case.id, "case": LINE, "block": "a block", "aspect": "values", "shape": "3x6x5"}
    kind = {"operator": "MaxPool2dWithIndicesBackward", "dtype": "float16", "index_dtype": "int64"}
    assert question.describe() == named | kind | numbers | told | recipes | layouts | {"classes": classes}


@pytest.mark.parametrize(
    ("case", "aspect", "times"),
    [
        (PLAIN, "endurance", 1.0),
        (Case.of("MaxPool2dWithIndicesBackward", shape=(1, 4, 1024, 1024), kernel_size=(2,)), "values", 5.0),
    ],
)
def test_what_takes_longer_has_more_time(case: Case, aspect: str, times: float) -> None:
    assert CaseQuestion(case, CASE_ASPECTS[aspect]).timeout_scale == times


def test_a_question_names_the_dtype_that_a_backend_is_built_for() -> None:
    case = Case.smallest(OPERATORS["MaxPool2dWithIndices"], "bfloat16")
    assert CaseQuestion(case, EVERYTHING).built_for == "bfloat16"


@pytest.mark.parametrize(
    ("operator", "own", "other"),
    [("MaxPool2dWithIndices", "maximum", "interval"), ("AdaptiveMaxPool2dBackward", "interval", "maximum")],
)
def test_checks_that_judge_a_case_are_those_that_apply_to_it(operator: str, own: str, other: str) -> None:
    judging = expected_checks(Case.smallest(OPERATORS[operator]), CHECKS)
    assert {"written", own} <= {*judging} and other not in judging


def test_the_calls_that_judging_makes_besides_are_told() -> None:
    """What was called before, where that is asked; the forward, where the case needs what it makes."""
    told = {aspect: CaseQuestion(PLAIN, CASE_ASPECTS[aspect]).auxiliary_calls() for aspect in ("values", "state")}
    assert [call.case for call in told["state"]] == auxiliary_cases(PLAIN)  # type: ignore[attr-defined]
    assert (told["values"], len(told["state"])) == ((), 49)
    empty = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 1, 1), kernel_size=(2,), dilation=(2,), padding=(1,))
    calls = CaseQuestion(empty, CASE_ASPECTS["values"]).auxiliary_calls()
    assert [call.case for call in calls] == producers(empty)  # type: ignore[attr-defined]
    assert calls[0].case.operator == "MaxPool2dWithIndices"  # type: ignore[attr-defined]


def test_memory_that_judging_takes_is_what_its_parts_add_up_to() -> None:
    """By hand, of float32 gradients for 16,384 cells of four planes from 4,096 windows, with int64 indices."""
    gradient, cells, indices = 4 * 4096, 4 * 16384, 8 * 4096
    plane = 61 * 4096 + 16 * 1024  # each cell's exact sum and bounds, each window's cell and term
    tensors = gradient + 2 * cells + indices  # self, too
    drawn = gradient + cells + 8 * 4096
    assert needed_memory(PLAIN, 1, ()) == drawn + tensors + cells + tensors + plane
    assert needed_memory(PLAIN, 3, ()) - needed_memory(PLAIN, 1, ()) == 2 * cells


def test_what_the_suite_raises_is_told_with_its_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        error = ValueError("no such cell")
        error.add_note("while it was looked for")
        raise error

    monkeypatch.setattr(case_question, "run_checks", fails)
    row = answer(CaseQuestion(PLAIN, CASE_ASPECTS["values"]), Scatter())
    assert row["verdict"] == Verdict.SUITE_ERROR
    assert row["checks_judged"] == row["checks_violated"] == []
    assert row["reason"].startswith("the suite itself raised ValueError: no such cell; while it was looked for (test_q")


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
    monkeypatch.setenv(budget.VARIABLE, str(budget.needed_memory(PLAIN, EVERYTHING.repeats) - 1))
    monkeypatch.setattr("poolproof.suites.judging.case_question.Trial", None)
    row = CaseQuestion(PLAIN, EVERYTHING).judge(create("scatter_backends:honest"))
    assert row["verdict"] == "not run"
    assert " GiB of tensors, about " in row["reason"]


def test_workers_share_what_a_run_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, "1")
    budget.share(4 * budget.needed_memory(PLAIN), 4)
    assert budget.too_large(PLAIN) == ""
    budget.share(4 * budget.needed_memory(PLAIN), 5)
    assert "beyond the memory budget" in budget.too_large(PLAIN)


def test_without_a_budget_it_is_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget.VARIABLE, raising=False)
    assert budget.free_memory() > 0
    assert budget.too_large(PLAIN) == ""
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("file 3000\ninactive_file 2000\n")
    monkeypatch.setattr(budget, "_GROUP", tmp_path)
    assert budget.free_memory() > 1000
    (tmp_path / "memory.max").write_text("6000\n")
    assert budget.free_memory() == 6000 - (5000 - 2000)  # what is cached of files is no memory that is taken
    monkeypatch.setattr(budget, "_GROUP", tmp_path / "none")
    monkeypatch.setattr(budget, "number_in", lambda *_: None)
    assert budget.free_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    monkeypatch.setattr(budget, "free_memory", lambda: 1)
    assert budget.too_large(PLAIN)


@pytest.mark.thorough
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


NAN, INF = float("nan"), float("inf")

FORWARD, BACKWARD = "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward"
SELF, GRADIENTS = tuple(map(float, range(1, 10))), (1.0, 2.0, 3.0, 4.0)
NOTHING: dict[str, dict[str, tuple[float, ...]]] = {
    FORWARD: {"self": SELF},
    BACKWARD: {"self": SELF, "grad_output": GRADIENTS, "indices": (4, 5, 7, 8)},
}
"""A plane of 3 x 3 with four windows of 2 x 2, of which nothing is to be said."""


def said(operator: str, *planes: dict[str, tuple[float, ...]]) -> set[str]:
    """Look at planes that have other literals than `NOTHING` each."""
    made = {name: sum((({**NOTHING[operator], **plane})[name] for plane in planes), ()) for name in NOTHING[operator]}
    about: dict[str, Any] = {"operator": operator, "shape": [len(planes), 3, 3], "kernel_size": [2], "stride": [1]}
    return set(look_at_data(make_operands(Case.from_record(about | {"literals": made})))["data"])


def numbers(tensor: str, plain: tuple[float, ...], word: str) -> list[tuple[dict[str, tuple[float, ...]], str]]:
    given = {"{} with NaN": NAN, "{} with infinities": -INF, "{} with -0.0": -0.0, "subnormal {}": 1e-40}
    return [({tensor: (number, *plain[1:])}, name.format(word)) for name, number in given.items()]


OPPOSITE = {"indices": (4, 4, 7, 8), "grad_output": (INF, -INF, 1.0, 1.0)}
OF_SELF = [*numbers("self", SELF, "values"), ({"self": (2.0, *SELF[1:])}, "equal values")]
OF_BACKWARD = [
    *numbers("grad_output", GRADIENTS, "gradients"),
    ({"indices": (4, 4, 7, 8)}, "several windows on one cell, indices other than the forward's"),
    (OPPOSITE, "opposite infinities in one cell, gradients with infinities, several windows on one cell"),
    ({"indices": (4, 4, 4, 4), "grad_output": (1.0, 2.0**-30, 0.0, 1.0)}, "inexact sums, several windows on one cell"),
]
TIED = {"self": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 9.0, 8.0)}


@pytest.mark.parametrize(("literals", "words"), OF_BACKWARD)
def test_gradients_and_indices(literals: dict[str, tuple[float, ...]], words: str) -> None:
    assert set(words.split(", ")) <= said(BACKWARD, literals) <= {*DATA["backward"]}


@pytest.mark.parametrize(("literals", "words"), OF_SELF)
def test_values(literals: dict[str, tuple[float, ...]], words: str) -> None:
    assert said(FORWARD, literals) == {words}


def test_nothing_ties_and_the_largest_index() -> None:
    assert said(FORWARD, {}) == said(BACKWARD, {}) == set()
    assert said(FORWARD, {"self": (1, 2, 3, 4, 5, 6, 9, 8, 9)}) == {"equal values"}
    assert said(FORWARD, TIED) == {"equal values", "ties"}
    past = Case.of(BACKWARD, shape=(1, 300, 300), kernel_size=(2,), indices="last")
    assert {"an index past 2^15", "an index past 2^16"} <= set(look_at_data(make_operands(past))["data"])


def test_indices_that_take_the_place_of_the_forwards_are_others() -> None:
    """As those of an implementation that takes none."""
    made = make_operands(Case.of(BACKWARD, shape=(1, 3, 3), kernel_size=(2,), stride=(1,)))
    given = replace(made, indices=np.full_like(made.indices, 4))
    word = "indices other than the forward's"
    assert [word in look_at_data(each)["data"] for each in (made, given)] == [False, True]


@pytest.mark.parametrize("cells", [9, 18, 1 << 15])
@pytest.mark.parametrize("place", range(3))
def test_a_plane_says_the_same_wherever_it_lies(monkeypatch: pytest.MonkeyPatch, place: int, cells: int) -> None:
    """Planes are looked at so many ``cells`` at a time."""
    monkeypatch.setattr("poolproof.suites.judging.measure.PART", cells)
    for operator, special in (
        *((FORWARD, literals) for literals in (TIED, *(literals for literals, _ in OF_SELF))),
        *((BACKWARD, literals) for literals, _ in OF_BACKWARD),
    ):
        planes = [special if number == place else {} for number in range(3)]
        assert said(operator, *planes) == said(operator, special)


def test_large_data_are_not_looked_at() -> None:
    large = Case.of(FORWARD, shape=(1, 1, MOST_LOOKED_AT + 2), kernel_size=(1, 2))
    assert look_at_data(make_operands(large)) == {} == CaseQuestion(large, EVERYTHING).describe_data()


@pytest.mark.parametrize("operator", [*NOTHING, "MaxPool2dWithMaskBackward"])
def test_who_dies_of_a_case_leaves_what_its_data_were(operator: str) -> None:
    case = Case.of(operator, shape=(1, 4, 4), kernel_size=(2,), gradient="special", values="nan")
    made = {} if needs_producer(case) else look_at_data(make_operands(case))
    assert not_survived(CaseQuestion(case, EVERYTHING), Verdict.CRASHED, "gone").get("data") == made.get("data")


def test_who_dies_of_a_call_of_the_contract_leaves_its_clause() -> None:
    call = made("aclnnMaxPool2dWithIndices")
    row = not_survived(contract_question(call, PRODUCTS["A2"], CONTRACT, "a block"), Verdict.CRASHED, "gone")
    assert {"clause", "statement"} <= row.keys()
    assert row["reason"] == "gone"


def test_a_backward_with_windows_without_a_cell_has_no_measurements() -> None:
    windows = {"kernel_size": (2,), "padding": (1,), "dilation": (3,)}
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 2), indices="in_window", **windows)
    assert case.has_empty_window
    assert CaseQuestion(case, EVERYTHING)._measured(Trial(case, Scatter())) == {}


def test_repeats_that_differ_in_the_sign_of_zero_are_no_step_apart() -> None:
    trial = Trial(PLAIN, Scatter())
    zeros, steps = np.zeros(3, np.float32), np.array([0.0, 0.0, 3.0], np.float32)
    assert _spread(trial, zeros, -zeros) == 0.0
    assert _spread(trial, steps, np.nextafter(steps, np.float32(4.0))) == 1.0


def test_a_column_is_made_where_the_schema_says() -> None:
    """Questions describe the drawn columns, which a row has whatever becomes of it; judging adds others alone."""
    drawn = {column.name for column in COLUMNS if column.made == "drawn"}
    case, block = replace(PLAIN, shape=(1, 4, 4)), "a block"
    aspect, entry = CASE_ASPECTS["values"], Entry("a list", 1, fault="no case")
    of_case = CaseQuestion(case, aspect, block, entry=entry)
    others = PhaseQuestion.of_sequence(CallSequence((), (case,)), aspect, block), UnreadableRow(entry, aspect, block)
    described = {name for question in (of_case, *others) for name in question.describe()}
    assert described == drawn - {"backend", "product"}, "which are labels of a backend"
    made = answer(of_case, Scatter()).keys()
    assert {"verdict", "status_code", "n"} <= made
    assert made & drawn == of_case.describe().keys()
