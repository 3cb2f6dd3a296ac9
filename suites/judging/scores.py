"""Scores: the values that a search beyond the plan maximises."""

from __future__ import annotations

from math import isfinite

from poolproof.reports.rows.schema import Row


def scores(row: Row) -> dict[str, float]:
    """Return the scores of a judged backward for ``hypothesis.target``; empty without measurements.

    ``share``: largest share of its error bound that a cell used; 1 is the bound. Cells with one admissible value do not
    count.

    ``ulp``: largest error of a cell, in ulps of the larger of its sums of positive and of negative gradients.
    """
    errors = [error for error in row.get("k_error") or () if error is not None and isfinite(error)]
    if not errors:
        return {}
    margin = row["margin_min"]
    return {"share": 0.0 if margin is None or not isfinite(margin) else 1.0 - margin, "ulp": max(errors)}
