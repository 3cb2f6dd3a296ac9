"""Windows, maxima and whole backward passes as compiled code makes them, held to the specification.

Sums and the criterion are held to it cell by cell in `test_criterion`.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf, nan, prod

import numpy as np
import pytest

from poolproof.references import specification
from poolproof.references.accumulation import ACC32
from poolproof.references.formats import FLOAT32
from poolproof.references.forward import forward_maximum, judge_forward
from poolproof.references.geometry import Axis, adaptive_axis, windowed_axis
from poolproof.references.kernels.forward import POINTS_ELSEWHERE
from poolproof.references.specification import Windows
from poolproof.references.summary import PlaneChunk, summarise


def visited(axis: Axis) -> Windows:
    return [axis.positions[o][axis.valid[o]].tolist() for o in range(axis.windows)]


def test_windows_lie_where_the_specification_lays_them() -> None:
    missing = Counter[bool]()
    for size, kernel, stride, dilation in product(range(1, 8), range(1, 6), range(1, 6), range(1, 4)):
        for padding, ceil_mode in product(range(kernel + 1), (False, True)):
            attributes = size, kernel, stride, padding, dilation, ceil_mode
            windows = specification.windowed(*attributes)
            if windows:
                axis = windowed_axis(*attributes)
                assert visited(axis) == windows
                assert axis.has_empty_window is ([] in windows)
                missing[axis.has_empty_window] += 1
            else:
                with pytest.raises(ValueError, match="has no window"):
                    windowed_axis(*attributes)
    assert missing.total() > 3000 and missing[True] > 100
    for size, count in product(range(1, 12), range(1, 15)):
        assert visited(adaptive_axis(size, count)) == specification.adaptive(size, count)


POOLS = {
    "overlapping": (windowed_axis(5, 3, 1, 1, 1, False), windowed_axis(6, 2, 1, 1, 1, True)),
    "dilated": (windowed_axis(7, 2, 2, 1, 3, False), windowed_axis(6, 3, 1, 0, 2, False)),
    "without cells": (windowed_axis(1, 2, 1, 1, 2, False), windowed_axis(4, 2, 2, 0, 1, False)),
    "3-D": (windowed_axis(4, 2, 2, 1, 1, True), windowed_axis(5, 3, 2, 1, 1, False), adaptive_axis(4, 3)),
}


@pytest.mark.parametrize("axes", POOLS.values(), ids=POOLS)
def test_a_pool_and_its_backward_are_those_of_the_specification(axes: tuple[Axis, ...]) -> None:
    rng, sizes = np.random.default_rng(4), tuple(axis.size for axis in axes)
    windows = specification.windows_of_plane([(axis.size, visited(axis)) for axis in axes])
    rejected = 0
    for _ in range(30):
        values = rng.choice([-inf, -1.0, 0.0, 1.0, 2.0, nan], (1, *sizes), p=[0.4, 0.1, 0.1, 0.2, 0.1, 0.1])
        expected = [specification.forward(values.ravel().tolist(), window) for window in windows]
        maxima, indices = forward_maximum(values, axes)
        assert indices.ravel().tolist() == [index for _, index in expected]
        np.testing.assert_array_equal(maxima.ravel(), [maximum for maximum, _ in expected])
        assert not (judge_forward(values, axes, maxima, indices) & ~np.uint8(POINTS_ELSEWHERE)).any()

        indices[indices < 0] = 0
        gradients = FLOAT32.round(rng.normal(size=len(windows)))
        terms = specification.backward(gradients.tolist(), indices.ravel().tolist(), prod(sizes))
        outputs = FLOAT32.round(np.array([sum(cell) for cell in terms], float))
        outputs[rng.integers(len(outputs))] += rng.choice([0.0, 2.0**-20])
        summary = summarise([PlaneChunk(indices.ravel(), gradients, outputs)], prod(sizes), FLOAT32, ACC32).tally
        verdicts = [
            specification.admissible(cell, FLOAT32, ACC32).accepts(output)
            for cell, output in zip(terms, outputs.tolist(), strict=True)
        ]
        assert summary.rejected == verdicts.count(False)
        rejected += summary.rejected
    assert rejected > 5
