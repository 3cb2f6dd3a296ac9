"""How far outputs are from the exact sums, as numbers a report can aggregate. Never a verdict.

Errors are counted in ulps of the exact sum S: 2**(max(floor(log2 |S|), emin) - p + 1), that of the subnormals
for S = 0. A correctly rounded output is within 0.5.
"""

from __future__ import annotations

import numpy as np

from poolproof.references.criterion import Acceptance
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.oracle import ExactSums

ULP_EDGES = {"ulp_le05": 0.5, "ulp_le1": 1.0, "ulp_le2": 2.0, "ulp_le4": 4.0, "ulp_le8": 8.0, "ulp_le32": 32.0}
"""Upper edges of the histogram's half-open classes, in ulps."""


def error_statistics(
    outputs: Float64, sums: ExactSums, acceptance: Acceptance, fmt: FloatFormat
) -> dict[str, int | float | None]:
    """Statistics of one output tensor, flat (cells,); keys and meanings are columns of the report schema."""
    rounded = fmt.round(sums.sum, sums.residue)
    special = sums.nan | sums.positive_infinity | sums.negative_infinity
    finite = np.isfinite(outputs) & np.isfinite(rounded) & ~special
    difference = (outputs[finite] - sums.sum[finite]) - sums.residue[finite]
    with np.errstate(over="ignore"):
        ulps = np.abs(difference) / fmt.ulp(sums.sum[finite])
    multiplicities = np.bincount(np.minimum(sums.count, 3), minlength=4)
    statistics: dict[str, int | float | None] = {
        "n": len(outputs),
        "n_k0": int(multiplicities[0]),
        "n_k1": int(multiplicities[1]),
        "n_k2": int(multiplicities[2]),
        "n_k3p": int(multiplicities[3]),
        "k_max": int(sums.count.max(initial=0)),
        "n_bits_owed": int(acceptance.demands_bits.sum()),
        "n_reject": int((~acceptance.accepts(outputs)).sum()),
        "n_bitexact": int((outputs[finite] == rounded[finite]).sum()),
        "max_abs_err": float(np.abs(difference).max(initial=0.0)),
        "max_ulp": float(ulps.max(initial=0.0)),
        "mean_ulp": float(ulps.mean()) if ulps.size else None,
        "bias_ulp": _bias(ulps, difference * np.sign(sums.sum[finite])),
        "margin_min": _smallest_margin(outputs, sums, acceptance),
    }
    return statistics | _histogram(ulps, len(outputs))


def _bias(ulps: Float64, outward: Float64) -> float | None:
    """Mean signed error of the inexact cells, positive away from zero; None where every cell is exact."""
    inexact = outward != 0.0
    return float(np.copysign(ulps, outward)[inexact].mean()) if inexact.any() else None


def _histogram(ulps: Float64, cells: int) -> dict[str, int]:
    edges = [0.0, *ULP_EDGES.values()]
    classes = np.bincount(np.searchsorted(edges, ulps, side="left"), minlength=len(edges) + 1)
    names = ["ulp_0", *ULP_EDGES, "ulp_gt32"]
    counts = dict(zip(names, map(int, classes), strict=True))
    counts["ulp_nonfinite"] = cells - len(ulps)
    return counts


def _smallest_margin(outputs: Float64, sums: ExactSums, acceptance: Acceptance) -> float | None:
    with np.errstate(invalid="ignore"):
        half_width = (acceptance.high - acceptance.low) / 2.0
        tolerant = (half_width > 0.0) & np.isfinite(half_width) & np.isfinite(outputs)
        if not tolerant.any():
            return None
        distance = np.abs(outputs[tolerant] - sums.sum[tolerant])
        return float(((half_width[tolerant] - distance) / half_width[tolerant]).min())
