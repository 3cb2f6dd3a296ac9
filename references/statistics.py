"""Statistics of the errors of outputs, for reports to aggregate. Never a verdict.

Errors are in ulps of the exact sum S: 2**(max(floor(log2 |S|), emin) - p + 1), that of the subnormals for S = 0. A
correctly rounded output is within 0.5. Keys and meanings are columns of the report schema.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.kernels.judge import ULP_EDGES
from poolproof.references.summary import Summary

Statistics = dict[str, Any]
"""Column name -> int, float, text, list or None."""

ULP_CLASSES = ("ulp_0", "ulp_le05", "ulp_le1", "ulp_le2", "ulp_le4", "ulp_le8", "ulp_le32", "ulp_gt32")
"""The columns of the classes that end at `ULP_EDGES`, and of the one above."""

assert len(ULP_CLASSES) == len(ULP_EDGES) + 1


def error_statistics(summary: Summary) -> Statistics:
    tally = summary.tally
    return {
        "n": tally.cells,
        "n_bits_owed": tally.single_valued,
        "n_reject": tally.rejected,
        "n_bitexact": tally.bit_exact,
        "max_abs_err": tally.max_absolute,
        "mean_abs_err": _ratio(tally.sum_absolute, tally.finite),
        "mere": _ratio(tally.sum_relative, tally.finite),
        "mare": tally.max_relative if tally.finite else None,
        **dict(zip(ULP_CLASSES, summary.ulps, strict=True)),
        "ulp_nonfinite": tally.cells - tally.finite,
        "max_ulp": tally.max_ulp,
        "n_inexact": tally.inexact,
        "bias_ulp": _ratio(tally.sum_outward, tally.inexact),
        "margin_min": None if tally.least_margin == inf else tally.least_margin,
        "k_cells": list(summary.k_cells),
        "k_error": list(summary.k_error),
        "k_bound": list(summary.k_bound),
    }


def ordinals(values: Float64, fmt: FloatFormat) -> Int64:
    """Map the values of ``fmt`` to consecutive integers, both zeros to zero."""
    bits = values.astype(fmt.dtype).view(f"i{fmt.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & (2 ** (8 * fmt.dtype.itemsize - 1) - 1)), bits)


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
