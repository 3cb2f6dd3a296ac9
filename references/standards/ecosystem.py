"""The operator ecosystem's open precision standard of the Ascend world, in its three generations, and who copied it.

2026-04 judges mean and largest relative error (MERE, MARE), 2026-07 and 2026-09 a mixed tolerance with a share of
free misses and a limit for the worst. All compare with a single golden result of higher precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.comparison import Comparison, element_errors
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Standard,
    StandardVerdict,
    Thresholds,
    agree,
    count_true,
    largest,
    mean,
    settle,
    share,
)

RELATIVE_GUARD = 1e-7
"""Added to |golden| before dividing by it (ecosystem standard, April 2026 text, definitions of MERE and MARE)."""

MARE_FACTOR = 10.0
"""The largest relative error may be ten times the mean one's threshold (same text, pass criterion)."""

REQUIRED_SHARE = 0.99
"""Elements that must meet the mixed tolerance (July and September 2026 texts, table of thresholds)."""

ULP_MULTIPLE = 32
"""The multiple of "or 32 ULP" (July and September 2026 texts, row of the absolute limit)."""

# Ecosystem standard, April 2026 text, table of thresholds.
RELATIVE_2026_04: Thresholds = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-13,
    "hifloat32": 2.0**-11,
    "float8_e4m3": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}

# Ecosystem standard, July 2026 text, table of thresholds.
RTOL_2026_07: Thresholds = {
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
    "float32": 2.0**-10,
    "hifloat32": 2.0**-9,
    "float8_e4m3": 2.0**-2,
    "float8_e5m2": 2.0**-1,
}
ATOL_2026_07: Thresholds = {
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
    "float32": 2.0**-16,
    "hifloat32": 2.0**-10,
    "float8_e4m3": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
LIMIT_2026_07: Thresholds = {
    "float16": 1e-1,
    "bfloat16": 1e0,
    "float32": 1e-2,
    "hifloat32": 1e-1,
    "float8_e4m3": 1e0,
    "float8_e5m2": 1e-1,
}

# Ecosystem standard, September 2026 text, table of thresholds; rtol and atol are equal.
TOLERANCE_2026_09: Thresholds = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-13,
    "hifloat32": 2.0**-10,
    "float8_e4m3": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}
LIMIT_2026_09: Thresholds = {
    "float16": 1e-1,
    "bfloat16": 1e-1,
    "float32": 1e-2,
    "hifloat32": 1e-1,
    "float8_e4m3": 1e0,
    "float8_e5m2": 1e0,
}

# ATK, configuration of mixed_tolerance_bm: the July thresholds in three decimal digits.
RTOL_ATK: Thresholds = {"float16": 1.95e-3, "bfloat16": 1.56e-2, "float32": 9.77e-4}
ATOL_ATK: Thresholds = {"float16": 1.95e-3, "bfloat16": 1.56e-2, "float32": 1.53e-5}
LIMIT_ATK: Thresholds = {"float16": 1e-1, "bfloat16": 1e0, "float32": 1e-2}

Limit = Literal["fixed", "each_ulp", "largest_ulp"]
"""Readings of "1e-1 or 32 ULP" as the limit of |actual - golden|.

``fixed``: the number. ``each_ulp``: per element the greater of the number and 32 ulp of its golden value.
``largest_ulp``: the greater of the number and 32 ulp of the golden value at the place of the largest difference.
"""


@dataclass(frozen=True, kw_only=True)
class RelativeErrors(Standard):
    """MERE < threshold and MARE < 10 threshold, MERE and MARE being mean and largest |a - g| / (|g| + 1e-7)."""

    thresholds: Thresholds

    def judge(self, comparison: Comparison) -> StandardVerdict:
        threshold = self.thresholds.get(comparison.fmt.name)
        if threshold is None:
            return NOT_APPLICABLE
        decided, cells = settle(comparison, self.specials)
        if decided is not None:
            return decided
        with np.errstate(invalid="ignore", over="ignore"):
            relative = comparison.golden_error / (comparison.magnitude + RELATIVE_GUARD)
        if cells is not None:
            relative = relative[cells]
        mere, mare = mean(relative), largest(relative)
        passed = not relative.size or (mere < threshold and mare < MARE_FACTOR * threshold)
        return StandardVerdict(passed, {"mere": mere, "mare": mare})


@dataclass(frozen=True, kw_only=True)
class MixedTolerance(Standard):
    """At least 99 % of the elements within atol + rtol |g|, and none farther off than a limit.

    ``fallback`` is the row that dtypes without one of their own use.
    """

    rtol: Thresholds
    atol: Thresholds
    floor: Thresholds
    limit: Limit
    fallback: str = ""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        row = comparison.fmt.name if comparison.fmt.name in self.rtol else self.fallback
        if row not in self.rtol:
            return NOT_APPLICABLE
        decided, cells = settle(comparison, self.specials)
        if decided is not None:
            return decided
        golden, errors = comparison.golden, comparison.golden_error
        if self.specials == "elements" and np.isinf(comparison.outputs).any():
            golden = np.where(np.isinf(comparison.outputs), comparison.rounded, golden)  # overflow of both
            errors = element_errors(comparison.outputs, golden)
        if cells is not None:
            errors, golden = errors[cells], golden[cells]
        if not errors.size:
            return StandardVerdict(True)
        with np.errstate(invalid="ignore"):
            within = errors <= self.atol[row] + self.rtol[row] * np.abs(golden)
        ratio = share(count_true(agree(errors, within)), errors.size)
        worst, limit, limited = self._worst(errors, golden, row, comparison.fmt)
        figures = {"matched_ratio": ratio, "max_abs_error": worst, "limit": limit}
        return StandardVerdict(ratio >= REQUIRED_SHARE and limited, figures)

    def _worst(self, errors: Float64, golden: Float64, row: str, fmt: FloatFormat) -> tuple[float, float, bool]:
        """(largest error between finite values, its limit, whether every such error is within its limit)."""
        floor = self.floor[row]
        compared = np.isfinite(errors) if self.specials == "elements" else np.ones(len(errors), bool)
        if not compared.any():
            return 0.0, floor, True
        place = int(np.where(compared, errors, -1.0).argmax())
        worst = float(errors[place])
        if self.limit == "fixed":
            return worst, floor, worst <= floor
        if self.limit == "largest_ulp":
            limit = max(floor, ULP_MULTIPLE * float(fmt.ulp(fmt.round(golden[place : place + 1]))[0]))
            return worst, limit, worst <= limit
        limits = np.maximum(floor, ULP_MULTIPLE * fmt.ulp(golden))
        return worst, float(limits[place]), bool((errors <= limits)[compared].all())


_APRIL = "ecosystem standard, April 2026 text, table of thresholds"
_JULY = "ecosystem standard, July 2026 text, table of thresholds"
_SEPTEMBER = "ecosystem standard, September 2026 text, table of thresholds and definition of the limit"
_OR = 'the text says "or 32 ULP": '

ECOSYSTEM: tuple[Standard, ...] = (
    RelativeErrors(name="ecosystem-2026-04", source=_APRIL, thresholds=RELATIVE_2026_04),
    RelativeErrors(
        name="ecosystem-page-en",
        source="ecosystem standard, English page as of July 2026",
        note="the English page still holds the April text when the Chinese one holds July's",
        thresholds=RELATIVE_2026_04,
    ),
    MixedTolerance(
        name="ecosystem-2026-07-fixed-limit",
        source=_JULY,
        note=_OR + "read as a choice that leaves the number",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="fixed",
    ),
    MixedTolerance(
        name="ecosystem-2026-07-limit-each-ulp",
        source=f"{_JULY}; reading of an issue of the BLAS operator library",
        note=_OR + "read as the greater of both at each element",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="each_ulp",
    ),
    MixedTolerance(
        name="ecosystem-2026-07-limit-largest-ulp",
        source=f"{_JULY}; reading of the September text",
        note=_OR + "read as the greater of both at the largest difference",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="largest_ulp",
    ),
    MixedTolerance(
        name="ecosystem-page-zh",
        source="ecosystem standard, Chinese page as of July 2026",
        note="the July text, under the title that the English page gives April's",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="fixed",
    ),
    MixedTolerance(
        name="ecosystem-2026-09",
        source=_SEPTEMBER,
        rtol=TOLERANCE_2026_09,
        atol=TOLERANCE_2026_09,
        floor=LIMIT_2026_09,
        limit="largest_ulp",
        specials="elements",
    ),
    MixedTolerance(
        name="ecosystem-2026-09-fixed-limit",
        source="ecosystem standard, September 2026 text, first draft",
        note=_OR + "the draft does not yet say which; read as the number",
        rtol=TOLERANCE_2026_09,
        atol=TOLERANCE_2026_09,
        floor=LIMIT_2026_09,
        limit="fixed",
    ),
    RelativeErrors(
        name="atk-single",
        source="ATK, configuration of single_bm",
        note="a golden NaN or infinity passes the case without comparison; other keys of the configuration are ignored",
        thresholds=RELATIVE_2026_04,
        specials="unseen",
    ),
    MixedTolerance(
        name="atk-mixed",
        source="ATK, configuration of mixed_tolerance_bm",
        note="July's powers of two in three decimal digits; a golden NaN or infinity passes the case",
        rtol=RTOL_ATK,
        atol=ATOL_ATK,
        floor=LIMIT_ATK,
        limit="each_ulp",
        specials="unseen",
    ),
    RelativeErrors(
        name="ttk-stat-rel-err",
        source="TTK, comparison method stat_rel_err",
        thresholds=RELATIVE_2026_04,
        specials="positions",
    ),
    MixedTolerance(
        name="ttk-mixed",
        source="TTK, comparison method mixed (its default)",
        note="dtypes without a row use float32's",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="fixed",
        specials="positions",
        fallback="float32",
    ),
    MixedTolerance(
        name="ttk-mixed-fork",
        source="TTK, comparison method mixed, newest fork",
        note="July's tolerances with September's limit",
        rtol=RTOL_2026_07,
        atol=ATOL_2026_07,
        floor=LIMIT_2026_07,
        limit="largest_ulp",
        specials="positions",
        fallback="float32",
    ),
)
