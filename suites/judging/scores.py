"""Scores: what a search beyond the plan drives towards."""

from __future__ import annotations

from math import isfinite

from poolproof.reports.rows.schema import Row


def scores(row: Row) -> dict[str, float]:
    """Score a judged backward for ``hypothesis.target``; empty if nothing was measured.

    share
        Of what the accumulation model allows, the largest part that the error of a cell took: 1 is the bound. Cells
        that allow one value only do not count.
    ulp
        Largest error of a cell, in ulps of the larger of its sums of positive and of negative gradients.
    """
    errors = [error for error in row.get("k_error") or () if error is not None and isfinite(error)]
    if not errors:
        return {}
    margin = row["margin_min"]
    return {"share": 0.0 if margin is None or not isfinite(margin) else 1.0 - margin, "ulp": max(errors)}
