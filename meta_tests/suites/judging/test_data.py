"""What is said of a case's data is so of what its recipes made, and not of the recipes."""

from typing import Any

import pytest

from poolproof.reports.rows.features import DATA
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.varying import needs_producer
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.measure import MOST_LOOKED_AT, look_at_data
from poolproof.suites.judging.question import not_survived
from poolproof.suites.plan.aspects import EVERYTHING

NAN, INF = float("nan"), float("inf")

PLAIN: dict[str, dict[str, tuple[float, ...]]] = {
    "MaxPool2dWithIndices": {"self": tuple(map(float, range(1, 10)))},
    "MaxPool2dWithIndicesBackward": {
        "self": tuple(map(float, range(1, 10))),
        "grad_output": (1.0, 2.0, 3.0, 4.0),
        "indices": (4, 5, 7, 8),
    },
}
"""A plane of 3 x 3 with four windows of 2 x 2, of which nothing is to be said."""


def said(operator: str, **literals: tuple[float, ...]) -> set[str]:
    return said_of_planes(operator, literals)


def said_of_planes(operator: str, *planes: dict[str, tuple[float, ...]]) -> set[str]:
    """Look at planes that have other literals than `PLAIN` each."""
    made = {name: sum((({**PLAIN[operator], **plane})[name] for plane in planes), ()) for name in PLAIN[operator]}
    about: dict[str, Any] = {"operator": operator, "shape": [len(planes), 3, 3], "kernel_size": [2], "stride": [1]}
    return set(look_at_data(make_operands(Case.from_record(about | {"literals": made})))["data"])


def numbers(tensor: str, plain: tuple[float, ...], word: str) -> list[tuple[dict[str, tuple[float, ...]], str]]:
    given = {"{} with NaN": NAN, "{} with infinities": -INF, "{} with -0.0": -0.0, "subnormal {}": 1e-40}
    return [({tensor: (number, *plain[1:])}, name.format(word)) for name, number in given.items()]


OF_SELF = [
    *numbers("self", PLAIN["MaxPool2dWithIndices"]["self"], "values"),
    ({"self": (2.0, *PLAIN["MaxPool2dWithIndices"]["self"][1:])}, "equal values"),
]
OF_BACKWARD = [
    *numbers("grad_output", PLAIN["MaxPool2dWithIndicesBackward"]["grad_output"], "gradients"),
    ({"indices": (4, 4, 7, 8)}, "several windows on one cell, indices other than the forward's"),
    (
        {"indices": (4, 4, 7, 8), "grad_output": (INF, -INF, 1.0, 1.0)},
        "opposite infinities in one cell, gradients with infinities, several windows on one cell",
    ),
    ({"indices": (4, 4, 4, 4), "grad_output": (1.0, 2.0**-30, 0.0, 1.0)}, "inexact sums, several windows on one cell"),
]


@pytest.mark.parametrize("operator", PLAIN)
def test_nothing_is_said_of_what_is_not_there(operator: str) -> None:
    assert said(operator) == set()


@pytest.mark.parametrize(("literals", "words"), OF_BACKWARD)
def test_gradients_and_indices(literals: dict[str, tuple[float, ...]], words: str) -> None:
    assert set(words.split(", ")) <= said("MaxPool2dWithIndicesBackward", **literals) <= {*DATA["backward"]}


@pytest.mark.parametrize(("literals", "words"), OF_SELF)
def test_values(literals: dict[str, tuple[float, ...]], words: str) -> None:
    assert said("MaxPool2dWithIndices", **literals) == {words}


def test_ties_and_the_largest_index() -> None:
    assert said("MaxPool2dWithIndices", self=(1, 2, 3, 4, 5, 6, 9, 8, 9)) == {"equal values"}
    assert said("MaxPool2dWithIndices", self=(1, 2, 3, 4, 5, 6, 9, 9, 8)) == {"equal values", "ties"}
    past = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 300, 300), kernel_size=(2,), indices="last")
    assert {"an index past 2^15", "an index past 2^16"} <= set(look_at_data(make_operands(past))["data"])


TIED = {"self": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 9.0, 8.0)}


@pytest.mark.parametrize("cells", [9, 18, 1 << 15])
@pytest.mark.parametrize("place", range(3))
def test_a_plane_says_the_same_wherever_it_lies(monkeypatch: pytest.MonkeyPatch, place: int, cells: int) -> None:
    """Planes are looked at so many ``cells`` at a time."""
    monkeypatch.setattr("poolproof.suites.judging.measure.PART", cells)
    for operator, special in (
        *(("MaxPool2dWithIndices", literals) for literals in (TIED, *(literals for literals, _ in OF_SELF))),
        *(("MaxPool2dWithIndicesBackward", literals) for literals, _ in OF_BACKWARD),
    ):
        planes = [special if number == place else {} for number in range(3)]
        assert said_of_planes(operator, *planes) == said(operator, **special)


def test_large_data_are_not_looked_at() -> None:
    large = Case.of("MaxPool2dWithIndices", shape=(1, 1, MOST_LOOKED_AT + 2), kernel_size=(1, 2))
    assert look_at_data(make_operands(large)) == {} == CaseQuestion(large, EVERYTHING).describe_data()


@pytest.mark.parametrize("operator", [*PLAIN, "MaxPool2dWithMaskBackward"])
def test_who_dies_of_a_case_leaves_what_its_data_were(operator: str) -> None:
    case = Case.of(operator, shape=(1, 4, 4), kernel_size=(2,), gradient="special", values="nan")
    made = {} if needs_producer(case) else look_at_data(make_operands(case))
    assert not_survived(CaseQuestion(case, EVERYTHING), Verdict.CRASHED, "gone").get("data") == made.get("data")
