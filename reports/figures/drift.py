"""How precision and time moved between two runs, group by group, with rules for what is noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

MEASURED = ("backend", "operator", "dtype")
"""What precision and time are compared per."""

SLOWER, FASTER = "slower", "faster"

TOLERATED_RATIO = 1.1
"""Times that differ by less are not told apart: caches, clocks and neighbours change as much."""

FEWEST_CASES = 20
"""Groups with fewer timed cases say nothing about time."""

_Z = 2.576
"""Normal quantile of a two-sided interval of 99 %."""


@dataclass(frozen=True)
class Statistic:
    """A statistic whose movement is told; ``is_worse`` takes its values before and after."""

    name: str
    meaning: str
    is_worse: Callable[[float, float], bool]


STATISTICS = (
    Statistic("max_ulp", "worst error, ulp", lambda before, after: after > before * 1.05 + 0.01),
    Statistic("bias_ulp", "bias, ulp", lambda before, after: abs(after) > abs(before) * 1.05 + 0.02),
    Statistic("margin_min", "least margin", lambda before, after: after < before - 0.05 * abs(before)),
    Statistic("exact_share", "correctly rounded", lambda before, after: after < before - 0.001),
)
"""A change below a twentieth is shown, but not called worse: kernels that add in any order never repeat exactly."""


def precision_drift(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Lines of `MEASURED`, statistic, before, after and worse for every statistic that moved; worse ones first.

    Both frames are those of `tables.precision` over the same cases.
    """
    lines = []
    for frame in (before, after):
        frame["exact_share"] = frame["n_bitexact"] / frame["n"]
    for group in before.index.intersection(after.index):
        for statistic in STATISTICS:
            values = float(before.loc[group, statistic.name]), float(after.loc[group, statistic.name])
            if not math.isclose(*values, rel_tol=1e-9) and not all(map(math.isnan, values)):
                lines.append((*group, statistic.meaning, *values, statistic.is_worse(*values)))
    table = pd.DataFrame(lines, columns=[*MEASURED, "statistic", "before", "after", "worse"]).astype({"worse": bool})
    return table.sort_values(
        ["worse", *MEASURED], ascending=[False, True, True, True], kind="stable", ignore_index=True
    )


def time_drift(cases: pd.DataFrame) -> pd.DataFrame:
    """Per `MEASURED` the median ratio of call times, its 99 % interval, the number of cases, and ``drift``.

    ``cases`` holds call_seconds_before and call_seconds_after. A group is "slower" or "faster" when its whole
    interval lies beyond `TOLERATED_RATIO`; the interval comes from order statistics, so it supposes nothing about
    how times are distributed. Else ``drift`` is empty.
    """
    timed = cases[(cases["call_seconds_before"] > 0) & (cases["call_seconds_after"] > 0)]
    ratios = timed["call_seconds_after"] / timed["call_seconds_before"]
    groups = ratios.groupby([timed[name].astype(str) for name in MEASURED])
    lines = [(*group, *_median_interval(np.sort(values.to_numpy()))) for group, values in groups]
    table = pd.DataFrame(lines, columns=[*MEASURED, "ratio", "low", "high", "cases"])
    table["drift"] = ""
    enough = table["cases"] >= FEWEST_CASES
    table.loc[enough & (table["low"] > TOLERATED_RATIO), "drift"] = SLOWER
    table.loc[enough & (table["high"] < 1 / TOLERATED_RATIO), "drift"] = FASTER
    return table.sort_values("ratio", ascending=False, ignore_index=True)


def _median_interval(ascending: np.ndarray) -> tuple[float, float, float, int]:
    """(median, low, high, number) of values in ascending order; low and high enclose the true median in 99 %."""
    number = len(ascending)
    reach = _Z * math.sqrt(number) / 2
    low, high = max(math.floor(number / 2 - reach), 0), min(math.ceil(number / 2 + reach), number - 1)
    return float(np.median(ascending)), float(ascending[low]), float(ascending[high]), number
