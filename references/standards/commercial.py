"""The commercial precision standard of the Ascend world: errors as ratios to those of a third party's result.

Both results are compared with the same golden values. Above a small-value threshold three error figures are divided
by the third party's; below it, errors are counted. The levels L0, L1 and L2 differ in the ratios allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.comparison import Bool, Comparison, same_values
from poolproof.references.formats import Float64
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Standard,
    StandardVerdict,
    Thresholds,
    count_true,
    largest,
    mean,
    root_mean_square,
)
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

# Commercial standard, table of small values: |golden| below which a value is small.
SMALL_VALUE: Thresholds = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-14,
    "hifloat32": 2.0**-12,
    "float8_e4m3": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
# Same table: the error a small value may have before it is counted.
SMALL_VALUE_ERROR: Thresholds = {
    "float16": 2.0**-16,
    "bfloat16": 2.0**-16,
    "float32": 2.0**-30,
    "hifloat32": 2.0**-28,
    "float8_e4m3": 2.0**-6,
    "float8_e5m2": 2.0**-5,
}

SMALL_COUNT_RATIO = 2.0
"""Most errors among small values, in those of the third party or in one (same text, criterion for small values)."""

RATIO_GUARD = 1e-7
"""Added to the third party's figure before dividing by it (same text, definition of the ratio)."""


@dataclass(frozen=True)
class Level:
    """The largest ratios of MARE, MERE and RMSE allowed."""

    mare: float
    mere: float
    rmse: float


# Commercial standard, table of ratios.
LEVELS = {"l0": Level(10.0, 2.0, 2.0), "l1": Level(5.0, 1.5, 1.5), "l2": Level(2.0, 1.2, 1.2)}

Guard = Literal["added", "none", "clamped"]
"""How a ratio survives a faultless third party.

``added``: 1e-7 is added to the denominator, as the text says.
``none``: 0 / 0 is 1 and x / 0 infinite, and all finite cells count, small ones too.
``clamped``: the denominator is at least the dtype's small value, 0 / 0 is 1 (TTK).
"""

Infinities = Literal["compared", "excluded"]
"""``compared``: the device's mode that produces infinities is on; ``excluded``: it is off, and they are left out."""


@dataclass(frozen=True, kw_only=True)
class Ratios(Standard):
    """MARE, MERE and RMSE of the output within multiples of a second result's, and few errors among small values."""

    level: Level
    guard: Guard = "added"
    infinities: Infinities = "compared"

    def judge(self, comparison: Comparison) -> StandardVerdict:
        if comparison.second is None or comparison.fmt.name not in SMALL_VALUE:
            return NOT_APPLICABLE
        key = (Ratios, self.guard, self.infinities)  # the levels differ in what they make of the figures alone
        special, figures = comparison.once(key, lambda: self._figures(comparison))
        if special is False:
            return StandardVerdict(False)
        passed = (
            figures["mare_ratio"] <= self.level.mare
            and figures["mere_ratio"] <= self.level.mere
            and figures["rmse_ratio"] <= self.level.rmse
            and figures["small_ratio"] <= SMALL_COUNT_RATIO
        )
        return StandardVerdict(None if passed and special is None else passed, figures)

    def _figures(self, comparison: Comparison) -> tuple[bool | None, dict[str, float]]:
        """(what `_special_values` says, the ratios where that leaves any to tell)."""
        assert comparison.second is not None
        name = comparison.fmt.name
        special, finite = self._special_values(comparison, comparison.second)
        if special is False:
            return False, {}
        small = comparison.magnitude < SMALL_VALUE[name]
        mine, theirs = comparison.golden_error, comparison.second_error
        judged = finite if self.guard == "none" else finite & ~small
        ratios = self._ratios(mine[judged], theirs[judged], comparison.magnitude[judged], name)
        counts = self._small_counts(mine, theirs, finite & small, SMALL_VALUE_ERROR[name])
        return special, ratios | {"small_ratio": counts}

    def _special_values(self, comparison: Comparison, second: Float64) -> tuple[bool | None, Bool]:
        """(whether NaN and infinities are right, None where the text wants a person to look; cells left to judge)."""
        outputs, golden = comparison.outputs, comparison.rounded
        finite = np.isfinite(outputs) & np.isfinite(golden) & np.isfinite(second)
        odd = ~finite
        if self.infinities == "excluded":
            odd &= ~(np.isinf(outputs) | np.isinf(golden) | np.isinf(second))
        if not odd.any():
            return True, finite
        right = same_values(outputs, second) | (~np.isfinite(golden) & same_values(outputs, golden))
        unclear = ~np.isfinite(golden) & ~same_values(second, golden)
        wrong = odd & ~right
        if (wrong & ~unclear).any():
            return False, finite
        return (None if wrong.any() else True), finite

    def _ratios(self, mine: Float64, theirs: Float64, golden: Float64, dtype: str) -> dict[str, float]:
        my_relative, their_relative = (errors / (golden + RELATIVE_GUARD) for errors in (mine, theirs))
        return {
            "mare_ratio": self._ratio(largest(my_relative), largest(their_relative), dtype),
            "mere_ratio": self._ratio(mean(my_relative), mean(their_relative), dtype),
            "rmse_ratio": self._ratio(root_mean_square(mine), root_mean_square(theirs), dtype),
        }

    def _ratio(self, mine: float, theirs: float, dtype: str) -> float:
        if self.guard == "added":
            return mine / (theirs + RATIO_GUARD)
        if mine == theirs == 0.0:
            return 1.0
        if self.guard == "clamped":
            return mine / max(theirs, SMALL_VALUE[dtype])
        return mine / theirs if theirs else float("inf")

    @staticmethod
    def _small_counts(mine: Float64, theirs: Float64, small: Bool, error: float) -> float:
        """Errors among small values, in those of the third party or in one."""
        return count_true(small & (mine > error)) / max(count_true(small & (theirs > error)), 1)


RECHECK_RUNS, RECHECK_RESAMPLES = 200, 2000
"""Least number of reseeded runs, and bootstrap resamples of their median ratio (same text, re-check).

The text's example speaks of 1000 resamples, its procedure of 2000.
"""


def recheck(ratios: Float64, seed: int = 0) -> StandardVerdict:
    """Second chance of a case whose ratio was too large: ``ratios`` of that case under as many other seeds.

    Fails when there are too few, or when the 95 % bootstrap interval of the median lies above 1.
    """
    if len(ratios) < RECHECK_RUNS:
        return StandardVerdict(False, {"runs": float(len(ratios))})
    drawn = np.random.default_rng(seed).integers(len(ratios), size=(RECHECK_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(ratios[drawn], axis=1), (0.025, 0.975))
    return StandardVerdict(bool(low <= 1.0), {"runs": float(len(ratios)), "low": float(low), "high": float(high)})


@dataclass(frozen=True, kw_only=True)
class Bitwise(Standard):
    """Every element equal to the golden value rounded to the output's format.

    ``zeros_differ`` tells the signs of zero apart.
    """

    zeros_differ: bool = False

    def judge(self, comparison: Comparison) -> StandardVerdict:
        equal = same_values(comparison.outputs, comparison.rounded)
        if self.zeros_differ:
            equal &= (np.signbit(comparison.outputs) == np.signbit(comparison.rounded)) | np.isnan(comparison.outputs)
        differ = len(equal) - count_true(equal)
        return StandardVerdict(differ == 0, {"n_differ": float(differ)})


_TEXT = "commercial standard, tables of ratios and of small values"
_UNGUARDED = "without the text's 1e-7 in the denominator, over all finite cells: 0/0 counts as 1, x/0 as infinite"
_MODE = "for devices whose mode that produces infinities is off"

COMMERCIAL: tuple[Standard, ...] = (
    *(Ratios(name=f"commercial-{name}", source=_TEXT, level=level) for name, level in LEVELS.items()),
    *(
        Ratios(name=f"commercial-{name}-unguarded", source=_TEXT, note=_UNGUARDED, level=level, guard="none")
        for name, level in LEVELS.items()
    ),
    *(
        Ratios(name=f"commercial-{name}-inf-off", source=_TEXT, note=_MODE, level=level, infinities="excluded")
        for name, level in LEVELS.items()
    ),
    Bitwise(
        name="commercial-non-compute",
        source="commercial standard, criterion for operators that do not compute (scatter, gather, copy)",
        note="pooling is named among those that compute; with at most one gradient a cell it only moves them",
    ),
    *(
        Ratios(
            name=f"ttk-cross-check-{name}",
            source="TTK, comparison method cross_check",
            note="level l1 is its default" if name == "l1" else "",
            level=level,
            guard="clamped",
        )
        for name, level in LEVELS.items()
    ),
    Bitwise(name="ttk-binary", source="TTK, comparison method binary", note="NaN equals NaN", zeros_differ=True),
)
