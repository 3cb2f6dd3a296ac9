"""CANN's kernel-generation benchmark, which contains 3-D max pooling's gradient: the April 2026 rule with escapes.

Whoever fails MERE and MARE is judged again, apart for small values, for cancelled ones and for the rest, each as a
count of errors next to that of the reference run at the case's own precision. Two errors of each kind are free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolproof.references.comparison import Bool, Comparison
from poolproof.references.formats import Float64
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Standard,
    StandardVerdict,
    Thresholds,
    count_true,
    largest,
    mean,
)
from poolproof.references.standards.commercial import SMALL_COUNT_RATIO, SMALL_VALUE, SMALL_VALUE_ERROR
from poolproof.references.standards.ecosystem import MARE_FACTOR, RELATIVE_2026_04, RELATIVE_GUARD

# Kernel benchmark, thresholds: |golden| and |actual| below which a value that is not small counts as cancelled.
CANCELLATION: Thresholds = {"float16": 2.0**-5, "bfloat16": 2.0**-3, "float32": 2.0**-8}


@dataclass(frozen=True, kw_only=True)
class CannBench(Standard):
    """MERE and MARE of April 2026, and where they fail, counts of errors in three kinds of values."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in CANCELLATION:
            return NOT_APPLICABLE
        actual, golden = comparison.outputs, comparison.rounded
        both_infinite = np.isinf(actual) & np.isinf(golden)
        if (np.isnan(actual) != np.isnan(golden)).any() or (actual != golden)[both_infinite].any():
            return StandardVerdict(False)
        limit = comparison.fmt.max
        judged = ~(np.isnan(golden) | both_infinite)
        actual, golden = (np.clip(values[judged], -limit, limit) for values in (actual, golden))
        second = golden if comparison.second is None else np.clip(comparison.second[judged], -limit, limit)
        relative = np.abs(actual - golden) / (np.abs(golden) + RELATIVE_GUARD)
        figures = {"mere": mean(relative), "mare": largest(relative)}
        threshold = RELATIVE_2026_04[name]
        if figures["mere"] < threshold and figures["mare"] < MARE_FACTOR * threshold:
            return StandardVerdict(True, figures)
        counts = _escapes(actual, golden, second, name)
        return StandardVerdict(all(ratio <= SMALL_COUNT_RATIO for ratio in counts.values()), figures | counts)


def _escapes(actual: Float64, golden: Float64, second: Float64, dtype: str) -> dict[str, float]:
    """Per kind of values the errors of ``actual`` in those of ``second``.

    Among normal values the second's count is not replaced by one: a single error there fails unless it errs too.
    """
    small = np.abs(golden) < SMALL_VALUE[dtype]
    boundary = CANCELLATION[dtype]
    cancelled = ~small & (np.abs(golden) < boundary) & (np.abs(actual) < boundary)
    normal = ~small & ~cancelled
    beyond = [_beyond(values, golden, dtype) for values in (actual, second)]
    apart = [np.abs(values - golden) > SMALL_VALUE_ERROR[dtype] for values in (actual, second)]
    mine, theirs = (count_true(wrong & normal) for wrong in beyond)
    return {
        "small_ratio": _count_ratio(apart, small),
        "cancelled_ratio": _count_ratio(beyond, cancelled),
        "normal_ratio": mine / theirs if theirs else float("inf") if mine else 0.0,
    }


def _beyond(values: Float64, golden: Float64, dtype: str) -> Bool:
    relative = np.abs(values - golden) / (np.abs(golden) + RELATIVE_GUARD)
    return relative > MARE_FACTOR * RELATIVE_2026_04[dtype]


def _count_ratio(wrong: list[Bool], kind: Bool) -> float:
    mine, theirs = (count_true(mask & kind) for mask in wrong)
    return mine / max(theirs, 1)


CANN_BENCH: tuple[Standard, ...] = (
    CannBench(
        name="cann-bench",
        source="CANN kernel benchmark, design of the precision comparison and task of the 3-D max pooling gradient",
        note="two small values may be anything at all: garbage in two cells that no window reaches passes",
    ),
)
