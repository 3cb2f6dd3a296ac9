"""Windows without a cell, followed to the end: the backward is given the indices that its own forward made."""

import faulthandler
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from forked import fork
from holding import holding, judged_by
from poolproof.backends.base import Call, Outcome, Status
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Windowed
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import fenced
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.plan.aspects import CASE_ASPECTS, CONTRACT
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter, fault
from scatter_backends import IndexOutside, first_cell_for_empty_window, no_index_for_empty_window, writes_just_behind

ASPECT = CASE_ASPECTS["empty_windows"]


@cache
def questions() -> list[CaseQuestion]:
    chosen = [subject for subject in subjects("scatter", Scatter()) if subject.dtype in ("float32", "float16")]
    return [question for block in blocks(chosen, [ASPECT], PLANS["smoke"], 1) for question in block.questions()]


def backwards() -> list[CaseQuestion]:
    return [question for question in questions() if question.case.api.is_backward]


def test_both_directions_of_every_operator_are_asked() -> None:
    able = {name for name, each in OPERATORS.items() if each.windows is Windowed and "Mask" not in name}
    assert {question.case.operator for question in questions()} == able
    assert all(question.case.has_empty_window and question.case.empty_windows.any() for question in questions())


def test_a_forward_that_refuses_them_makes_no_indices_and_that_is_right() -> None:
    rows = [question.judge(Scatter()) for question in backwards()]
    assert {row["verdict"] for row in rows} == {Verdict.REFUSED}
    assert "the forward does not make the indices of windows without a cell" in rows[0]["reason"]


@pytest.mark.parametrize("backend", [no_index_for_empty_window, first_cell_for_empty_window])
def test_harmless_indices_are_right(backend: type[Scatter]) -> None:
    rows = [question.judge(backend()) for question in questions()]
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}
    assert all("memory_untouched" in row["checks_judged"] for row in rows)


def test_a_backward_that_passes_over_an_index_outside_is_not_accused_of_its_forward() -> None:
    assert {question.judge(IndexOutside())["verdict"] for question in backwards()} == {Verdict.CONFORMS}


def over_a_row(cells: int) -> CaseQuestion:
    windows = {"kernel_size": (2, 1), "stride": (1, 1), "padding": (1, 0), "dilation": (2, 1)}
    return CaseQuestion(Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 1, cells), **windows), ASPECT)


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_backward_that_writes_far_outside_dies(tmp_path: Path) -> None:
    (row,) = judged_by("scatter_backends:writes_where_it_points", [over_a_row(5)], tmp_path)
    assert (row["verdict"], row["checks_violated"]) == (Verdict.CRASHED, ["survival"])
    assert "signal SIGSEGV" in row["reason"]


def test_a_backward_that_writes_into_the_guard_band_is_seen() -> None:
    assert over_a_row(5).judge(writes_just_behind())["checks_violated"] == ["memory_untouched"]


@fault("unsupported")
def no_forward(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
    return Scatter.unsupported(self, operator, dtype, index_dtype) if operator.is_backward else "backwards only"


def test_a_backward_without_a_forward_is_not_asked() -> None:
    assert list(blocks(subjects("scatter", no_forward()), [ASPECT], PLANS["smoke"], 1)) == []
    row = backwards()[0].judge(no_forward())
    assert row["verdict"] == Verdict.NOT_RUN
    assert "which this backend does not have" in row["reason"]


def test_an_operator_as_a_whole_is_planned_once_whatever_its_forward_takes() -> None:
    chosen = survey("emulator-a2").subjects
    wholes = [block.subject for block in blocks(chosen, [CONTRACT], PLANS["smoke"], 1)]
    assert len({subject.makes_indices for subject in chosen}) == 2
    assert len(set(wholes)) == len({subject.operator.name for subject in wholes})


@fault("run", base=no_index_for_empty_window)
def breaking(self, call: Call, mode: str = "") -> Outcome:
    """A forward that fails without reason."""
    return Scatter.run(self, call, mode) if call.operator.is_backward else Outcome(Status.UNAVAILABLE, message="none")


def test_a_forward_that_could_not_run_is_no_refusal() -> None:
    assert backwards()[0].judge(breaking())["verdict"] == Verdict.NOT_RUN


def test_all_checks_of_a_named_case_agree_with_a_right_backward() -> None:
    question = replace(over_a_row(5), aspect=holding(*(set(CHECKS) - {"memory_kept"})))
    assert question.judge(first_cell_for_empty_window())["verdict"] == Verdict.CONFORMS


@pytest.mark.parametrize(("past", "status"), [(0, 0), (100, -signal.SIGSEGV), (5000, -signal.SIGSEGV)])
def test_memory_ends_at_its_fence(past: int, status: int) -> None:
    def write() -> None:
        faulthandler.disable()
        memory = fenced(1000, 5000)
        memory[:] = 7
        np.lib.stride_tricks.as_strided(memory, (1000 + past,), (1,))[-1] = 1

    assert os.waitstatus_to_exitcode(os.waitpid(fork(write), 0)[1]) == status
