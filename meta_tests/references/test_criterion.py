"""The oracle and the criterion against the specification, and against kernels that are correct in every order."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definition import MODELS, hold_candidates
from distributions import DISTRIBUTIONS, draw_terms
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, FloatFormat
from poolproof.references.specification import rounded as correctly_rounded
from simulated import ORDERS, simulate

CASES, UNCOMPILED_CASES = 2000, 100
"""Random small cases held against the specification; `studies/exact_criterion.py` takes twenty thousand."""


def test_sums_longer_than_float64_are_rounded_once() -> None:
    """Powers of two far apart lie half way between two numbers again and again, and a little beside it."""
    rng = np.random.default_rng(31)
    longer = 0
    for _ in range(300):
        terms = rng.choice([-1.0, 1.0], (8, 5)) * 2.0 ** rng.choice([-160, -54, -53, -52, -1, 0, 1], (8, 5))
        sums = scatter_sums(np.repeat(np.arange(8), 5), terms.ravel(), 8)
        for cell in range(8):
            total = sum(map(Fraction, terms[cell].tolist()), Fraction(0))
            assert (sums.sum[cell], sums.residue[cell]) == (float(total), float(total - Fraction(float(total))))
            longer += sums.residue[cell] != 0.0
    assert longer > 500


def test_a_term_sent_nowhere_lands_nowhere_and_none_behind_the_plane() -> None:
    sums = scatter_sums(np.array([0, -1, 1, -1]), np.array([1.0, 2.0, 4.0, np.nan]), 2)
    assert sums.sum.tolist() == [1.0, 4.0] and sums.k.tolist() == [1, 1] and not sums.kinds.any()
    with pytest.raises(IndexError, match="beyond its plane"):
        scatter_sums(np.array([0, 2]), np.array([1.0, 2.0]), 2)
    with pytest.raises(OverflowError, match="float64's limit"):
        scatter_sums(np.zeros(2, np.int64), np.array([1e300, 1e300]), 1)


def test_accepts_what_the_specification_accepts() -> None:
    """Around each exact sum, every candidate is accepted or rejected as it says."""
    assert sum(hold_candidates(number) for number in range(CASES)) > 100_000


def test_accepts_what_the_specification_accepts_uncompiled(in_python: None) -> None:
    assert sum(hold_candidates(number) for number in range(CASES, CASES + UNCOMPILED_CASES)) > 5_000


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fmt", (FLOAT32, FLOAT16, BFLOAT16), ids=lambda fmt: fmt.name)
def test_rejects_no_correct_kernel(fmt: FloatFormat, model: str) -> None:
    """The long version, with a million elements, is studies/false_rejects.py."""
    declared = AccumulationModel.parse(model)
    rng = np.random.default_rng(11)
    for k in (1, 2, 3, 9, 64, 1000):
        for name in DISTRIBUTIONS:
            terms = draw_terms(rng, name, (20, k), fmt)
            outputs = simulate(terms, fmt, declared, str(rng.choice(ORDERS)), rng)
            sums = scatter_sums(np.repeat(np.arange(20), k), terms.ravel(), 20)
            assert admissible(sums, fmt, declared).accepts(outputs).all(), (k, name)


LARGEST, U16 = FLOAT32.max, BFLOAT16.unit_roundoff
MAY_COME_OUT: list[tuple[FloatFormat, str, list[float], list[float], list[float]]] = [
    (FLOAT16, "acc32", [np.nan, 1.0], [np.nan], [1.0]),
    (FLOAT16, "acc32", [np.inf, 1.0], [np.inf], [np.nan]),
    (FLOAT16, "acc32", [np.inf, -np.inf], [np.nan], [np.inf]),
    (FLOAT16, "acc32", [-np.inf], [-np.inf], [-65504.0]),
    (FLOAT16, "acc32", [65504.0, 15.0], [65504.0], [np.inf]),
    (FLOAT16, "acc32", [65504.0, 16.0], [np.inf], [65504.0]),
    (FLOAT16, "acc32", [65504.0, 65504.0, -65504.0], [65504.0], [np.inf]),
    (FLOAT16, "acc32", [], [0.0, -0.0], [2.0**-24]),
    (FLOAT16, "acc32", [-0.0], [0.0], []),
    (FLOAT16, "acc32", [2.0**-24], [], [0.0]),
    # An overflow that only some orders meet; the native kernel meets one where that of float32 does not.
    (FLOAT32, "acc32", [LARGEST, LARGEST, -LARGEST], [LARGEST, np.inf], [0.0]),
    (FLOAT16, "native", [65504.0, 65504.0, -65504.0], [np.inf], []),
    # Saturation and flushing, only when declared.
    (FLOAT16, "acc32+saturate", [65504.0, 65504.0], [65504.0], [np.inf]),
    (FLOAT16, "acc32", [65504.0, 65504.0], [], [65504.0]),
    (FLOAT16, "acc32+cast-ftz", [2.0**-24], [0.0], []),
    (BFLOAT16, "native+ftz", [2.0**-130], [0.0], []),
    (BFLOAT16, "acc32", [2.0**-130], [], [0.0]),
    # One ulp and a half, rounded once to even.
    (BFLOAT16, "acc32", [1.0, 3 * U16], [1.0 + 4 * U16], [1.0 + 2 * U16]),
    # Three multiples of 4 cannot sum to an odd number of twos, however wide the interval.
    (FLOAT32, "acc32", [4.0, 2.0**26, 4.0], [2.0**26 + 8], [2.0**26 + 10]),
    # An infinite term, and an overflow of the other sign.
    (FLOAT32, "acc32", [np.inf, -LARGEST, -LARGEST], [np.nan], []),
    (FLOAT32, "acc32", [np.inf, -LARGEST], [], [np.nan]),
]


@pytest.mark.parametrize(("fmt", "model", "terms", "right", "wrong"), MAY_COME_OUT)
def test_what_may_come_out(
    fmt: FloatFormat, model: str, terms: list[float], right: list[float], wrong: list[float]
) -> None:
    sums = scatter_sums(np.zeros(len(terms), np.int64), np.array(terms), 1)
    for output in right + wrong:
        accepted = admissible(sums, fmt, AccumulationModel.parse(model)).accepts(np.array([output]))
        assert accepted.item() is (output in right), output


def test_models_are_read_as_they_are_spelled() -> None:
    for text in ("acc32", "native+ftz", "mixed(4)+ftz+cast-ftz+saturate"):
        assert str(AccumulationModel.parse(text)) == text
    for text in ("acc64", "mixed", "acc32(2)", "native+foo", "", "native+"):
        with pytest.raises(ValueError, match="accumulation model"):
            AccumulationModel.parse(text)
    for text in ("acc32", "native", "mixed(2)"):
        assert AccumulationModel.parse(text).accumulator(FLOAT64) is FLOAT64


# Rounding into each format agrees with rational arithmetic, also for values that float64 does not hold.


NARROW = (FLOAT32, FLOAT16, BFLOAT16)


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
@given(x=st.floats(allow_nan=False, allow_infinity=False), nudge=st.sampled_from([0, 1, -1]))
def test_rounds_the_exact_value_once(fmt: FloatFormat, x: float, nudge: int) -> None:
    residue = nudge * math.ulp(x) / 8
    rounded = fmt.round(np.array([x]), np.array([residue]))
    assert rounded[0] == correctly_rounded(Fraction(x) + Fraction(residue), fmt)


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
def test_rounds_halfway_cases_to_even_without_a_residue_and_overflows_at_the_threshold(fmt: FloatFormat) -> None:
    half, above = 1.0 + fmt.unit_roundoff, 1.0 + 2 * fmt.unit_roundoff
    assert fmt.round(np.array([half] * 3), np.array([0.0, 1e-30, -1e-30])).tolist() == [1.0, above, 1.0]
    assert fmt.round(np.array([half + 2.0**-40])).item() == above, "which a cast by way of float32 rounds to half first"
    below = np.nextafter(fmt.overflow_threshold, 0)
    assert fmt.round(np.array([below, fmt.overflow_threshold])).tolist() == [fmt.max, np.inf]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_constants_are_those_of_the_dtype_and_an_ulp_is_the_distance_to_the_next_value(fmt: FloatFormat) -> None:
    info = ml_dtypes.finfo(fmt.dtype)
    expected = (info.max, info.smallest_normal, info.smallest_subnormal)
    assert (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal) == tuple(map(float, expected))
    assert fmt.precision == info.nmant + 1
    values = np.array([1.0, 1.5, 2.0, fmt.smallest_normal, fmt.smallest_subnormal, 0.0, fmt.max])
    one_up = values[:-1].astype(fmt.dtype).view(f"u{fmt.dtype.itemsize}") + 1
    distances = one_up.view(fmt.dtype).astype(np.float64) - values[:-1]
    assert np.array_equal(fmt.ulp(values)[:-1], distances)
    assert fmt.ulp(values)[-1] == 2.0 ** (fmt.max_exponent - fmt.precision + 1)
