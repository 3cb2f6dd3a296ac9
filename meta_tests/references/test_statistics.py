"""The statistics of an output against a slow definition, cell by cell in rational arithmetic, and by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from distributions import DISTRIBUTIONS, draw_terms
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FloatFormat
from poolproof.references.kernels.numbers import exponent_of
from poolproof.references.specification import floor_log2
from poolproof.references.specification import rounded as correctly_rounded
from poolproof.references.summary import PlaneChunk, Statistics, error_statistics, summarise
from simulated import simulate

EDGES = [0, 0.5, 1, 2, 4, 8, 32, math.inf]
CLASSES = ["ulp_0", "ulp_le05", "ulp_le1", "ulp_le2", "ulp_le4", "ulp_le8", "ulp_le32", "ulp_gt32"]


def statistics(
    outputs: np.ndarray, cells: np.ndarray, terms: np.ndarray, fmt: FloatFormat, model: AccumulationModel
) -> Statistics:
    return error_statistics(summarise([lambda: PlaneChunk(cells, terms, outputs)], len(outputs), fmt, model))


def of(
    outputs: list[float], terms: list[list[float]], fmt: FloatFormat, model: AccumulationModel = ACC32
) -> Statistics:
    cells = np.repeat(np.arange(len(terms)), [len(cell) for cell in terms])
    values = np.array([term for cell in terms for term in cell], float)
    return statistics(np.array(outputs, float), cells, values, fmt, model)


def ulp(x: Fraction, fmt: FloatFormat) -> Fraction:
    exponent = fmt.min_exponent if x == 0 else max(floor_log2(abs(x)), fmt.min_exponent)
    return Fraction(2) ** (exponent - fmt.precision + 1)


def slow(outputs: np.ndarray, terms: np.ndarray, fmt: FloatFormat) -> Statistics:
    """Columns whose definition is short, one finite cell after the other."""
    exact = [sum(map(Fraction, map(float, row)), Fraction(0)) for row in terms]
    errors = [Fraction(float(y)) - s for y, s in zip(outputs, exact, strict=True)]
    rounded = [correctly_rounded(s, fmt) for s in exact]
    ulps = [abs(e) / ulp(s, fmt) for e, s in zip(errors, exact, strict=True)]
    histogram = dict.fromkeys(CLASSES, 0)
    for value in ulps:
        histogram[next(name for name, edge in zip(CLASSES, EDGES, strict=True) if float(value) <= edge)] += 1
    cells = len(outputs)
    inexact = [(e, s) for e, s in zip(errors, exact, strict=True) if e != 0 and s != 0]
    outward = [float(math.copysign(1, s) * e / ulp(s, fmt)) for e, s in inexact]
    relative = [abs(float(y) - r) / (abs(r) + 1e-7) for y, r in zip(outputs, rounded, strict=True)]
    return {
        **histogram,
        "n_bitexact": sum(float(y) == r for y, r in zip(outputs, rounded, strict=True)),
        "max_abs_err": float(max(map(abs, errors))),
        "mean_abs_err": float(sum(map(abs, errors)) / cells),
        "max_ulp": float(max(ulps)),
        "mere": sum(relative) / cells,
        "mare": max(relative),
        "n_inexact": len(inexact),
        "bias_ulp": sum(outward) / len(outward) if outward else None,
    }


@pytest.mark.parametrize("fmt", (FLOAT32, FLOAT16, BFLOAT16), ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name != "near_overflow"])
def test_statistics_are_what_their_definitions_say(fmt: FloatFormat, name: str) -> None:
    rng = np.random.default_rng(3)
    for k in (1, 2, 5, 40):
        terms = draw_terms(rng, name, (70, k), fmt)
        if name == "wide":
            terms = terms * 2.0**-20 if fmt is FLOAT32 else np.clip(terms, -8.0, 8.0)
        outputs = simulate(terms, fmt, NATIVE, "forward", rng)
        got = statistics(outputs, np.repeat(np.arange(70), k), terms.ravel(), fmt, NATIVE)
        for column, expected in slow(outputs, terms, fmt).items():
            assert got[column] == (None if expected is None else pytest.approx(expected, rel=1e-12)), (column, k)
        assert sum(got[column] for column in CLASSES) + got["ulp_nonfinite"] == got["n"] == 70


def test_what_is_counted() -> None:
    terms = [[], [1.0], [1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]
    got = of([0.0, 1.0, 3.0, 6.0, 10.0], terms, FLOAT32)
    assert (got["n"], got["n_single_valued"], got["k_cells"]) == (5, 5, [1, 1, 2])
    assert of([1.0, 4.5, 6.0], [[1.0], [4.0], [4.0]], FLOAT32)["n_reject"] == 2
    assert of([-0.0, 1.0], [[], [1.0]], FLOAT16)["n_bitexact"] == 2, "signs of zero do not count"
    empty = of([], [], FLOAT32)
    assert empty["n"] == empty["n_reject"] == empty["ulp_0"] == 0
    assert empty["mean_abs_err"] is empty["mere"] is empty["mare"] is None


def test_cells_that_nothing_reaches_have_no_error() -> None:
    got = of([0.0, 0.0], [[], []], FLOAT32)
    assert (got["n"], got["ulp_0"], got["n_inexact"], got["bias_ulp"], got["margin_min"]) == (2, 2, 0, None, None)
    assert [got[name] for name in ("max_abs_err", "mean_abs_err", "mere", "mare", "max_ulp")] == [0.0] * 5


def test_magnitudes_are_of_both_signs() -> None:
    terms = np.array([3.0, -4.0, 1.0])
    chunk = PlaneChunk(np.array([0, 0, 1]), terms, np.array([-1.0, 1.0, 0.0]))
    tally = summarise([lambda: chunk], 3, FLOAT32, ACC32).tally
    assert (tally.greatest, tally.total) == (7.0, 8.0)


def test_exponents_of_subnormal_numbers() -> None:
    assert [exponent_of.py_func(x) for x in (5e-324, 2.0**-1023, 2.0**-1022, -0.75)] == [-1074, -1023, -1022, -1]


def test_special_values_are_counted_apart() -> None:
    terms = [[np.nan], [np.inf], [-np.inf], [1.0], [65504.0, 65504.0]]
    got = of([np.nan, np.inf, np.inf, np.nan, np.inf], terms, FLOAT16)
    expected = {"n_bitexact": 3, "ulp_nonfinite": 5, "max_ulp": 0.0, "mean_abs_err": None, "mere": None, "mare": None}
    assert {column: got[column] for column in expected} == expected


def test_errors_are_kept_beside_their_bounds_by_multiplicity() -> None:
    """bfloat16, natively: 256 + 1 + 1 may be 256 or 260 (2 additions, u 2**-8, L 8: error 2); P = 258 has ulps of 2."""
    got = of([256.0, 3.0], [[256.0, 1.0, 1.0], [3.0]], BFLOAT16, NATIVE)
    assert got["k_cells"] == [1, 0, 1]
    assert got["k_error"] == [0.0, 0.0, 1.0]
    assert got["k_bound"] == pytest.approx([0.0, 0.0, 1.0])
    assert got["margin_min"] == pytest.approx(0.0, abs=1e-12)
