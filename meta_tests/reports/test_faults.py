"""What became of gradients is told of all that the decoder read, and of nothing else."""

import json
from typing import Any

import pytest

from poolproof.reports.clusters.places import way_astray

BACKWARD = "MaxPool2dWithIndicesBackward"


def moved(home: list[int], cell: list[int], kind: str = "misrouted") -> dict[str, Any]:
    return {"kind": kind, "home": home, "cell": cell}


@pytest.mark.parametrize(
    ("faults", "way"),
    [
        ([moved([0, 1, 2, 2], [0, 0, 2, 2]), moved([1, 2, 0, 0], [0, 0, 0, 1])], "of plane k arrive in plane 0"),
        ([moved([0, 1, 2, 2], [0, 0, 2, 2]), moved([0, 0, 0, 0], [0, 1, 0, 0])], "of a plane arrive in another"),
        (
            [moved([0, 1, 2, 2], [0, 1, 2, 3]), moved([0, 0, 0, 0], [0, 0, 0, 1])],
            "arrive in the wrong cell, 1 further along W",
        ),
        ([moved([0, 0, 2, 2], [0, 0, 1, 4])], "wrong cell, 1 back along H and 2 further along W"),
        ([moved([0, 1, 2, 2], [0, 1, 2, 3]), moved([0, 0, 0, 0], [0, 0, 1, 1])], "in other cells of their plane"),
        ([moved([0, 1, 2, 2], [0, 0, 2, 2]), moved([0, 0, 0, 0], [0, 0, 1, 1])], "in other cells and planes"),
        ([moved([0, 0, 2, 2], [0, 0, 2, 3], "copied")], "wrong cell, 1 further along W, and where they belong"),
        ([{"kind": "lost", "cell": [0, 0, 1, 1]}, {"kind": "unreadable", "cell": [0, 0, 0, 0]}], "do not arrive"),
        ([{"kind": "duplicated", "cell": [0, 0, 1, 1], "times": 2}], "arrive more than once"),
        ([{"kind": "lost", "cell": [0, 0, 1, 1]}, moved([0, 1, 2, 2], [0, 1, 2, 3])], "in several ways"),
        ([{"kind": "misrouted", "cell": [0, 0, 1, 1]}], "in several ways"),
        ([{"kind": "unreadable", "cell": [0, 0, 0, 0]}], ""),
        ([], ""),
    ],
)
def test_one_way_is_said(faults: list[dict[str, Any]], way: str) -> None:
    said = way_astray(BACKWARD, json.dumps(faults))
    assert way in said and bool(way) == bool(said)


@pytest.mark.parametrize("faults", [None, float("nan"), "", "7", "[7]", "[{}]", "{"])
def test_what_is_no_record_says_nothing(faults: Any) -> None:
    assert way_astray(BACKWARD, faults) == ""
    assert way_astray("Abs", '[{"kind": "lost"}]') == ""
