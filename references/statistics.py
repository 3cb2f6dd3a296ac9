"""How far outputs are from the exact sums, as numbers a report can aggregate. Never a verdict.

Errors are counted in ulps of the exact sum S: 2**(max(floor(log2 |S|), emin) - p + 1), that of the subnormals
for S = 0. A correctly rounded output is within 0.5. Keys and meanings are columns of the report schema.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import Acceptance
from poolproof.references.deviations import Deviations
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.standards.commercial import SMALL_VALUE, SMALL_VALUE_ERROR
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

Statistics = dict[str, Any]
"""Column name -> int, float, text, list or None."""

ULP_EDGES = {"ulp_le05": 0.5, "ulp_le1": 1.0, "ulp_le2": 2.0, "ulp_le4": 4.0, "ulp_le8": 8.0, "ulp_le32": 32.0}
"""Upper edges of the histogram's half-open classes, in ulps."""


def error_statistics(deviations: Deviations, acceptance: Acceptance, model: AccumulationModel) -> Statistics:
    """All statistics of one output tensor."""
    finite = _Finite(deviations)
    return (
        _multiplicities(deviations.sums.count)
        | _verdicts(deviations, acceptance)
        | _differences(deviations, finite)
        | _ulps(finite, len(deviations.outputs))
        | _relative(deviations, finite)
        | _small_values(deviations)
        | _balance(deviations, finite)
        | _bounds(deviations, acceptance, model)
        | _special_values(deviations)
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


def _multiplicities(count: Int64) -> Statistics:
    cells = len(count)
    classes = np.bincount(np.minimum(count, 3), minlength=4)
    return {
        "n": cells,
        "n_k0": int(classes[0]),
        "n_k1": int(classes[1]),
        "n_k2": int(classes[2]),
        "n_k3p": int(classes[3]),
        "k_max": int(count.max(initial=0)),
        "k_mean": _ratio(int(count.sum()), cells),
    }


def _verdicts(deviations: Deviations, acceptance: Acceptance) -> Statistics:
    accepted = acceptance.accepts(deviations.outputs)
    cells = len(accepted)
    rejected = cells - int(np.count_nonzero(accepted))
    off_lattice = ~acceptance.on_lattice(deviations.outputs) if rejected else ~accepted
    return {
        "n_bits_owed": int(np.count_nonzero(acceptance.demands_bits)),
        "n_reject": rejected,
        "reject_rate": _ratio(rejected, cells),
        "first_reject": int(accepted.argmin()) if rejected else None,
        "n_lattice_fail": int(np.count_nonzero(off_lattice)),
    }


def _differences(deviations: Deviations, finite: _Finite) -> Statistics:
    equal = deviations.outputs == deviations.rounded
    same_sign = np.signbit(deviations.outputs) == np.signbit(deviations.rounded)
    nan = int(np.count_nonzero(np.isnan(deviations.outputs) & np.isnan(deviations.rounded)))
    bitexact = int(np.count_nonzero(equal)) + nan
    error, magnitude = _norm(finite.error), _norm(finite.s)
    return {
        "n_bitexact": bitexact,
        "n_bitexact_strict": int(np.count_nonzero(equal & same_sign)) + nan,
        "bitexact_ratio": _ratio(bitexact, len(equal)),
        "max_abs_err": float(finite.absolute.max(initial=0.0)),
        "mean_abs_err": _ratio(float(finite.absolute.sum()), finite.size),
        "rmse": error / float(np.sqrt(finite.size)) if finite.size else None,
        "rmse_norm": error / magnitude if magnitude > 0.0 else None,
        "ulp_dist_max": _largest_distance(finite, deviations.fmt),
    }


def _norm(values: Float64) -> float:
    """The root of the sum of squares, which themselves may be out of float64's range."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = values / largest
    return largest * float(np.sqrt(np.dot(scaled, scaled)))


def _largest_distance(finite: _Finite, fmt: FloatFormat) -> int:
    """How many representable values the farthest output is from the rounded sum."""
    if not finite.size:
        return 0
    steps = np.abs(ordinals(finite.y, fmt) - ordinals(finite.r, fmt))
    return int(steps.max())


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
    statistics["mean_ulp"] = _ratio(float(finite.ulps.sum()), finite.size)
    statistics["p99_ulp"] = _quantile(finite.ulps, 0.99)
    return statistics


def _quantile(values: Float64, share: float) -> float | None:
    """The smallest of ``values`` that at least ``share`` of them do not exceed."""
    if not values.size:
        return None
    rank = int(np.ceil(share * values.size)) - 1
    return float(np.partition(values, rank)[rank])


def _relative(deviations: Deviations, finite: _Finite) -> Statistics:
    statistics: Statistics = {}
    with np.errstate(over="ignore"):
        against_rounded = np.abs(finite.y - finite.r) / (np.abs(finite.r) + RELATIVE_GUARD)
        against_exact = finite.absolute / (np.abs(finite.s) + RELATIVE_GUARD)
    for suffix, relative in (("", against_rounded), ("_vs_s", against_exact)):
        statistics[f"mere{suffix}"] = _ratio(float(relative.sum()), finite.size)
        statistics[f"mare{suffix}"] = float(relative.max(initial=0.0)) if finite.size else None
    normal = np.abs(finite.s) >= SMALL_VALUE[_row(deviations.fmt)]
    relative = finite.absolute[normal] / np.abs(finite.s[normal])
    statistics["mean_rel"] = _ratio(float(relative.sum()), relative.size)
    statistics["max_rel"] = float(relative.max()) if relative.size else None
    return statistics


def _small_values(deviations: Deviations) -> Statistics:
    threshold, error = SMALL_VALUE[_row(deviations.fmt)], SMALL_VALUE_ERROR[_row(deviations.fmt)]
    small = deviations.finite & (np.abs(deviations.rounded) < threshold)
    errors = int(np.count_nonzero(small & (deviations.rounded_error > error)))
    number = int(np.count_nonzero(small))
    return {"n_small": number, "small_err_cnt": errors, "small_err_ratio": _ratio(errors, number)}


def _row(fmt: FloatFormat) -> str:
    """The row of the standards' tables that holds for ``fmt``: float64 has none of its own and is held like float32."""
    return fmt.name if fmt.name in SMALL_VALUE else "float32"


def _balance(deviations: Deviations, finite: _Finite) -> Statistics:
    """Signed errors: against the rounded sum as msprobe counts them, and in magnitude against the exact one."""
    cells = len(deviations.outputs)
    larger = int(np.count_nonzero(finite.y > finite.r)) - int(np.count_nonzero(finite.y < finite.r))
    outward = finite.error * np.sign(finite.s)
    away, toward = int(np.count_nonzero(outward > 0.0)), int(np.count_nonzero(outward < 0.0))
    bias = float(np.copysign(finite.ulps, outward)[outward != 0.0].sum()) if away + toward else 0.0
    return {
        "eb": _ratio(abs(larger), cells),
        "eb_mag": _ratio(abs(away - toward), cells),
        "n_inexact": away + toward,
        "bias_ulp": _ratio(bias, away + toward),
    }


def _bounds(deviations: Deviations, acceptance: Acceptance, model: AccumulationModel) -> Statistics:
    """Errors beside what the accumulation model admits, over the finite cells that a gradient reaches."""
    sums, fmt = deviations.sums, deviations.fmt
    reached = deviations.finite & (sums.count > 0)
    selected: Any = slice(None) if reached.all() else reached
    signed, exact = deviations.error[selected], sums.sum[selected]
    error = np.abs(signed)
    count, magnitude = sums.count[selected], (sums.positive + sums.negative)[selected]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        low, high = acceptance.low[selected], acceptance.high[selected]
        admissible = np.maximum(high - exact, exact - low)
        room = np.where(signed > 0.0, high - exact, exact - low)
        unit = model.accumulator(fmt).unit_roundoff
        likely = np.sqrt(count) * unit * magnitude + 0.5 * fmt.ulp(exact)
        condition = magnitude / np.abs(exact)
        likelihood = np.where(error == 0.0, 0.0, error / likely)
        tolerant = (room > 0.0) & (room < np.inf) & (high - low > fmt.ulp(exact))
    margin = ((room - error)[tolerant] / room[tolerant]).min() if tolerant.any() else None
    by_multiplicity = _by_multiplicity(
        count, error, admissible, fmt.ulp(np.maximum(sums.positive, sums.negative)[selected])
    )
    return {
        "z_max": float(likelihood.max(initial=0.0)),
        "margin_min": None if margin is None else float(margin),
        "cond_max": float(condition[exact != 0.0].max(initial=0.0)),
        **by_multiplicity,
    }


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


def _special_values(deviations: Deviations) -> Statistics:
    counts: Statistics = {}
    unusual = ~deviations.finite
    outputs, owed = deviations.outputs[unusual], deviations.rounded[unusual]
    for suffix, values in (("out", outputs), ("exp", owed)):
        counts[f"n_nan_{suffix}"] = int(np.count_nonzero(np.isnan(values)))
        counts[f"n_pinf_{suffix}"] = int(np.count_nonzero(values == np.inf))
        counts[f"n_ninf_{suffix}"] = int(np.count_nonzero(values == -np.inf))
    differ = (outputs != owed) & ~(np.isnan(outputs) & np.isnan(owed))
    counts["n_nonfinite_mismatch"] = int(np.count_nonzero(differ))
    return counts


def _ratio(part: float, whole: int) -> float | None:
    """``part / whole``, None where there is nothing."""
    return part / whole if whole else None
