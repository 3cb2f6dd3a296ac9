"""Drift of precision and time between two runs, group by group, with rules for what is noise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from poolproof.reports.figures.quantities import QUANTITIES

MEASURED = ("backend", "operator", "dtype")
"""Columns of the groups whose precision and time are compared."""

SLOWER, FASTER = "slower", "faster"

TOLERATED_RATIO = 1.1
"""Ratio up to which times count as equal: caches, clocks and other processes change as much."""

MIN_CASES = 20
"""Groups with fewer timed cases say nothing about time."""

_Z = 2.576
"""Normal quantile of a two-sided interval of 99 %."""


def precision_drift(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return `MEASURED`, statistic, before, after and worse for every quantity that moved; worse ones first.

    Both frames are those of `tables.precision` over the same cases.
    """
    lines = []
    for group in before.index.intersection(after.index):
        for quantity in QUANTITIES:
            values = float(before.loc[group, quantity.column]), float(after.loc[group, quantity.column])
            if not math.isclose(*values, rel_tol=1e-9) and not all(map(math.isnan, values)):
                lines.append((*group, quantity.title, *values, quantity.is_worse(*values)))
    table = pd.DataFrame(lines, columns=[*MEASURED, "statistic", "before", "after", "worse"]).astype({"worse": bool})
    return table.sort_values(
        ["worse", *MEASURED], ascending=[False, True, True, True], kind="stable", ignore_index=True
    )


def time_drift(cases: pd.DataFrame) -> pd.DataFrame:
    """Return per `MEASURED` the median ratio of call times, its 99 % interval, the number of cases, and ``drift``.

    ``cases`` holds call_seconds_before and call_seconds_after. A group is "slower" or "faster" when its whole interval
    lies beyond `TOLERATED_RATIO`; else ``drift`` is empty. The interval comes from order statistics and assumes no
    distribution of times.
    """
    timed = cases[(cases["call_seconds_before"] > 0) & (cases["call_seconds_after"] > 0)]
    ratios = timed["call_seconds_after"] / timed["call_seconds_before"]
    groups = ratios.groupby([timed[name].astype(str) for name in MEASURED])
    lines = [(*group, *_median_interval(np.sort(values.to_numpy()))) for group, values in groups]
    table = pd.DataFrame(lines, columns=[*MEASURED, "ratio", "low", "high", "cases"])
    table["drift"] = ""
    enough = table["cases"] >= MIN_CASES
    table.loc[enough & (table["low"] > TOLERATED_RATIO), "drift"] = SLOWER
    table.loc[enough & (table["high"] < 1 / TOLERATED_RATIO), "drift"] = FASTER
    return table.sort_values("ratio", ascending=False, ignore_index=True)


def _median_interval(ascending: np.ndarray) -> tuple[float, float, float, int]:
    """Return (median, low, high, number) of ascending values; low and high enclose the true median in 99 %."""
    number = len(ascending)
    reach = _Z * math.sqrt(number) / 2
    low, high = max(math.floor(number / 2 - reach), 0), min(math.ceil(number / 2 + reach), number - 1)
    return float(np.median(ascending)), float(ascending[low]), float(ascending[high]), number
