"""Classes of factors: what the stored cases visit, what plans visit of it, and how a list is completed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product as product_of
from pathlib import Path

import numpy as np
import pytest

from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.figures.coverage import factor_coverage
from poolproof.reports.rows.factors import Scope, classes_of
from poolproof.reports.rows.features import call_features, features_of
from poolproof.reports.rows.meetings import PLACES, TOGETHER, FactorCoverage, call_of, file_of, space_of
from poolproof.reports.rows.store import read_run
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.pairs import LARGEST, completing, cost_of, row_of, stored
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, scope_of
from shares import a_share

BACKWARD = "MaxPool2dWithIndicesBackward"


def scope_on(name: str, product: str = "") -> Scope:
    operator = OPERATORS[name]
    return Scope(operator, operator.indices.dtypes, product=PRODUCTS.get(product))


def covered(*cases: Case) -> FactorCoverage:
    coverage = FactorCoverage(scope_on(cases[0].operator))
    for case in cases:
        coverage.add(row_of(case))
    return coverage


@pytest.mark.parametrize(("size", "one_in"), [(2, 1), (3, 20)])
@pytest.mark.parametrize("name", OPERATORS)
def test_stored_classes_are_those_of_the_stored_cases(name: str, size: int, one_in: int) -> None:
    lines = stored(OPERATORS[name], size)
    with np.load(file_of(OPERATORS[name])) as file:
        calls = file[TOGETHER[size]]
    assert len(calls) == len(lines)
    for line, call in [*zip(lines, calls, strict=True)][::one_in]:
        row = row_of(Case.from_json(line))
        for features in (features_of(row), call_features(row)):
            assert call_of(classes_of(features)) == tuple(call), line


def possible(scope: Scope) -> set[tuple[str, str]]:
    met = space_of(scope).possible(2)
    return {PLACES[place] for place in np.flatnonzero(met.any(axis=0) | met.any(axis=1))}


def test_what_a_scope_lacks_is_not_possible_there() -> None:
    dilated, anywhere = {("dilation", "past the stride")}, possible(scope_on(BACKWARD))
    assert dilated < anywhere
    assert dilated <= possible(scope_on(BACKWARD, "950"))
    assert not dilated & possible(scope_on(BACKWARD, "A2"))
    lacks = replace(scope_on(BACKWARD), index_dtypes=("int64",), abilities=(("unbatched", False), ("layouts", ())))
    gone = anywhere - possible(lacks)
    layouts = {f"layout of {name}" for name in lacks.operator.tensors}
    assert ("batch", "unbatched") in gone
    assert {name for name, _ in gone} == {"batch", "index dtype"} | layouts


def test_a_list_is_completed_by_stored_cases() -> None:
    coverage = covered(Case.smallest(OPERATORS["AdaptiveMaxPool2d"], "float16"))
    before, shares = coverage.meetings(2), []
    for case in completing(coverage, "float16"):
        assert Case.from_json(case.to_json()).dtype == "float16"
        shares.append(coverage.meetings(2).visited)
    assert before.visited < shares[0]
    assert shares == sorted(set(shares))
    assert shares[-1] == before.possible


def test_a_run_counts_what_was_judged(run: Path) -> None:
    covered = factor_coverage(run, read_run(run))
    assert {key[1:] for key in covered} >= {("MaxPool2dWithIndicesBackward", "float32")}
    for coverage in covered.values():
        pairs = coverage.meetings(2)
        assert 0 < pairs.visited < pairs.possible
        assert pairs.possible - pairs.visited == sum(1 for _ in pairs.missing())


ON = (("torch", "", ("int64",)), ("npu", "A2", ("int32",)), ("npu", "950", ("int32", "int64")))
"""Backend, product, and dtypes of indices."""

VISITED = {"smoke": (2,), "acceptance": (2, 3)}
"""How many classes meet in what a plan visits."""


@pytest.mark.parametrize(
    ("plan", "name", "backend", "product", "index_dtypes"),
    [
        *(("smoke", name, *on) for name in OPERATORS for on in ON),
        *a_share(("acceptance", name, *ON[number % len(ON)]) for number, name in enumerate(OPERATORS)),
    ],
)
def test_a_plan_visits_what_it_should(
    plan: str, name: str, backend: str, product: str, index_dtypes: tuple[str, ...]
) -> None:
    operator, device = OPERATORS[name], PRODUCTS.get(product)
    if not {*index_dtypes} & {*operator.indices.dtypes}:
        index_dtypes = operator.indices.dtypes
    first = Subject(backend, operator, "float16", "", product=device, index_dtypes=index_dtypes)
    first = replace(first, tags=device.tags if device else ())
    coverage = FactorCoverage(scope_of(first))
    left_out = {case.id: case for case in listed(first, VISITED[plan], "acceptance")}
    for case in listed(first, VISITED[plan], plan):
        coverage.add(row_of(case))
        del left_out[case.id]
    assert not left_out or plan == "smoke"
    assert all(cost_of(replace(case, dtype="float64")) > LARGEST for case in left_out.values())
    for case in left_out.values():
        coverage.add(row_of(case))
    for size in VISITED[plan]:
        assert not list(coverage.meetings(size).missing())


def listed(subject: Subject, sizes: Sequence[int], plan: str) -> Iterator[Case]:
    """The stored cases of a plan, in each dtype of indices."""
    for index_dtype, size in product_of(subject.index_dtypes, sizes):
        for block in CASE_ASPECTS[TOGETHER[size]].blocks(replace(subject, index_dtype=index_dtype), PLANS[plan], 0):
            for question in block.questions():
                assert isinstance(question, CaseQuestion) and question.case.index_dtype == index_dtype
                yield question.case


def test_an_empty_call_visits_its_emptiness_alone() -> None:
    empty = covered(replace(Case.smallest(OPERATORS[BACKWARD]), shape=(0, 1, 2, 2)))
    pairs = empty.meetings(2)
    met = np.argwhere(empty.space.possible(2) & ~pairs.left)
    assert len(met) == pairs.visited > 0
    assert all(("batch", "empty") in {PLACES[first], PLACES[second]} for first, second in met)
