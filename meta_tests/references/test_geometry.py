"""Sizes, windows and maxima agree with torch, which is where the operator library's rules come from."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolproof.references.forward import forward_maximum
from poolproof.references.geometry import adaptive_axis, expand, misses_input, pooled_size, windowed_axis
from poolproof.references.operators import FORWARDS, OPERATORS, Operator
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.plan.aspects import CASE_ASPECTS

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # as its backend does: threads that wait for cases this small cost more than the cases

TORCH_FORWARDS = [operator for operator in FORWARDS if operator.aten]
VALUES = CASE_ASPECTS["special_values"].profile.values + CASE_ASPECTS["values"].profile.values
CASES = 5000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("operator", TORCH_FORWARDS, ids=lambda operator: operator.name)
def test_forward_agrees_with_torch(operator: Operator, dtype: str) -> None:
    """Shapes, maxima and indices, on 5,000 cases over all operators and dtypes; no disagreement is known."""
    count = CASES // (4 * len(TORCH_FORWARDS)) + 1
    for case in generate(cases(operator, dtype, "int64", Profile(values=VALUES)), count, seed=1):
        values = make_operands(case).values.astype(np.float64)
        tensor = torch.from_numpy(values).to(getattr(torch, case.dtype))
        out, indices = getattr(torch.ops.aten, case.api.aten)(tensor, *case.api.passed(case.attributes))
        assert tuple(out.shape) == case.pooled_shape, case.to_json()
        maxima, flat = forward_maximum(values.reshape(case.planes, *case.spatial_shape), case.axes)
        np.testing.assert_array_equal(out.double().numpy().ravel(), maxima.ravel(), case.to_json())
        np.testing.assert_array_equal(indices.numpy().ravel(), flat.ravel(), case.to_json())


@given(
    size=st.integers(1, 40),
    kernel=st.integers(1, 9),
    stride=st.integers(1, 9),
    dilation=st.integers(1, 4),
    ceil_mode=st.booleans(),
    data=st.data(),
)
def test_pooled_size_agrees_with_torch(
    size: int, kernel: int, stride: int, dilation: int, ceil_mode: bool, data: st.DataObject
) -> None:
    padding = data.draw(st.integers(0, kernel // 2))
    expected = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    pool = torch.nn.MaxPool1d(kernel, stride, padding, dilation, ceil_mode=ceil_mode)
    if expected < 1:
        with pytest.raises(RuntimeError):
            pool(torch.zeros(1, 1, size))
        with pytest.raises(ValueError, match="has no window"):
            windowed_axis(size, kernel, stride, padding, dilation, ceil_mode)
    else:
        assert pool(torch.zeros(1, 1, size)).shape[-1] == expected


@given(size=st.integers(1, 60), windows=st.integers(1, 90))
def test_adaptive_windows_cover_the_axis_and_differ_by_at_most_one(size: int, windows: int) -> None:
    axis = adaptive_axis(size, windows)
    lengths = axis.valid.sum(axis=1)
    assert axis.coverage().min() >= 1
    assert np.ptp(lengths) <= 1
    for window in range(windows):
        visited = axis.positions[window][axis.valid[window]]
        assert visited[0] == window * size // windows
        assert visited[-1] + 1 == -(-(window + 1) * size // windows)


@given(
    size=st.integers(1, 30),
    kernel=st.integers(1, 6),
    stride=st.integers(1, 6),
    dilation=st.integers(1, 3),
    ceil_mode=st.booleans(),
)
def test_coverage_and_covering_windows_agree(
    size: int, kernel: int, stride: int, dilation: int, ceil_mode: bool
) -> None:
    if pooled_size(size, kernel, stride, kernel // 2, dilation, ceil_mode) < 1:
        return
    axis = windowed_axis(size, kernel, stride, kernel // 2, dilation, ceil_mode)
    assert axis.coverage().tolist() == [((axis.positions == cell) & axis.valid).sum() for cell in range(size)]


def test_windows_that_were_counted_by_hand() -> None:
    """The last one may not start in the trailing padding; a dilated one can miss its input."""
    assert pooled_size(6, 1, 2, 0, 1, ceil_mode=True) == pooled_size(5, 2, 2, 1, 1, ceil_mode=True) == 3
    assert pooled_size(17, 2, 2, 1, 1, ceil_mode=True) == 9
    assert windowed_axis(2, 2, 1, 1, 3, False).has_empty_window
    assert not windowed_axis(3, 2, 1, 1, 3, False).has_empty_window
    assert (expand((), 3, (2, 3, 4)), expand((5,), 3), expand((), 2, (1,))) == ((2, 3, 4), (5, 5, 5), (1, 1))
    assert expand((4, 5), 2) == (4, 5)


def test_windows_that_miss_their_input_are_known_without_their_table() -> None:
    told = Counter[bool]()
    for size, kernel, stride, dilation in product(range(1, 8), range(1, 6), range(1, 6), range(1, 5)):
        for padding, ceil_mode in product(range(kernel + 1), (False, True)):
            windows = size, kernel, stride, padding, dilation, ceil_mode
            if pooled_size(*windows) > 0:
                assert misses_input(*windows) is windowed_axis(*windows).has_empty_window, windows
                told[misses_input(*windows)] += 1
    assert min(told[False], told[True]) > 100


def test_ties_nan_and_infinities_follow_the_rule() -> None:
    nan, minus = np.nan, -np.inf
    axes = (windowed_axis(4, 4, 4, 0, 1, False),)
    for row, index in (
        ([1, 3, 3, 2], 1),
        ([nan, 5, nan, 7], 2),
        ([minus, minus, minus, minus], 0),
        ([minus, minus, -1e30, minus], 2),
        ([np.inf, 1, np.inf, nan], 3),
        ([-0.0, 0.0, 0.0, -1], 0),
    ):
        maxima, indices = forward_maximum(np.array([row], float), axes)
        assert indices.item() == index
        assert np.array_equal(maxima.item(), row[index], equal_nan=True)


def test_every_backward_has_a_producer_of_its_geometry() -> None:
    for operator in OPERATORS.values():
        if operator.producer:
            producer = OPERATORS[operator.producer]
            assert (producer.spatial_rank, producer.windows, producer.indices) == (
                operator.spatial_rank,
                operator.windows,
                operator.indices,
            )
