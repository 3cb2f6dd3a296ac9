"""Cases that differ from one in a single respect are legal, and differ in that."""

from __future__ import annotations

import pytest

from poolproof.references.operators import OPERATORS, Operator
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.cases.varying import MAX_ELEMENTS, alternatives, changed, parameters


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_what_is_turned_is_legal_and_as_wanted(operator: Operator) -> None:
    drawn = generate(cases(operator, "float32", "int64", Profile(empty_batches=False)), 12, 3)
    made = 0
    for case in drawn:
        for parameter in parameters(case):
            assert parameter.with_value(parameter.low - 1) is None
            assert parameter.with_value(parameter.most + 1) is None
            for value in (1, 2, 5, 64):
                other = parameter.with_value(value)
                if other is not None:
                    made += 1
                    assert Case.from_json(other.to_json()) == other
                    assert not other.has_empty_window()
                    named = other.shape if parameter.name in "NCDHW" else getattr(other.attributes, parameter.name)
                    assert value in named
    assert made > 100


def test_nothing_is_made_that_is_too_large_to_be_judged_in_a_moment() -> None:
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 8, 8), kernel_size=(2, 2))
    planes = next(parameter for parameter in parameters(case) if parameter.name == "C")
    assert planes.with_value(MAX_ELEMENTS // 64) is not None
    assert planes.with_value(MAX_ELEMENTS // 64 + 1) is None


def test_windows_without_cells_are_made_where_the_case_has_one() -> None:
    shape, windows = (1, 1, 1, 1), {"kernel_size": (2, 1), "stride": (1,), "padding": (1, 0)}
    empty = Case.of("MaxPool2dWithIndices", shape=shape, dilation=(2, 1), **windows)
    whole = Case.of("MaxPool2dWithIndices", shape=shape, dilation=(1, 1), **windows)
    assert empty.has_empty_window()
    assert not whole.has_empty_window()
    assert changed(empty, {"values": "ties"}) is not None
    assert changed(whole, {"dilation": [2, 1]}) is None


def test_alternatives_differ_in_a_flag_a_layout_or_the_batch_axis() -> None:
    case = Case.of(
        "MaxPool2dWithIndicesBackward",
        shape=(1, 3, 8, 8),
        kernel_size=(2, 2),
        layouts=(("grad_output", "sliced"), ("indices", "sliced")),
    )
    made = [changed(case, change) for change in alternatives(case)]
    assert case not in made
    assert {other.layouts for other in made if other} >= {(), (("grad_output", "sliced"),), (("indices", "sliced"),)}
    assert {other.attributes.rounds_up for other in made if other} == {True, False}
    assert (3, 8, 8) in {other.shape for other in made if other}
    ones = changed(case, {"gradient": "ones"})
    assert ones is not None
    assert (ones.gradient, ones.shape, ones.layouts) == ("ones", case.shape, case.layouts)
    assert changed(case, {"dtype": "float1"}) is None
