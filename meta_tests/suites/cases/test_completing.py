"""Classes of factors: what the rules let meet is made, what they exclude is never drawn, and the rest is completed."""

import random
from dataclasses import replace
from itertools import product as product_of
from pathlib import Path

import numpy as np
import pytest

from holding import holding
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.figures.coverage import factor_coverage
from poolproof.reports.rows.factors import FACTORS, Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.meetings import TOGETHER, FactorCoverage, Space
from poolproof.reports.rows.store import read_run
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.completing import Completion, row_of
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.strategies import ALL_LAYOUTS, Profile, cases
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, scope_of
from scatter import Scatter, fault

KINDS = (
    *("MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward", "MaxPool2dWithMask"),
    *("AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3d"),
)
"""Each kind of windows and number of axes, forwards, a mask, and an operator that takes tags."""

SAMPLE, ATTEMPTS = 40, 12


def scope_on(name: str, product: str = "") -> Scope:
    operator = OPERATORS[name]
    return Scope(operator, operator.indices.dtypes, product=PRODUCTS.get(product))


def classes(case: Case) -> dict[str, str]:
    return classes_of(features_of(row_of(case)))


@pytest.mark.parametrize("name", KINDS)
def test_what_can_meet_is_made(name: str) -> None:
    coverage = FactorCoverage(scope_on(name))
    completion = Completion(coverage, "float32")
    pairs = [(together, place) for together, can in coverage.space.combinations(2) for place in np.argwhere(can)]
    for together, place in random.Random(name).sample(pairs, SAMPLE):
        wanted = {factor.name: factor.classes[number] for factor, number in zip(together, place, strict=True)}
        made = (completion.case(wanted) for _ in range(ATTEMPTS))
        assert any(case is not None and wanted.items() <= classes(case).items() for case in made), wanted


@pytest.mark.parametrize("name", KINDS)
def test_what_is_drawn_is_never_excluded(name: str) -> None:
    space = Space(scope_on(name))
    gradients = ("integers", "uniform", "special", "subnormal", "near_overflow", "signed_zeros")
    drawn = Profile(gradients=gradients, values=("normal", "ties", "nan", "infinities"), layouts=ALL_LAYOUTS)
    for case in generate(cases(OPERATORS[name], "float32", OPERATORS[name].indices.dtypes[0], drawn), 300, 7):
        assert not space.excluded(classes(case)), case.to_json()


def test_a_rule_says_what_keeps_classes_apart() -> None:
    space = Space(scope_on("MaxPool2dWithIndicesBackward", "A2"))
    assert space.excluded({"kernel cells": "1", "padding": "less"}) == "padding is at most half of a kernel"
    assert space.excluded({"dilation": "past the stride"}) == "no dilation here"
    assert not Space(scope_on("MaxPool2dWithIndicesBackward", "950")).excluded({"dilation": "past the stride"})


def test_every_class_of_a_factor_can_be_somewhere() -> None:
    spaces = [Space(scope_on(name)) for name in OPERATORS]
    for factor in FACTORS:
        for own in factor.classes:
            assert any(not space.excluded({factor.name: own}) for space in spaces), (factor.name, own)


def test_completion_adds_only_what_was_not_visited() -> None:
    coverage = FactorCoverage(scope_on("AdaptiveMaxPool2d"))
    before, shares = coverage.meetings(2), []
    for case, _ in zip(Completion(coverage, "float32").cases(2), range(30), strict=False):
        Case.from_json(case.to_json())
        shares.append(coverage.meetings(2).visited)
    assert before.visited < shares[0] and shares == sorted(set(shares))
    assert shares[-1] > 0.5 * before.possible


def test_a_run_counts_what_was_judged(run: Path) -> None:
    covered = factor_coverage(run, read_run(run))
    assert {key[1:] for key in covered} >= {("MaxPool2dWithIndicesBackward", "float32")}
    for coverage in covered.values():
        pairs = coverage.meetings(2)
        assert 0 < pairs.visited < pairs.possible
        assert pairs.possible - pairs.visited == sum(1 for _ in pairs.missing())


PLACES = (("torch", "", ("int64",)), ("npu", "A2", ("int32",)), ("npu", "950", ("int32", "int64")))
"""Backend, product, and dtypes of indices."""

VISITED = {"smoke": 2, "acceptance": 3}
"""How many classes meet in what a plan visits."""


@pytest.mark.parametrize(("backend", "product", "index_dtypes"), PLACES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("plan", VISITED)
def test_a_plan_visits_every_meeting(
    plan: str, name: str, backend: str, product: str, index_dtypes: tuple[str, ...]
) -> None:
    operator, device = OPERATORS[name], PRODUCTS.get(product)
    if not {*index_dtypes} & {*operator.indices.dtypes}:
        index_dtypes = operator.indices.dtypes
    first = Subject(backend, operator, "float16", "", product=device, index_dtypes=index_dtypes)
    first = replace(first, tags=device.tags if device else ())
    coverage = FactorCoverage(scope_of(first))
    aspects = [CASE_ASPECTS[TOGETHER[size]] for size in range(2, VISITED[plan] + 1)]
    for stored, aspect in product_of(index_dtypes, aspects):
        for block in aspect.blocks(replace(first, index_dtype=stored), PLANS[plan], 0):
            for question in block.questions():
                assert isinstance(question, CaseQuestion) and question.case.index_dtype == stored
                coverage.add(row_of(question.case))
    found = coverage.meetings(VISITED[plan])
    assert not list(found.missing())


def test_an_empty_call_visits_its_emptiness_alone() -> None:
    coverage = FactorCoverage(scope_on("MaxPool2dWithIndicesBackward"))
    coverage.add(row_of(replace(Case.smallest(OPERATORS[KINDS[0]], "float32"), shape=(0, 1, 2, 2))))
    met = [
        {factor.name for factor in together}
        for (together, can), (_, left) in zip(coverage.space.combinations(2), coverage.meetings(2).found, strict=True)
        if (can & ~left).any()
    ]
    assert met and all("batch" in pair for pair in met)


@fault("store")
def loses_tagged_gaps(self, call, values):
    """Loses its sums where a tag and a gradInput that is not packed meet."""
    output = call.tensors["grad_input"]
    is_packed = np.moveaxis(output.array, 1, -1).flags.c_contiguous
    Scatter.store(self, call, values if is_packed or not output.tag else np.zeros_like(values))


@fault("store")
def loses_ceiled_gaps(self, call, values):
    """Loses its sums where ceil_mode and a strided gradOutput meet."""
    is_dense = call.tensors["grad_output"].array.flags.c_contiguous
    Scatter.store(self, call, values if is_dense or not call.attributes.rounds_up else np.zeros_like(values))


@pytest.mark.parametrize(("aspect", "backend"), [("tagged", loses_tagged_gaps()), ("layouts", loses_ceiled_gaps())])
def test_the_smoke_plan_finds_a_defect_where_two_classes_meet(aspect: str, backend: Scatter) -> None:
    subject = Subject("npu", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int32", tags=("NHWC",))
    blocks = CASE_ASPECTS[aspect].blocks(subject, PLANS["smoke"], 0)
    asked = [question for block in blocks for question in block.questions()]
    rows = [(question, CaseQuestion(question.case, holding("interval")).judge(backend)) for question in asked]
    found = [question.case for question, row in rows if row["verdict"] == "violates"]
    assert found
    assert not any(dict.fromkeys(layout for _, layout in case.layouts).keys() == {"nhwc"} for case in found)
    honest = (CaseQuestion(case, holding("interval")).judge(Scatter()) for case in found)
    assert {row["verdict"] for row in honest} == {"conforms"}
