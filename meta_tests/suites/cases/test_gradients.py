"""Gradients drawn one by one all meet in one cell, in cases that every implementation of the operator takes."""

from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from poolproof.backends.abilities import Abilities
from poolproof.references.formats import FORMATS
from poolproof.references.operators import BACKWARDS, OPERATORS, Operator
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.gradients import TERMS, literal_gradients
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.scores import scores
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import has_call
from poolproof.suites.plan.plans import Subject
from poolproof.suites.run.sandbox import Sandbox

LEAST = Abilities(False, False, False, False, False, layouts=(), indices=False)

EVERY = pytest.mark.parametrize("operator", BACKWARDS, ids=lambda operator: operator.name)


def drawn(operator: Operator, dtype: str, terms: int, count: int = 6) -> list[Case]:
    return generate(literal_gradients.make(operator, dtype, operator.indices.dtypes[0], terms), count, seed=terms)


@EVERY
@pytest.mark.parametrize("dtype", FORMATS)
def test_all_gradients_meet_in_one_cell(operator: Operator, dtype: str) -> None:
    subject = Subject("any", operator, dtype, operator.indices.dtypes[0], abilities=LEAST)
    fmt = FORMATS[dtype]
    for terms in TERMS:
        for case in drawn(operator, dtype, terms):
            assert Case.from_json(case.to_json()) == case
            assert has_call(subject, case)
            operands = make_operands(case)
            assert len({*operands.indices.ravel().tolist()}) == 1
            sent = np.abs(operands.gradient.astype(np.float64).ravel())
            assert sent.size == terms
            literal = np.abs(dict(case.literals)["grad_output"])
            assert (sent == np.ldexp(literal, case.scale)).all(), "no gradient is rounded"
            assert ((literal >= 1) & (literal < 2)).all() and (sent >= fmt.smallest_normal).all()


@EVERY
def test_every_route_is_drawn_and_the_first_case_is_the_simplest(operator: Operator) -> None:
    cases = drawn(operator, "float16", 3, 60)
    assert cases[0].scale == 0 and not cases[0].deterministic and cases[0].pooled_shape[-1] == 3
    assert dict(cases[0].literals)["grad_output"] == (1, 1, 1)
    assert {(case.deterministic, case.scale) for case in cases} == {
        (flag, e) for flag in (False, True) for e in (0, -14)
    }
    assert len({case.pooled_shape for case in cases}) == operator.spatial_rank
    assert {min(dict(case.literals)["grad_output"]) < 0 for case in cases} == {False, True}


@pytest.mark.parametrize(("name", "least"), [("torch-cpu", 90), ("emulator-a2", 60), ("emulator-950", 60)])
def test_a_correct_implementation_conforms(name: str, least: int, tmp_path: Path) -> None:
    chosen = product(BACKWARDS, FORMATS, TERMS)
    cases = (
        replace(drawn(operator, dtype, terms, 2)[1], index_dtype=index_dtype)
        for operator, dtype, terms in chosen
        for index_dtype in operator.indices.dtypes
    )
    questions = [CaseQuestion(case, CASE_ASPECTS["precision"], "block") for case in cases]
    with closing(Sandbox(name, tmp_path, "gradients", timeout=60.0)) as sandbox:
        sandbox.start()
        rows = [*sandbox.judge(questions)]
    assert {row["verdict"] for row in rows} == {"conforms", "not supported"}
    right = [row for row in rows if row["verdict"] == "conforms"]
    assert len(right) >= least
    for row in right:
        assert sum(row["k_cells"][1:]) == 1
        assert 0.0 <= scores(row)["share"] <= 1.0


def test_hypothesis_draws_them() -> None:
    found = []

    @given(literal_gradients(OPERATORS["AdaptiveMaxPool2dBackward"], "bfloat16", "int64", 17))
    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    assert len({case.id for case in found}) > 15


def test_only_what_may_err_has_a_share() -> None:
    row = {"k_error": [0.0, 0.5, 1.5, None], "margin_min": 0.25}
    assert scores(row) == {"share": 0.75, "ulp": 1.5}
    assert scores(row | {"margin_min": None})["share"] == 0.0
    assert scores({"verdict": "crashed"}) == scores({"k_error": []}) == {}
