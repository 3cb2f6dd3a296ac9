"""The methods of msprobe's API accuracy checker, which picks one per API, and its compare tool.

Golden values are a CPU result one precision up. Most methods leave NaN and infinite cells out of their figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolproof.references.comparison import Bool, Comparison
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Standard,
    StandardVerdict,
    Thresholds,
    count_true,
    largest,
    mean,
    settle,
    share,
)

# API accuracy checker, configuration of the standards: |golden| up to which a value is small.
SMALL_VALUE: Thresholds = {"float16": 2.0**-10, "bfloat16": 2.0**-10, "float32": 2.0**-20}
# Added to |golden| before dividing: the machine epsilon of the golden values' dtype, a number of its own for bfloat16.
EPSILON: Thresholds = {"float16": 2.0**-23, "bfloat16": 2.0**-8, "float32": 2.0**-52}

# Benchmark method: error a small value may have, in the code and in the document.
BENCHMARK_ATOL_CODE: Thresholds = {"float16": 1e-16, "bfloat16": 1e-16, "float32": 2.0**-30}
BENCHMARK_ATOL_DOCUMENT: Thresholds = {"float16": 2.0**-16, "bfloat16": 2.0**-16, "float32": 2.0**-30}
# Benchmark method: least figure of the second device that a ratio is taken to.
BENCHMARK_LEAST: Thresholds = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-14}
# Benchmark method: ratios that are an error. Error balance has a limit of 2 too, but is not in the verdict.
BENCHMARK_RATIOS = {"small_ratio": 2.0, "rmse_ratio": 2.0, "max_rel_ratio": 10.0, "mean_rel_ratio": 2.0}

# Absolute threshold method, in the code and with the document's exponent for bfloat16.
ABSOLUTE_RTOL: Thresholds = {"float16": 2.0**-10, "bfloat16": 2.0**-8, "float32": 2.0**-20}
ABSOLUTE_ATOL_CODE: Thresholds = {"float16": 2.0**-16, "bfloat16": 1e-16, "float32": 2.0**-30}
ABSOLUTE_ATOL_DOCUMENT: Thresholds = {"float16": 2.0**-16, "bfloat16": 2.0**-16, "float32": 2.0**-30}

# ULP method: ulps that count as an error, the share of them allowed, and the mean that passes anyway.
ULP_LIMIT: Thresholds = {"float16": 1.0, "bfloat16": 1.0, "float32": 32.0}
ULP_SHARE: Thresholds = {"float16": 0.001, "bfloat16": 0.001, "float32": 0.05}
ULP_MEAN: Thresholds = {"float32": 64.0}

# Thousandth method: relative error, and the share of elements that must be below it.
THOUSANDTH_ERROR, THOUSANDTH_SHARE = 1e-3, 0.999

# Accumulative error method: one bound, relative above 1 and absolute up to it, and the error balance allowed.
ACCUMULATIVE_BOUND: Thresholds = {"float16": 2.0**-8, "bfloat16": 2.0**-7, "float32": 2.0**-11}
ACCUMULATIVE_BALANCE: Thresholds = {"float16": 2.0**-20, "bfloat16": 2.0**-7, "float32": 2.0**-14}
ACCUMULATIVE_SMALL = 1.0

# Compare tool, columns of its result: cosine below the first or absolute error above the second say "No".
COMPARE_COSINE, COMPARE_ABSOLUTE = 0.9, 1.0

# TTK, comparison method cosine: 1 - cosine at most 0.01.
TTK_COSINE = 0.99


@dataclass(frozen=True, kw_only=True)
class BinaryConsistency(Standard):
    """No element may differ from the golden value rounded to the output's format; NaN differs from NaN."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        differ = count_true(comparison.outputs != comparison.rounded)
        return StandardVerdict(differ == 0, {"error_rate": share(differ, len(comparison.outputs))})


@dataclass(frozen=True, kw_only=True)
class Benchmark(Standard):
    """Four error figures as ratios to those of a second device, both against the golden values."""

    small_atol: Thresholds

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if comparison.second is None or name not in SMALL_VALUE:
            return NOT_APPLICABLE
        mine = self._figures(comparison, comparison.outputs, comparison.golden_error)
        theirs = self._figures(comparison, comparison.second, comparison.second_error)
        least = BENCHMARK_LEAST[name]
        ratios = {f"{figure}_ratio": mine[figure] / max(theirs[figure], least) for figure in mine}
        return StandardVerdict(all(ratios[ratio] <= limit for ratio, limit in BENCHMARK_RATIOS.items()), ratios)

    def _figures(self, comparison: Comparison, actual: Float64, errors: Float64) -> dict[str, float]:
        name, golden = comparison.fmt.name, comparison.golden
        cells = len(actual)
        finite = np.isfinite(actual) & np.isfinite(comparison.rounded)
        small = finite & (np.abs(golden) <= SMALL_VALUE[name])
        normal = finite & ~small
        relative = errors[normal] / (np.abs(golden[normal]) + EPSILON[name])
        squares = float(np.dot(errors[normal], errors[normal])) / max(cells, 1)
        masked = cells - count_true(normal)
        return {
            "small": share(count_true(small & (errors > self.small_atol[name])), count_true(small)),
            "rmse": float(np.sqrt(squares * (cells / (cells - masked + 1e-4) + 1e-4))),  # the checker's own guards
            "max_rel": largest(relative),
            "mean_rel": mean(relative),
        }


@dataclass(frozen=True, kw_only=True)
class AbsoluteThreshold(Standard):
    """No normal value beyond a relative, no small one beyond an absolute error, no stray NaN or infinity."""

    rtol: Thresholds
    atol: Thresholds

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in self.rtol:
            return NOT_APPLICABLE
        finite, golden = comparison.finite, comparison.golden
        small = finite & (np.abs(golden) <= SMALL_VALUE[name])
        figures = _error_shares(comparison, small, self.rtol[name], self.atol[name])
        return StandardVerdict(not any(figures.values()), figures)


@dataclass(frozen=True, kw_only=True)
class AccumulativeError(Standard):
    """As `AbsoluteThreshold` with one bound for both, and errors of both signs in balance."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in ACCUMULATIVE_BOUND:
            return NOT_APPLICABLE
        small = comparison.finite & (np.abs(comparison.golden) <= ACCUMULATIVE_SMALL)
        bound = ACCUMULATIVE_BOUND[name]
        figures = _error_shares(comparison, small, bound, bound)
        balance = error_balance(comparison)
        passed = not any(figures.values()) and balance <= ACCUMULATIVE_BALANCE[name]
        return StandardVerdict(passed, figures | {"eb": balance})


def _error_shares(comparison: Comparison, small: Bool, rtol: float, atol: float) -> dict[str, float]:
    """The shares of normal, small and special values that are wrong, each in its own kind."""
    normal, special = comparison.finite & ~small, ~comparison.finite
    errors = comparison.golden_error
    scale = np.abs(comparison.golden) + EPSILON[comparison.fmt.name]
    with np.errstate(invalid="ignore"):
        wrong = errors / scale > rtol
    return {
        "rel_err_ratio": share(count_true(normal & wrong), count_true(normal)),
        "abs_err_ratio": share(count_true(small & (errors > atol)), count_true(small)),
        "inf_nan_ratio": share(count_true(special & ~_clipped_alike(comparison, scale, rtol)), count_true(special)),
    }


def _clipped_alike(comparison: Comparison, scale: Float64, rtol: float) -> Bool:
    """Both NaN, or within ``rtol`` once infinities are clipped to the largest finite value."""
    limit = comparison.fmt.max
    mine, owed = np.clip(comparison.outputs, -limit, limit), np.clip(comparison.rounded, -limit, limit)
    with np.errstate(invalid="ignore"):
        close = np.abs(mine - owed) / scale <= rtol
    return close | (mine == owed) | (np.isnan(mine) & np.isnan(owed))


def error_balance(comparison: Comparison) -> float:
    """Outputs above minus outputs below the rounded golden value, in magnitude, as a share of all."""
    above = count_true(comparison.outputs > comparison.rounded)
    below = count_true(comparison.outputs < comparison.rounded)
    return share(abs(above - below), len(comparison.outputs))


@dataclass(frozen=True, kw_only=True)
class UlpShare(Standard):
    """Few elements beyond a number of ulps; for float32 a small mean passes too, and fewer than the second's always."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in ULP_LIMIT:
            return NOT_APPLICABLE
        ulps = checker_ulps(comparison.golden_error, comparison.golden, comparison.fmt)
        beyond, average = share(count_true(~(ulps <= ULP_LIMIT[name])), ulps.size), mean(ulps)
        passed = beyond < ULP_SHARE[name] or average < ULP_MEAN.get(name, 0.0)
        if comparison.second is not None:
            theirs = checker_ulps(comparison.second_error, comparison.golden, comparison.fmt)
            passed |= beyond < share(count_true(~(theirs <= ULP_LIMIT[name])), ulps.size)
        return StandardVerdict(passed, {"ulp_share": beyond, "mean_ulp": average})


def checker_ulps(errors: Float64, golden: Float64, fmt: FloatFormat) -> Float64:
    """``errors`` in ulps of ``golden`` as the checker counts them: those of 1.0 where it is zero."""
    return errors / fmt.ulp(np.where(golden == 0.0, 1.0, golden))


@dataclass(frozen=True, kw_only=True)
class ThousandthShare(Standard):
    """At least 99.9 % of the elements with a relative error below one thousandth."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in EPSILON:
            return NOT_APPLICABLE
        errors = comparison.golden_error
        with np.errstate(invalid="ignore"):
            relative = np.where(errors == 0.0, 0.0, errors / (np.abs(comparison.golden) + EPSILON[name]))
        close = share(count_true(relative < THOUSANDTH_ERROR), relative.size)
        return StandardVerdict(not relative.size or close >= THOUSANDTH_SHARE, {"close_share": close})


@dataclass(frozen=True, kw_only=True)
class CosineSimilarity(Standard):
    """Cosine of output and rounded golden value at least ``least``, and no absolute error above ``largest``."""

    least: float
    largest: float = float("inf")

    def judge(self, comparison: Comparison) -> StandardVerdict:
        actual, golden = comparison.outputs, comparison.rounded
        decided, _ = settle(comparison, self.specials)
        if decided is not None:
            return decided
        worst = largest(comparison.rounded_error)
        angle = cosine(actual, golden)
        return StandardVerdict(angle >= self.least and worst <= self.largest, {"cosine": angle, "max_abs_error": worst})


def cosine(a: Float64, b: Float64) -> float:
    """Cosine of the angle between two vectors; 1 for equal ones, 0 where one alone is zero."""
    if np.array_equal(a, b):
        return 1.0
    largest_a, largest_b = largest(np.abs(a)), largest(np.abs(b))
    if not np.isfinite(largest_a + largest_b) or largest_a * largest_b == 0.0:
        return 0.0
    a, b = a / largest_a, b / largest_b
    return float(np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b)))


_CHECKER = "msprobe API accuracy checker, configuration of the standards"
_TYPO = "the document says 2**-16 where the code says 1e-16"

MSPROBE: tuple[Standard, ...] = (
    BinaryConsistency(
        name="msprobe-binary",
        source="msprobe API accuracy checker, list of binary consistency",
        note="chosen for max_pool3d by its name, forward and backward alike",
    ),
    Benchmark(
        name="msprobe-benchmark",
        source=f"{_CHECKER}, benchmark method, code",
        note=f"cells that are NaN or infinite are left out; {_TYPO}",
        small_atol=BENCHMARK_ATOL_CODE,
    ),
    Benchmark(
        name="msprobe-benchmark-document",
        source="msprobe API accuracy checker, document of the benchmark method",
        note=_TYPO,
        small_atol=BENCHMARK_ATOL_DOCUMENT,
    ),
    AbsoluteThreshold(
        name="msprobe-absolute",
        source=f"{_CHECKER}, absolute threshold method, code",
        note="for bfloat16 the code says 1e-16 where float16 has 2**-16; anything finite passes where infinity is owed",
        rtol=ABSOLUTE_RTOL,
        atol=ABSOLUTE_ATOL_CODE,
    ),
    AbsoluteThreshold(
        name="msprobe-absolute-document",
        source="msprobe API accuracy checker, document of the absolute threshold method",
        rtol=ABSOLUTE_RTOL,
        atol=ABSOLUTE_ATOL_DOCUMENT,
    ),
    UlpShare(
        name="msprobe-ulp",
        source=f"{_CHECKER}, ULP method",
        note="errors of cells owed zero are counted in ulps of 1.0",
    ),
    ThousandthShare(name="msprobe-thousandth", source=f"{_CHECKER}, thousandth method"),
    AccumulativeError(name="msprobe-accumulative", source=f"{_CHECKER}, accumulative error method"),
    CosineSimilarity(
        name="msprobe-compare",
        source="msprobe compare tool, columns of its result",
        least=COMPARE_COSINE,
        largest=COMPARE_ABSOLUTE,
    ),
    CosineSimilarity(name="ttk-cosine", source="TTK, comparison method cosine", least=TTK_COSINE),
)
