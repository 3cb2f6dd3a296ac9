"""Data made in parts are the data made at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32
from poolproof.references.geometry import windowed_axis
from poolproof.suites.cases.recipes import stream as streams
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.stream import Stream
from poolproof.suites.cases.recipes.values import VALUES, draw_values

SIZE = 203
"""Of which no part of 50 elements begins where a block of raw numbers does, but for the first and every other one."""


@pytest.mark.parametrize("recipe", VALUES)
def test_values_in_parts(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        whole = VALUES[recipe](SIZE, fmt, Stream(3, "values"))
        monkeypatch.setattr(streams, "PART", 50)
        made = draw_values(recipe, SIZE, fmt, Stream(3, "values"))
        assert made.dtype == fmt.dtype
        assert made.tobytes() == whole.astype(fmt.dtype).tobytes()
        monkeypatch.undo()


@pytest.mark.parametrize("recipe", INDICES)
def test_indices_in_parts(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = (windowed_axis(6, 3, 1, 1, 1, False), windowed_axis(5, 2, 1, 0, 2, False))
    values = draw_values("normal", 7 * 30, FLOAT32, Stream(1, "values")).reshape(7, 6, 5)
    whole = INDICES[recipe](axes, values, Stream(2, "indices"))
    monkeypatch.setattr(streams, "PART", 40)
    np.testing.assert_array_equal(INDICES[recipe](axes, values, Stream(2, "indices")), whole)


def test_parts_are_whole_units_that_cover_all_elements() -> None:
    total = 3 * streams.PART + 10
    parts = [part for part, _ in Stream(0, "values").parts(total, unit=1000)]
    assert parts[0].start == 0 and parts[-1].stop == total
    assert all(one.stop == next_one.start and one.stop % 1000 == 0 for one, next_one in pairwise(parts))
    assert len(parts) > 3
