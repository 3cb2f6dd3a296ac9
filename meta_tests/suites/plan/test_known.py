"""What is known of a row without the device that it was judged on."""

from __future__ import annotations

import json

import pytest

from poolproof.suites.plan.known import row_problem

_CALL = {
    "operator": "MaxPool2dWithIndicesBackward",
    "shape": [1, 1, 4, 4],
    "index_dtype": "int32",
    "kernel_size": [2, 2],
}
_REASON = "161002 in phase 1 by 2d-bwd.dilation.one: Every value of dilation is 1."


@pytest.mark.parametrize("second", [[1, 1], [2, 2]])
def test_whichever_call_of_a_sequence_is_refused_the_row_says_what_its_document_says(second: list[int]) -> None:
    """A sequence was held to its first call alone, and honest runs with it did not stand."""
    calls = [_CALL | {"dilation": [1, 1]}, _CALL | {"dilation": second}]
    row = {"backend": "emulator-a2", "product": "A2", "model": None, "verdict": "refused as documented"}
    row |= {"reason": _REASON, "case": json.dumps({"sequence": ["prepare", "prepare call=1"], "calls": calls})}
    assert bool(row_problem(row, {"backends": {}})) is (second == [1, 1])
