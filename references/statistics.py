"""How far outputs are from the exact sums, as numbers a report can aggregate. Never a verdict.

Errors are counted in ulps of the exact sum S: 2**(max(floor(log2 |S|), emin) - p + 1), that of the subnormals
for S = 0. A correctly rounded output is within 0.5. Keys and meanings are columns of the report schema.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poolproof.references.criterion import Admissible
from poolproof.references.deviations import Deviations
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

Statistics = dict[str, Any]
"""Column name -> int, float, text, list or None."""

ULP_EDGES = {"ulp_le05": 0.5, "ulp_le1": 1.0, "ulp_le2": 2.0, "ulp_le4": 4.0, "ulp_le8": 8.0, "ulp_le32": 32.0}
"""Upper edges of the histogram's half-open classes, in ulps."""


def error_statistics(deviations: Deviations, admissible: Admissible) -> Statistics:
    """All statistics of one output tensor."""
    finite = _Finite(deviations)
    return (
        _verdicts(deviations, admissible)
        | _differences(deviations, finite)
        | _ulps(finite, len(deviations.outputs))
        | _bias(finite)
        | _bounds(deviations, admissible)
    )


class _Finite:
    """The cells where both output and rounded sum are finite: outputs y, exact sums s, rounded sums r, errors y - s."""

    def __init__(self, deviations: Deviations) -> None:
        selected: Any = deviations.finite
        if selected.all():
            selected = slice(None)
        self.y = deviations.outputs[selected]
        self.s = deviations.sums.sum[selected]
        self.r = deviations.rounded[selected]
        self.error = deviations.error[selected]
        self.absolute = np.abs(self.error)
        self.size = len(self.y)
        with np.errstate(over="ignore"):
            self.ulps = self.absolute / deviations.fmt.ulp(self.s)


def _verdicts(deviations: Deviations, admissible: Admissible) -> Statistics:
    cells = len(deviations.outputs)
    return {
        "n": cells,
        "n_bits_owed": int(np.count_nonzero(admissible.demands_bits)),
        "n_reject": cells - int(np.count_nonzero(admissible.accepts(deviations.outputs))),
    }


def _differences(deviations: Deviations, finite: _Finite) -> Statistics:
    nan = np.count_nonzero(np.isnan(deviations.outputs) & np.isnan(deviations.rounded))
    with np.errstate(over="ignore"):
        relative = np.abs(finite.y - finite.r) / (np.abs(finite.r) + RELATIVE_GUARD)
    return {
        "n_bitexact": int(np.count_nonzero(deviations.outputs == deviations.rounded) + nan),
        "max_abs_err": float(finite.absolute.max(initial=0.0)),
        "mean_abs_err": _ratio(float(finite.absolute.sum()), finite.size),
        "mere": _ratio(float(relative.sum()), finite.size),
        "mare": float(relative.max()) if finite.size else None,
    }


def ordinals(values: Float64, fmt: FloatFormat) -> Int64:
    """Consecutive integers for consecutive values of ``fmt``, zero for both zeros."""
    bits = values.astype(fmt.dtype).view(f"i{fmt.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & (2 ** (8 * fmt.dtype.itemsize - 1) - 1)), bits)


def _ulps(finite: _Finite, cells: int) -> Statistics:
    edges = [0.0, *ULP_EDGES.values()]
    classes = np.bincount(np.searchsorted(edges, finite.ulps, side="left"), minlength=len(edges) + 1)
    names = ["ulp_0", *ULP_EDGES, "ulp_gt32"]
    statistics: Statistics = dict(zip(names, map(int, classes), strict=True))
    statistics["ulp_nonfinite"] = cells - finite.size
    statistics["max_ulp"] = float(finite.ulps.max(initial=0.0))
    return statistics


def _bias(finite: _Finite) -> Statistics:
    """Signed errors, away from zero positive."""
    outward = finite.error * np.sign(finite.s)
    inexact = outward != 0.0
    number = int(np.count_nonzero(inexact))
    bias = float(np.copysign(finite.ulps, outward)[inexact].sum())
    return {"n_inexact": number, "bias_ulp": _ratio(bias, number)}


def _bounds(deviations: Deviations, admissible: Admissible) -> Statistics:
    """Errors beside what the accumulation model admits, over the finite cells that a gradient reaches."""
    sums, fmt = deviations.sums, deviations.fmt
    reached = deviations.finite & (sums.count > 0)
    selected: Any = slice(None) if reached.all() else reached
    signed, exact = deviations.error[selected], sums.sum[selected]
    error = np.abs(signed)
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = admissible.low[selected], admissible.high[selected]
        bound = np.maximum(high - exact, exact - low)
        room = np.where(signed > 0.0, high - exact, exact - low)
        tolerant = (room > 0.0) & (room < np.inf) & (high - low > fmt.ulp(exact))
    margin = ((room - error)[tolerant] / room[tolerant]).min() if tolerant.any() else None
    unit = fmt.ulp(np.maximum(sums.positive, sums.negative)[selected])
    by_multiplicity = _by_multiplicity(sums.count[selected], error, bound, unit)
    return {"margin_min": None if margin is None else float(margin), **by_multiplicity}


def _by_multiplicity(count: Int64, error: Float64, admissible: Float64, unit: Float64) -> Statistics:
    """Per class ceil(log2 k) the number of cells, and the largest error and largest admissible error in ``unit``."""
    if not count.size:
        return {"k_cells": [], "k_error": [], "k_bound": []}
    _, classes = np.frexp(count - 1)
    cells = np.bincount(classes)
    worst, bound = np.zeros(len(cells)), np.zeros(len(cells))
    with np.errstate(invalid="ignore"):
        np.maximum.at(worst, classes, error / unit)
        np.maximum.at(bound, classes, admissible / unit)
    return {"k_cells": cells.tolist(), "k_error": worst.tolist(), "k_bound": bound.tolist()}


def _ratio(part: float, whole: int) -> float | None:
    """``part / whole``, None where there is nothing."""
    return part / whole if whole else None
