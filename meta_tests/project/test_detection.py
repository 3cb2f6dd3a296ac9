"""The study of what others find: their lists and standards see the defects that they are known to see."""

from __future__ import annotations

from functools import cache

import pytest

from detection import OUR_CASES, PEERS, Rejected, finds, judge_by_others
from poolproof.references.standards import STANDARDS
from poolproof.score.hunt import HONEST
from poolproof.suites.cases.case import Case

MANY_PLANES = Case.of(
    operator="MaxPool2dWithIndicesBackward", index_dtype="int32", shape=(1, 49, 6, 8), kernel_size=(2,)
)
ALL = {*STANDARDS, "interval"}
LISTS = [peer.name for peer in PEERS]


@cache
def rejected_by_lists() -> dict[tuple[str, str], dict[str, Rejected]]:
    """Both defects, and the honest emulator, which is judged once beside them."""
    seeded = [("A2", defect) for defect in ("assign_not_accumulate", "previous_result_added")]
    return judge_by_others(seeded, {"A2": []}, 2, 60.0, LISTS)


@pytest.mark.parametrize(
    ("defect", "found"),
    [
        ("assign_not_accumulate", {"ATK lists", "OpInfo samples", "benchdnn pool"}),
        ("previous_result_added", {"benchdnn pool"}),
    ],
)
def test_lists_of_others_find_what_they_are_known_to(defect: str, found: set[str]) -> None:
    """An overwritten collision is seen by all lists with overlapping windows; an output that is not cleared by the one
    that fills it beforehand."""
    assert {name for name in LISTS if finds(rejected_by_lists(), ("A2", defect), name)} == found


def test_lists_of_others_hold_nothing_against_an_honest_kernel() -> None:
    """What one held against it would count as no find of any defect."""
    assert [name for name in LISTS if rejected_by_lists()["A2", HONEST][name][name]] == []


def test_a_process_that_dies_is_seen_by_everybody() -> None:
    rejected = judge_by_others([("A2", "crash_on_uneven_cores")], {"A2": [MANY_PLANES]}, 2, 60.0, [OUR_CASES])
    assert finds(rejected, ("A2", "crash_on_uneven_cores"), OUR_CASES) == ALL


def test_uniform_data_show_standards_a_lost_gradient_and_nothing_of_an_honest_kernel() -> None:
    rejected = judge_by_others([("A2", "assign_not_accumulate")], {"A2": []}, 2, 120.0, ["uniform"])
    assert rejected["A2", HONEST]["uniform"]["interval"] == set()
    assert {"interval", "torch-assert-close"} <= finds(rejected, ("A2", "assign_not_accumulate"), "uniform")
