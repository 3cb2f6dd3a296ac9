"""A forward is judged by the rule that it declares, and by nothing less."""

from __future__ import annotations

from functools import cache

import pytest

from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.suites.judging.case_question import CaseQuestion, judge
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.plans import PLANS, blocks, subjects
from scatter import Scatter
from scatter_backends import Picking

RULES = tuple(map(ForwardRule.parse, ("last", "first-nan", "last+leading-nan", "no-nan", "no-nan+lowest")))


@cache
def questions(aspect: str = "special_values") -> list[CaseQuestion]:
    """Forwards on data with ties, NaN and infinities, or on those of another aspect."""
    chosen = [
        subject
        for subject in subjects("scatter", Scatter())
        if not subject.operator.is_backward and (subject.dtype, subject.index_dtype) == ("float16", "int64")
    ]
    asked = blocks(chosen, [CASE_ASPECTS[aspect]], PLANS["smoke"], 1)
    return [question for block in asked for question in block.first(40)]


def violated(picks: ForwardRule, declared: ForwardRule, aspect: str = "special_values") -> set[str]:
    """The checks whose claims are broken by any of the questions."""
    rows = [judge(question, Picking(picks, declared)) for question in questions(aspect)]
    return {check for row in rows for check in row.get("checks_violated") or ()}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_declared_is_right_but_an_index_that_points_at_nothing(rule: ForwardRule) -> None:
    """Where NaN are ignored, a window of nothing else has no cell whose value could come out."""
    assert violated(rule, declared=rule) == ({"index_points"} if "no-nan" in str(rule) else set())


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_not_declared_is_wrong(rule: ForwardRule) -> None:
    assert "index_rule" in violated(rule, declared=FAMILY_RULE)
    assert "index_rule" in violated(FAMILY_RULE, declared=rule)


def test_any_of_the_tied_is_right_where_that_is_declared() -> None:
    any_of_them = ForwardRule.parse("any+any-nan")
    for rule in map(ForwardRule.parse, ("first", "last", "first-nan", "last+first-nan")):
        assert violated(rule, declared=any_of_them) == set()
    assert "index_rule" in violated(ForwardRule.parse("leading-nan"), declared=any_of_them)


def test_subnormal_cells_are_asked_about() -> None:
    """Comparisons that take them for zero are wrong unless that is declared, and so are others where it is."""
    flushing = ForwardRule.parse("ftz")
    assert violated(flushing, declared=flushing, aspect="subnormals") == set()
    assert violated(FAMILY_RULE, declared=FAMILY_RULE, aspect="subnormals") == set()
    assert "index_rule" in violated(flushing, declared=FAMILY_RULE, aspect="subnormals")
    assert "index_rule" in violated(FAMILY_RULE, declared=flushing, aspect="subnormals")
