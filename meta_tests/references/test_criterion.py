"""The oracle and the criterion against the specification, and against kernels that are correct in every order."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definition import MODELS, hold_candidates, hold_sums, of_each
from distributions import DISTRIBUTIONS, draw_terms
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FORMATS, FloatFormat
from poolproof.references.kernels import criterion, numbers, sums
from poolproof.references.kernels.compiled import Compiled, in_numpy
from poolproof.references.kernels.criterion import Admissible
from poolproof.references.specification import rounded as correctly_rounded
from simulated import ORDERS, simulate

CASES, UNCOMPILED_CASES = 2000, 100
"""Random small cases held against the specification; `studies/exact_criterion.py` takes twenty thousand."""


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels run as they are written, not compiled."""
    for module in (numbers, sums, criterion):
        for function in vars(module).values():
            if isinstance(function, Compiled):
                monkeypatch.setitem(function.__dict__, "_run", in_numpy(function.py_func))


def test_sums_are_exact() -> None:
    for number in range(CASES):
        hold_sums(number)


def test_sums_are_exact_uncompiled(in_python: None) -> None:
    for number in range(CASES, CASES + UNCOMPILED_CASES):
        hold_sums(number)


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
    with pytest.raises(IndexError, match="behind its plane"):
        scatter_sums(np.array([0, 2]), np.array([1.0, 2.0]), 2)


def test_accepts_what_the_specification_accepts() -> None:
    """Around each exact sum, every candidate is accepted or rejected as it says."""
    assert sum(hold_candidates(number) for number in range(CASES)) > 100_000


def test_accepts_what_the_specification_accepts_uncompiled(in_python: None) -> None:
    assert sum(hold_candidates(number) for number in range(CASES, CASES + UNCOMPILED_CASES)) > 5_000


def at(allowed: Admissible, cell: int, count: int) -> Admissible:
    """The acceptance of one cell, repeated for several candidates."""
    return of_each(allowed, lambda values: np.full(count, values[cell]))


def reachable(terms: list[Fraction], accumulator: FloatFormat) -> set[float]:
    """Every result that some sequential order of finite additions in ``accumulator`` can give."""
    results = set()
    for order in set(permutations(terms)):
        total: Fraction | float = Fraction(0)
        for term in order:
            if math.isfinite(total):
                total = correctly_rounded(Fraction(total) + term, accumulator)
        if math.isfinite(total):
            results.add(float(total))
    return results


@pytest.mark.parametrize("fmt", (FLOAT16, BFLOAT16), ids=lambda fmt: fmt.name)
def test_every_sequential_order_is_admissible(fmt: FloatFormat) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        terms = draw_terms(rng, str(rng.choice(list(DISTRIBUTIONS))), (1, 4), fmt)
        exact = [Fraction(float(term)) for term in terms[0]]
        sums = scatter_sums(np.zeros(4, np.int64), terms[0], 1)
        for model in ("native", "acc32"):
            allowed = admissible(sums, fmt, AccumulationModel.parse(model))
            accumulator = AccumulationModel.parse(model).accumulator(fmt)
            results = fmt.round(np.array(sorted(reachable(exact, accumulator))))
            assert at(allowed, 0, len(results)).accepts(results).all()


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


def may_come_out(fmt: FloatFormat, terms: list[float], output: float, model: str = "acc32") -> bool:
    sums = scatter_sums(np.zeros(len(terms), np.int64), np.array(terms), 1)
    return bool(admissible(sums, fmt, AccumulationModel.parse(model)).accepts(np.array([output]))[0])


@pytest.mark.parametrize(
    ("terms", "output", "expected"),
    [
        ([np.nan, 1.0], np.nan, True),
        ([np.nan, 1.0], 1.0, False),
        ([np.inf, 1.0], np.inf, True),
        ([np.inf, 1.0], np.nan, False),
        ([np.inf, -np.inf], np.nan, True),
        ([np.inf, -np.inf], np.inf, False),
        ([-np.inf], -np.inf, True),
        ([-np.inf], -65504.0, False),
        ([65504.0, 15.0], 65504.0, True),
        ([65504.0, 15.0], np.inf, False),
        ([65504.0, 16.0], np.inf, True),
        ([65504.0, 16.0], 65504.0, False),
        ([65504.0, 65504.0, -65504.0], 65504.0, True),
        ([65504.0, 65504.0, -65504.0], np.inf, False),
        ([], 0.0, True),
        ([], -0.0, True),
        ([], 2.0**-24, False),
        ([-0.0], 0.0, True),
        ([2.0**-24], 0.0, False),
    ],
)
def test_special_values_in_float16(terms: list[float], output: float, expected: bool) -> None:
    assert may_come_out(FLOAT16, terms, output) is expected


def test_an_overflow_that_only_some_orders_meet_is_admissible() -> None:
    largest = FLOAT32.max
    for output in (largest, np.inf):
        assert may_come_out(FLOAT32, [largest, largest, -largest], output)
    assert not may_come_out(FLOAT32, [largest, largest, -largest], 0.0)


def test_a_native_kernel_may_overflow_where_a_float32_one_may_not() -> None:
    terms = [65504.0, 65504.0, -65504.0]
    assert may_come_out(FLOAT16, terms, np.inf, "native")
    assert not may_come_out(FLOAT16, terms, np.inf, "acc32")


def test_saturation_and_flushing_are_admissible_only_when_declared() -> None:
    assert may_come_out(FLOAT16, [65504.0, 65504.0], 65504.0, "acc32+saturate")
    assert not may_come_out(FLOAT16, [65504.0, 65504.0], np.inf, "acc32+saturate")
    assert not may_come_out(FLOAT16, [65504.0, 65504.0], 65504.0)
    assert may_come_out(FLOAT16, [2.0**-24], 0.0, "acc32+cast-ftz")
    assert may_come_out(BFLOAT16, [2.0**-130], 0.0, "native+ftz")
    assert not may_come_out(BFLOAT16, [2.0**-130], 0.0)


def test_the_sum_of_two_is_rounded_once_to_even() -> None:
    one_and_a_half_ulp = [1.0, 3 * BFLOAT16.unit_roundoff]
    assert may_come_out(BFLOAT16, one_and_a_half_ulp, 1.0 + 2 * 2 * BFLOAT16.unit_roundoff)
    assert not may_come_out(BFLOAT16, one_and_a_half_ulp, 1.0 + 2 * BFLOAT16.unit_roundoff)


def test_results_between_the_lattice_points_are_rejected() -> None:
    """Three multiples of 4 cannot sum to an odd number, however wide the interval."""
    terms = [4.0, 2.0**26, 4.0]
    assert may_come_out(FLOAT32, terms, 2.0**26 + 8)
    assert not may_come_out(FLOAT32, terms, 2.0**26 + 8 + 2)


def test_infinite_term_and_an_opposite_overflow_may_give_nan() -> None:
    largest = FLOAT32.max
    assert may_come_out(FLOAT32, [np.inf, -largest, -largest], np.nan)
    assert not may_come_out(FLOAT32, [np.inf, -largest], np.nan)


def test_sums_too_close_to_float64s_limit_are_refused() -> None:
    with pytest.raises(OverflowError, match="float64's limit"):
        scatter_sums(np.zeros(2, np.int64), np.array([1e300, 1e300]), 1)


@pytest.mark.parametrize("text", ["acc32", "native+ftz", "mixed(4)+ftz+cast-ftz+saturate"])
def test_models_round_trip_through_their_spelling(text: str) -> None:
    assert str(AccumulationModel.parse(text)) == text


@pytest.mark.parametrize("text", ["acc64", "mixed", "acc32(2)", "native+foo", "", "native+"])
def test_unknown_models_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="accumulation model"):
        AccumulationModel.parse(text)


def test_float64_accumulates_in_float64_under_every_model() -> None:
    for model in ("acc32", "native", "mixed(2)"):
        assert AccumulationModel.parse(model).accumulator(FORMATS["float64"]) is FLOAT64


# Rounding into each format agrees with rational arithmetic, also for values that float64 does not hold.


NARROW = (FLOAT32, FLOAT16, BFLOAT16)


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
@given(x=st.floats(allow_nan=False, allow_infinity=False), nudge=st.sampled_from([0, 1, -1]))
def test_rounds_the_exact_value_once(fmt: FloatFormat, x: float, nudge: int) -> None:
    residue = nudge * math.ulp(x) / 8
    rounded = fmt.round(np.array([x]), np.array([residue]))
    assert rounded[0] == correctly_rounded(Fraction(x) + Fraction(residue), fmt)


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
