"""The commercial precision standard for Ascend: errors as ratios to those of a third party's result.

Both results are compared with the same golden values. Above a small-value threshold, three error figures are divided by
the third party's; below it, errors are counted. The levels L0, L1 and L2 allow different ratios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from poolproof.references.deviations import Deviations, same_values
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.standards.base import (
    Figures,
    Standard,
    Thresholds,
    by_dtype,
    count_true,
    largest,
    share,
    squares,
)
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

# |golden| below which a value is small (commercial standard, table of small values).
SMALL_VALUE: Thresholds = by_dtype(2.0**-11, 2.0**-8, 2.0**-14, 2.0**-12, 2.0**-4, 2.0**-3)
# Error of a small value above which it counts as wrong (same table).
SMALL_VALUE_ERROR: Thresholds = by_dtype(2.0**-16, 2.0**-16, 2.0**-30, 2.0**-28, 2.0**-6, 2.0**-5)

SMALL_COUNT_RATIO = 2.0
"""Most wrong small values, as a multiple of the third party's, or of 1 if it has none (same text, small values)."""

RATIO_GUARD = 1e-7
"""Added to the third party's figure before dividing by it (same text, definition of the ratio)."""


@dataclass(frozen=True, kw_only=True)
class Ratios(Standard):
    """MARE, MERE and RMSE within multiples of a second result's, and few wrong small values."""

    limits: Mapping[str, float]

    def count(self, part: Deviations) -> Figures | None:
        if part.second is None or part.fmt.name not in SMALL_VALUE:
            return None
        counted: Figures = part.once(Ratios, lambda: _count(part))  # the levels differ only in their limits
        return counted

    def passes(self, figures: Figures, _: FloatFormat) -> bool | None:
        if figures["wrong"]:
            return False
        mine, theirs = figures["mine"], figures["theirs"]
        ratios = {name: figure / (_errors(theirs)[name] + RATIO_GUARD) for name, figure in _errors(mine).items()}
        few = mine["small_wrong"] / max(theirs["small_wrong"], 1) <= SMALL_COUNT_RATIO
        passed = few and all(ratios[name] <= limit for name, limit in self.limits.items())
        return None if passed and figures["unclear"] else passed


def _count(part: Deviations) -> Figures:
    """Count errors of both results, and special outputs that are wrong or unclear.

    An output is unclear where the golden value is NaN or infinite and neither result equals it. A person must look at
    it.
    """
    second, name = part.second, part.fmt.name
    assert second is not None
    outputs, golden = part.outputs, part.rounded
    finite = np.isfinite(outputs) & np.isfinite(golden) & np.isfinite(second)
    right = finite | same_values(outputs, second) | (~np.isfinite(golden) & same_values(outputs, golden))
    is_unclear = ~np.isfinite(golden) & ~same_values(second, golden)
    small = part.magnitude < SMALL_VALUE[name]

    def errors_of(errors: Float64) -> Figures:
        judged = errors[finite & ~small]
        relative = judged / (part.magnitude[finite & ~small] + RELATIVE_GUARD)
        return Figures(
            cells=judged.size,
            relative=float(relative.sum()),
            largest=largest(relative),
            squares=squares(judged),
            small_wrong=count_true(finite & small & (errors > SMALL_VALUE_ERROR[name])),
        )

    return Figures(
        wrong=count_true(~right & ~is_unclear),
        unclear=count_true(~right & is_unclear),
        mine=errors_of(part.golden_error),
        theirs=errors_of(part.second_error),
    )


def _errors(figures: Figures) -> dict[str, float]:
    return {
        "mare_ratio": figures["largest"].value,
        "mere_ratio": share(figures["relative"], figures["cells"]),
        "rmse_ratio": sqrt(share(figures["squares"], figures["cells"])),
    }


COMMERCIAL: tuple[Standard, ...] = tuple(
    Ratios(
        name=f"commercial-{name}",
        source="commercial standard, tables of ratios and of small values",
        limits={"mare_ratio": mare, "mere_ratio": mean, "rmse_ratio": mean},
    )
    for name, mare, mean in (("l0", 10.0, 2.0), ("l1", 5.0, 1.5), ("l2", 2.0, 1.2))
)
