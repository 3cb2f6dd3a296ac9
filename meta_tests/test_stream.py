"""Data made in parts are the data made at once; of large tensors they are pieces of what was drawn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32
from poolproof.references.geometry import windowed_axis
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import contents
from poolproof.suites.cases.recipes import gradients, many
from poolproof.suites.cases.recipes import stream as streams
from poolproof.suites.cases.recipes.gradients import GRADIENTS, Landing
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


@pytest.mark.parametrize("recipe", GRADIENTS)
def test_gradients_in_parts(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    axis = windowed_axis(9, 3, 2, 1, 1, False)
    indices = INDICES["in_window"]((axis,), np.zeros((SIZE, 9)), Stream(2, "indices"))
    landing = Landing(indices, 9, (axis,))
    for fmt in (FLOAT32, FLOAT16, BFLOAT16):
        whole = GRADIENTS[recipe](landing, fmt, Stream(3, "gradient"))
        monkeypatch.setattr(streams, "PART", 50)
        made = GRADIENTS[recipe](landing, fmt, Stream(3, "gradient"))
        monkeypatch.undo()
        assert made.tobytes() == whole.tobytes()


def test_the_largest_multiplicity_is_that_of_the_fullest_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = windowed_axis(9, 3, 1, 1, 1, False)
    indices = np.array([np.arange(9), np.clip(np.arange(9), 2, 8), np.clip(np.arange(9), 0, 7)])
    for part in (gradients.PART, 9, 18):
        monkeypatch.setattr(gradients, "PART", part)
        assert Landing(indices, 9, (axis,)).largest_multiplicity == 3
        assert Landing(indices[1:], 9, (axis,)).largest_multiplicity == 3
        assert Landing(indices[::2], 9, (axis,)).largest_multiplicity == 2
        assert Landing(indices[:1], 9, (axis,)).largest_multiplicity == 1
        assert Landing(indices[:0], 9, (axis,)).largest_multiplicity == 1


LARGE = (1, 300, 64, 64)
"""More elements than are drawn one by one."""


def large(operator: str, **recipes: str) -> Case:
    return Case.of(operator=operator, shape=LARGE, dtype="float16", kernel_size=(2,), stride=(1,), **recipes)


@pytest.mark.parametrize("recipe", ["ties", "after_relu", "infinities"])
def test_no_two_planes_of_a_large_tensor_are_alike_nor_those_before_and_behind_an_offset(recipe: str) -> None:
    """What `huge` is for: a kernel that reads at an offset cut to 20 bits reads something else."""
    values = contents(large("MaxPool2dWithMask", values=recipe)).values.view(np.uint16)
    planes = values.reshape(300, -1)
    assert len(np.unique(planes, axis=0)) == 300
    flat, behind = values.ravel(), 1 << 20
    assert (flat[behind:] != flat[: flat.size - behind]).mean() > 0.4


def test_gradients_of_a_large_tensor_are_those_of_their_recipe() -> None:
    drawn = contents(large("MaxPool2dWithIndicesBackward", gradient="integers", indices="in_window"))
    assert drawn.gradient is not None
    terms = np.abs(drawn.terms)
    assert np.bincount(drawn.landing.cells, terms).max() <= FLOAT16.largest_exact_integer
    assert (terms != 0.0).all() and len(np.unique(drawn.gradient.reshape(300, -1), axis=0)) == 300


def test_values_that_depend_on_their_place_are_drawn_for_it_however_many_they_are() -> None:
    size = many.MOST_DRAWN + 100
    ascending, descending = (
        draw_values(name, size, FLOAT32, Stream(1, "values")) for name in ("ascending", "descending")
    )
    assert (np.diff(ascending) == 1.0).all() and (np.diff(descending) == -1.0).all()


def test_beyond_a_size_elements_are_those_of_a_table() -> None:
    sizes = (many.MOST_DRAWN, many.MOST_DRAWN + 1)
    drawn, repeated = (len(np.unique(draw_values("negative", size, FLOAT32, Stream(1, "values")))) for size in sizes)
    assert repeated <= many.TABLE < drawn


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
