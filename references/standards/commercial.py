"""The commercial precision standard of the Ascend world: errors as ratios to those of a third party's result.

Both results are compared with the same golden values. Above a small-value threshold three error figures are divided
by the third party's; below it, errors are counted. The levels L0, L1 and L2 differ in the ratios allowed. CANN's
kernel benchmark, which contains 3-D max pooling's gradient, counts errors in the same small values where the
ecosystem's rule of April fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poolproof.references.deviations import Bool, Deviations, same_values
from poolproof.references.formats import Float64
from poolproof.references.standards.base import (
    Standard,
    Thresholds,
    by_dtype,
    count_true,
    largest,
    mean,
    root_mean_square,
)
from poolproof.references.standards.ecosystem import MARE_FACTOR, RELATIVE_2026_04, RELATIVE_GUARD

# Commercial standard, table of small values: |golden| below which a value is small.
SMALL_VALUE: Thresholds = by_dtype(2.0**-11, 2.0**-8, 2.0**-14, 2.0**-12, 2.0**-4, 2.0**-3)
# Same table: the error a small value may have before it is counted.
SMALL_VALUE_ERROR: Thresholds = by_dtype(2.0**-16, 2.0**-16, 2.0**-30, 2.0**-28, 2.0**-6, 2.0**-5)

SMALL_COUNT_RATIO = 2.0
"""Most errors among small values, relative to the third party's or to one (same text, criterion for small values)."""

RATIO_GUARD = 1e-7
"""Added to the third party's figure before dividing by it (same text, definition of the ratio)."""


@dataclass(frozen=True, kw_only=True)
class Ratios(Standard):
    """MARE, MERE and RMSE of the output within multiples of a second result's, and few errors among small values."""

    limits: Mapping[str, float]

    def judge(self, deviations: Deviations) -> bool | None:
        if deviations.second is None or deviations.fmt.name not in SMALL_VALUE:
            return None
        # the levels differ in their limits alone
        special, figures = deviations.once(Ratios, lambda: _figures(deviations))
        if special is False:
            return False
        limits = {**self.limits, "small_ratio": SMALL_COUNT_RATIO}
        passed = all(figures[name] <= limit for name, limit in limits.items())
        return None if passed and special is None else passed


def _figures(deviations: Deviations) -> tuple[bool | None, dict[str, float]]:
    """Return (the answer of `_special_values`, the ratios unless it is False)."""
    assert deviations.second is not None
    name = deviations.fmt.name
    special, finite = _special_values(deviations, deviations.second)
    if special is False:
        return False, {}
    small = deviations.magnitude < SMALL_VALUE[name]
    mine, theirs = deviations.golden_error, deviations.second_error
    judged = finite & ~small
    ratios = _ratios(mine[judged], theirs[judged], deviations.magnitude[judged])
    wrong = [errors > SMALL_VALUE_ERROR[name] for errors in (mine, theirs)]
    return special, ratios | {"small_ratio": _count_ratio(wrong, finite & small)}


def _ratios(mine: Float64, theirs: Float64, golden: Float64) -> dict[str, float]:
    my_relative, their_relative = (errors / (golden + RELATIVE_GUARD) for errors in (mine, theirs))
    return {
        "mare_ratio": largest(my_relative) / (largest(their_relative) + RATIO_GUARD),
        "mere_ratio": mean(my_relative) / (mean(their_relative) + RATIO_GUARD),
        "rmse_ratio": root_mean_square(mine) / (root_mean_square(theirs) + RATIO_GUARD),
    }


def _special_values(deviations: Deviations, second: Float64) -> tuple[bool | None, Bool]:
    """Return (whether NaN and infinities are right, None where a person is to look; cells left to judge)."""
    outputs, golden = deviations.outputs, deviations.rounded
    finite = np.isfinite(outputs) & np.isfinite(golden) & np.isfinite(second)
    if finite.all():
        return True, finite
    right = same_values(outputs, second) | (~np.isfinite(golden) & same_values(outputs, golden))
    unclear = ~np.isfinite(golden) & ~same_values(second, golden)
    wrong = ~finite & ~right
    if (wrong & ~unclear).any():
        return False, finite
    return (None if wrong.any() else True), finite


# Kernel benchmark, thresholds: |golden| and |actual| below which a value that is not small counts as cancelled.
CANCELLATION: Thresholds = {"float16": 2.0**-5, "bfloat16": 2.0**-3, "float32": 2.0**-8}


@dataclass(frozen=True, kw_only=True)
class CannBench(Standard):
    """MERE and MARE of April 2026, and where they fail, counts of errors in three kinds of values."""

    def judge(self, deviations: Deviations) -> bool | None:
        name = deviations.fmt.name
        if name not in CANCELLATION:
            return None
        actual, golden = deviations.outputs, deviations.rounded
        both_infinite = np.isinf(actual) & np.isinf(golden)
        if (np.isnan(actual) != np.isnan(golden)).any() or (actual != golden)[both_infinite].any():
            return False
        limit = deviations.fmt.max
        judged = ~(np.isnan(golden) | both_infinite)
        actual, golden = (np.clip(values[judged], -limit, limit) for values in (actual, golden))
        second = golden if deviations.second is None else np.clip(deviations.second[judged], -limit, limit)
        relative = np.abs(actual - golden) / (np.abs(golden) + RELATIVE_GUARD)
        threshold = RELATIVE_2026_04[name]
        if mean(relative) < threshold and largest(relative) < MARE_FACTOR * threshold:
            return True
        return max(_escapes(actual, golden, second, name)) <= SMALL_COUNT_RATIO


def _escapes(actual: Float64, golden: Float64, second: Float64, dtype: str) -> tuple[float, ...]:
    """Return the errors of ``actual`` relative to those of ``second`` among small, cancelled and normal values.

    Among normal values the second's count is not replaced by one: a single error there fails unless it errs too.
    """
    small = np.abs(golden) < SMALL_VALUE[dtype]
    boundary = CANCELLATION[dtype]
    cancelled = ~small & (np.abs(golden) < boundary) & (np.abs(actual) < boundary)
    normal = ~small & ~cancelled
    beyond = [_beyond(values, golden, dtype) for values in (actual, second)]
    apart = [np.abs(values - golden) > SMALL_VALUE_ERROR[dtype] for values in (actual, second)]
    mine, theirs = (count_true(wrong & normal) for wrong in beyond)
    normal_ratio = mine / theirs if theirs else float("inf") if mine else 0.0
    return _count_ratio(apart, small), _count_ratio(beyond, cancelled), normal_ratio


def _beyond(values: Float64, golden: Float64, dtype: str) -> Bool:
    relative = np.abs(values - golden) / (np.abs(golden) + RELATIVE_GUARD)
    return relative > MARE_FACTOR * RELATIVE_2026_04[dtype]


def _count_ratio(wrong: list[Bool], kind: Bool) -> float:
    """Return the errors among a kind of values, relative to the third party's or to one."""
    mine, theirs = (count_true(mask & kind) for mask in wrong)
    return mine / max(theirs, 1)


COMMERCIAL: tuple[Standard, ...] = (
    *(
        Ratios(
            name=f"commercial-{name}",
            source="commercial standard, tables of ratios and of small values",
            limits={"mare_ratio": mare, "mere_ratio": others, "rmse_ratio": others},
        )
        for name, mare, others in (("l0", 10.0, 2.0), ("l1", 5.0, 1.5), ("l2", 2.0, 1.2))
    ),
    CannBench(
        name="cann-bench",
        source="CANN kernel benchmark, design of the precision comparison and task of the 3-D max pooling gradient",
        note="two small values may be anything at all: garbage in two cells that no window reaches passes",
    ),
)
