"""Who takes no indices and any of the tied maxima is judged by those that it took: any one of them, once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import choosing_backends as choosing
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS, EVERYTHING
from poolproof.suites.plan.plans import PLANS, blocks, subjects

TIES = Case.of(
    "MaxPool2dWithIndicesBackward", shape=(1, 2, 9, 8), kernel_size=(3,), stride=(1,), values="ties", indices="forward"
)

ASKED = ("MaxPool2dWithIndicesBackward", "AdaptiveMaxPool3dBackward")


def judged(backend: choosing.Choosing, case: Case = TIES) -> Row:
    return answer(CaseQuestion(case, EVERYTHING), backend)


def test_any_of_the_tied_is_right() -> None:
    """In every aspect and dtype, whose numbers hold 8 to 53 windows' codes, at once or one after the other."""
    backend = choosing.Choosing()
    chosen = [
        each
        for each in subjects("choosing", backend)
        if each.operator.name in ASKED and (each.unsupported, each.index_dtype) == (None, "int32")
    ]
    aspects = [CASE_ASPECTS[name] for name in ("values", "special_values", "state")]
    asked = blocks(chosen, aspects, PLANS["smoke"], 1)
    rows = [answer(question, backend) for block in asked for question in block.prefix(2)]
    assert len(rows) > 40
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}, [row["reason"] for row in rows if row["reason"]][:3]


@pytest.mark.parametrize("backend", [choosing.Choosing, choosing.DeclaresFirst])
def test_gradients_are_made_for_the_cells_that_were_taken(backend: type[choosing.Choosing]) -> None:
    """Of this recipe one cell has two gradients that are not zero, wherever a case's own indices would lead."""
    operands = Trial(replace(TIES, gradient="rounding_probe", indices="in_window"), backend()).operands
    landing = operands.landing
    assert np.array_equal(operands.terms != 0, landing.rank < 2)
    elsewhere = make_operands(replace(TIES, indices="in_window")).landing
    assert not np.array_equal(operands.terms != 0, elsewhere.rank < 2)


def test_what_was_taken_is_told_from_the_rules_own() -> None:
    operands = Trial(TIES, choosing.Choosing()).operands
    first = Trial(TIES, choosing.DeclaresFirst()).operands
    assert operands.indices is not None
    assert first.indices is not None
    assert np.count_nonzero(operands.indices != first.indices) > 10


@pytest.mark.parametrize("values", ["ties", "constant", "all_nan", "negative_infinity"])
@pytest.mark.parametrize("fault", [choosing.Twice, choosing.Split, choosing.Lost, choosing.DeclaresFirst])
def test_ties_excuse_nothing_else(fault: type[choosing.Choosing], values: str) -> None:
    row = judged(fault(), Case.of(TIES.operator, shape=TIES.shape, kernel_size=(3,), stride=(1,), values=values))
    assert {"interval", "unreached"} & set(row["checks_violated"]), row["reason"]


def test_a_cell_that_is_no_maximum_is_found() -> None:
    assert {"interval", "unreached"} & set(judged(choosing.Beside())["checks_violated"])


def test_who_may_take_others_in_each_call_cannot_be_read() -> None:
    class Undetermined(choosing.Choosing):
        def is_deterministic(self, call):  # type: ignore[no-untyped-def]
            return False

    row = judged(Undetermined())
    assert (row["verdict"], "cannot be told" in row["reason"]) == (Verdict.NOT_RUN, True)
