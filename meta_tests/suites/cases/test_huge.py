"""Sizes at which counters end: which plan asks them, and a kernel that loses planes behind one is found."""

from __future__ import annotations

from math import prod

import pytest

from poolproof.references.operators import OPERATORS, Operator
from poolproof.score.hunt import HONEST, answers
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.plans import PLANS, Subject, blocks

ASPECT = CASE_ASPECTS["huge"]


def asked(operator: Operator, plan: str, dtype: str = "float16") -> list[Case]:
    subject = Subject("any", operator, dtype, operator.indices.dtypes[0])
    return [each.case for block in blocks([subject], [ASPECT], PLANS[plan], 0) for each in block.questions()]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_operator_meets_the_totals_in_the_smoke_plan_and_the_planes_in_the_acceptance_plan(
    operator: Operator,
) -> None:
    smoke, acceptance, soak = (asked(operator, plan) for plan in ("smoke", "acceptance", "soak"))
    totals = [prod(case.shape) for case in smoke]
    assert any(1 << 20 < total < 1 << 24 for total in totals)
    assert any(1 << 24 < total < 1 << 25 for total in totals)
    assert {65535, 65536, 65537} <= {case.planes for case in acceptance}
    assert max(case.plane_size for case in acceptance) > 1 << 24
    assert max(max(case.shape) for case in acceptance) > 1 << 24
    assert max(prod(case.shape) for case in soak) > 1 << 31
    assert asked(operator, "smoke", "float32") == []
    for case in (*smoke, *acceptance, *soak):
        assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_some_tensor_of_the_soak_plan_is_past_what_31_bits_of_bytes_address(dtype: str) -> None:
    operator = OPERATORS["MaxPool2dWithIndicesBackward"]
    assert any(case.memory_bytes() > 2 * (1 << 31) for case in asked(operator, "soak", dtype))


@pytest.mark.parametrize(
    ("defect", "bits"), [("planes_lost_past_2_20", 20), ("planes_lost_past_2_24", 24)], ids=lambda value: str(value)
)
def test_planes_that_are_lost_behind_an_offset_are_missed(defect: str, bits: int) -> None:
    """The smallest case past the offset, which the smoke plan has, shows it; the honest emulator conforms there."""
    found = [case for case in asked(OPERATORS["AdaptiveMaxPool2dBackward"], "smoke") if prod(case.shape) > 1 << bits]
    question = CaseQuestion(min(found, key=lambda case: prod(case.shape)), ASPECT.alone)
    (lost,) = answers("A2", defect, [question], 120.0)
    (honest,) = answers("A2", HONEST, [question], 120.0)
    assert lost["checks_violated"][0] == "interval"
    assert honest["verdict"] == "conforms"
