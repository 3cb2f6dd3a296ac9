"""The studies of others: their lists and standards see what they are known to see, and msprobe has what to tell."""

import numpy as np
import pytest

from detection import OUR_CASES, PEERS, finds, judge_by_others
from msprobe_verdicts import WORDS, made, ours
from poolproof.references.standards import STANDARDS
from poolproof.score.hunt import HONEST
from poolproof.suites.cases.case import Case

MANY_PLANES = Case.of("MaxPool2dWithIndicesBackward", index_dtype="int32", shape=(1, 49, 6, 8), kernel_size=(2,))
ALL = {*STANDARDS, "interval"}
LISTS = [peer.name for peer in PEERS]


@pytest.mark.thorough
def test_lists_of_others_find_what_they_are_known_to_and_hold_nothing_against_an_honest_kernel() -> None:
    """An overwritten collision is seen by all lists with overlapping windows; an output that is not cleared by the one
    that fills it beforehand. What one held against an honest kernel would count as no find of any defect.
    """
    rejected = judge_by_others(
        [("A2", "assign_not_accumulate"), ("A2", "previous_result_added")], {"A2": []}, 2, 60.0, LISTS
    )
    for defect, found in (
        ("assign_not_accumulate", {"ATK lists", "OpInfo samples", "benchdnn pool"}),
        ("previous_result_added", {"benchdnn pool"}),
    ):
        assert {name for name in LISTS if finds(rejected, ("A2", defect), name)} == found
    assert [name for name in LISTS if rejected["A2", HONEST][name][name]] == []


def test_a_process_that_dies_is_seen_by_everybody() -> None:
    rejected = judge_by_others([("A2", "crash_on_uneven_cores")], {"A2": [MANY_PLANES]}, 2, 60.0, [OUR_CASES])
    assert finds(rejected, ("A2", "crash_on_uneven_cores"), OUR_CASES) == ALL


def test_tensors_for_msprobe_get_every_verdict() -> None:
    tensors = list(made(np.random.default_rng(1)))
    told = [ours(tensor) for tensor in tensors]
    assert len({tensor.name for tensor in tensors}) == len(tensors) == 36
    assert {each["acc_check", "max_pool2d"] for each in told} == {*WORDS.values()}
    levels = ("max_pool3d", "scatter_add_", "matmul")
    assert len({tuple(each["benchmark", api] for api in levels) for each in told}) == 4, "each level fails some more"
