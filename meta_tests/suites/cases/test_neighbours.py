"""Cases near another one: the same tensors, so that only what a cache forgets can confuse them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolproof.references.operators import OPERATORS
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.targets import known_geometries, targets
from poolproof.suites.cases.varying import neighbours, twin
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter

PLAIN = Case.of(operator="MaxPool3dWithArgmaxBackward", shape=(2, 3, 6, 7, 8), kernel_size=(2,), stride=(2,))


def state_cases() -> list[Case]:
    planned = blocks(subjects("scatter", Scatter()), [CASE_ASPECTS["state"]], PLANS["smoke"], 0)
    return [question.case for block in planned for question in block.questions()]


def test_a_twin_has_the_same_tensors_and_other_windows() -> None:
    found = [(case, other) for case in state_cases() if (other := twin(case)) is not None]
    assert len(found) > 100
    for case, other in found:
        assert other.pooled_shape == case.pooled_shape
        assert other.layouts == case.layouts
        assert replace(other, attributes=case.attributes) == case
        assert other.attributes.sizes != case.attributes.sizes
        assert replace(other.attributes, kernel_size=(), stride=()) == replace(
            case.attributes, kernel_size=(), stride=()
        )


@pytest.mark.parametrize(
    "case",
    [
        Case.of(operator="AdaptiveMaxPool2dBackward", shape=(2, 3, 6, 7), output_size=(2, 3)),
        replace(PLAIN, shape=(0, 3, 6, 7, 8)),
        Case.of(operator="MaxPool2dWithIndices", shape=(1, 1, 2, 2), kernel_size=(1,), stride=(1,)),
    ],
    ids=["adaptive", "empty", "one cell per window, no room for two"],
)
def test_some_cases_have_no_twin(case: Case) -> None:
    assert twin(case) is None


def test_neighbours_are_legal_and_near() -> None:
    found = neighbours(PLAIN)
    assert len(found) == 4
    assert all(Case.from_json(case.to_json()) == case and case.operator == PLAIN.operator for case in found)
    assert PLAIN not in found


@pytest.mark.parametrize("name", [name for name, each in OPERATORS.items() if each.windows is Windowed])
def test_every_known_geometry_is_a_target(name: str) -> None:
    operator = OPERATORS[name]
    planned = [target.case for target in targets(operator, "float32", "int32")]
    asked = {(case.spatial_shape, case.attributes.sizes) for case in planned}
    known = {(geometry.spatial, geometry.windows.kernel_size) for geometry in known_geometries(operator.spatial_rank)}
    assert len(known) > 5
    assert known <= asked
