"""Rounding into each format agrees with rational arithmetic, also for values that float64 does not hold."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact import round_to_nearest_even
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, FloatFormat

NARROW = (FLOAT32, FLOAT16, BFLOAT16)


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
@given(x=st.floats(allow_nan=False, allow_infinity=False), nudge=st.sampled_from([0, 1, -1]))
def test_rounds_the_exact_value_once(fmt: FloatFormat, x: float, nudge: int) -> None:
    residue = nudge * math.ulp(x) / 8
    rounded = fmt.round(np.array([x]), np.array([residue]))
    assert rounded[0] == round_to_nearest_even(Fraction(x) + Fraction(residue), fmt)


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
def test_rounds_halfway_cases_to_even_only_without_a_residue(fmt: FloatFormat) -> None:
    half = 1.0 + fmt.unit_roundoff
    above = 1.0 + 2 * fmt.unit_roundoff
    rounded = fmt.round(np.array([half, half, half]), np.array([0.0, 1e-30, -1e-30]))
    assert rounded.tolist() == [1.0, above, 1.0]


def test_a_cast_by_ml_dtypes_would_round_bfloat16_twice() -> None:
    """Why the formats round for themselves: 1 + 2**-8 + 2**-40 lies above the halfway point."""
    value = np.array([1.0 + 2.0**-8 + 2.0**-40])
    assert BFLOAT16.round(value)[0] == 1.0078125
    assert value.astype(ml_dtypes.bfloat16)[0] == 1.0


@pytest.mark.parametrize("fmt", (FLOAT32, FLOAT16), ids=lambda fmt: fmt.name)
def test_agrees_with_numpys_casts(fmt: FloatFormat) -> None:
    rng = np.random.default_rng(0)
    span = fmt.max_exponent - fmt.min_exponent + fmt.precision + 6
    values = np.ldexp(
        rng.uniform(-2, 2, 100_000), fmt.min_exponent - fmt.precision - 3 + rng.integers(0, span, 100_000)
    )
    with np.errstate(over="ignore"):
        assert np.array_equal(fmt.round(values), values.astype(fmt.dtype).astype(np.float64))


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_constants_are_those_of_the_dtype(fmt: FloatFormat) -> None:
    info = ml_dtypes.finfo(fmt.dtype)
    assert (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal) == (
        float(info.max),
        float(info.smallest_normal),
        float(info.smallest_subnormal),
    )
    assert fmt.precision == info.nmant + 1


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
def test_overflow_threshold_is_where_rounding_gives_infinity(fmt: FloatFormat) -> None:
    below = np.nextafter(fmt.overflow_threshold, 0)
    assert fmt.round(np.array([below, fmt.overflow_threshold])).tolist() == [fmt.max, np.inf]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_ulp_is_the_distance_to_the_next_value(fmt: FloatFormat) -> None:
    values = np.array([1.0, 1.5, 2.0, fmt.smallest_normal, fmt.smallest_subnormal, 0.0, fmt.max])
    one_up = values[:-1].astype(fmt.dtype).view(f"u{fmt.dtype.itemsize}") + 1
    distances = one_up.view(fmt.dtype).astype(np.float64) - values[:-1]
    assert np.array_equal(fmt.ulp(values)[:-1], distances)
    assert fmt.ulp(values)[-1] == 2.0 ** (fmt.max_exponent - fmt.precision + 1)


def test_float64_is_left_alone() -> None:
    values = np.array([1 / 3, 1e-310])
    assert FLOAT64.round(values) is values
