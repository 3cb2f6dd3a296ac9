"""The open precision standard of the Ascend operator ecosystem, in its three generations, and ATK's copy.

2026-04 judges mean and largest relative error (MERE, MARE), 2026-07 and 2026-09 a mixed tolerance with a share of
free misses and a limit for the worst. All compare with a single golden result of higher precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.deviations import Deviations, element_errors
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.standards.base import (
    Standard,
    Thresholds,
    agree,
    by_dtype,
    largest,
    leaves_unanswered,
    mean,
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
RELATIVE_2026_04: Thresholds = by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-11, 2.0**-3, 2.0**-2)

# Ecosystem standard, September 2026 text, table of thresholds; rtol and atol are equal.
TOLERANCE_2026_09: Thresholds = by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-10, 2.0**-3, 2.0**-2)

Limit = Literal["fixed", "largest_ulp"]
"""Readings of "1e-1 or 32 ULP" as the limit of |actual - golden|.

``fixed``: the number. ``largest_ulp``: the greater of the number and 32 ulp of the golden value at the place of the
largest difference.
"""


@dataclass(frozen=True, kw_only=True)
class RelativeErrors(Standard):
    """MERE < threshold and MARE < 10 threshold, MERE and MARE being mean and largest |a - g| / (|g| + 1e-7)."""

    thresholds: Thresholds

    def judge(self, deviations: Deviations) -> bool | None:
        threshold = self.thresholds.get(deviations.fmt.name)
        if threshold is None:
            return None
        if leaves_unanswered(deviations, self.specials):
            return None if self.specials == "silent" else True
        with np.errstate(invalid="ignore", over="ignore"):
            relative = deviations.golden_error / (deviations.magnitude + RELATIVE_GUARD)
        return not relative.size or (mean(relative) < threshold and largest(relative) < MARE_FACTOR * threshold)


@dataclass(frozen=True, kw_only=True)
class MixedTolerance(Standard):
    """At least 99 % of the elements within atol + rtol |g|, and none farther off than a limit."""

    rtol: Thresholds
    atol: Thresholds
    floor: Thresholds
    limit: Limit

    def judge(self, deviations: Deviations) -> bool | None:
        row = deviations.fmt.name
        if row not in self.rtol:
            return None
        if leaves_unanswered(deviations, self.specials):
            return None if self.specials == "silent" else True
        golden, errors = deviations.golden, deviations.golden_error
        if self.specials == "elements" and np.isinf(deviations.outputs).any():
            golden = np.where(np.isinf(deviations.outputs), deviations.rounded, golden)  # overflow of both
            errors = element_errors(deviations.outputs, golden)
        if not errors.size:
            return True
        with np.errstate(invalid="ignore"):
            within = errors <= self.atol[row] + self.rtol[row] * np.abs(golden)
        return share(agree(errors, within)) >= REQUIRED_SHARE and self._is_limited(errors, golden, row, deviations.fmt)

    def _is_limited(self, errors: Float64, golden: Float64, row: str, fmt: FloatFormat) -> bool:
        """Check whether the largest error between finite values is within its limit."""
        compared = np.isfinite(errors) if self.specials == "elements" else np.ones(len(errors), bool)
        if not compared.any():
            return True
        place = int(np.where(compared, errors, -1.0).argmax())
        limit = self.floor[row]
        if self.limit == "largest_ulp":
            limit = max(limit, ULP_MULTIPLE * float(fmt.ulp(fmt.round(golden[place : place + 1]))[0]))
        return bool(errors[place] <= limit)


ECOSYSTEM: tuple[Standard, ...] = (
    RelativeErrors(
        name="ecosystem-2026-04",
        source="ecosystem standard, April 2026 text, table of thresholds",
        note="the English page still holds it when the Chinese one holds July's",
        thresholds=RELATIVE_2026_04,
    ),
    MixedTolerance(
        name="ecosystem-2026-07-fixed-limit",
        source="ecosystem standard, July 2026 text, table of thresholds",
        note='the text says "or 32 ULP": read as a choice that leaves the number',
        rtol=by_dtype(2.0**-9, 2.0**-6, 2.0**-10, 2.0**-9, 2.0**-2, 2.0**-1),
        atol=by_dtype(2.0**-9, 2.0**-6, 2.0**-16, 2.0**-10, 2.0**-4, 2.0**-3),
        floor=by_dtype(1e-1, 1e0, 1e-2, 1e-1, 1e0, 1e-1),
        limit="fixed",
    ),
    MixedTolerance(
        name="ecosystem-2026-09",
        source="ecosystem standard, September 2026 text, table of thresholds and definition of the limit",
        rtol=TOLERANCE_2026_09,
        atol=TOLERANCE_2026_09,
        floor=by_dtype(1e-1, 1e-1, 1e-2, 1e-1, 1e0, 1e0),
        limit="largest_ulp",
        specials="elements",
    ),
    RelativeErrors(
        name="atk-single",
        source="ATK, configuration of single_bm",
        note="a golden NaN or infinity passes the case without comparison; other keys of the configuration are ignored",
        thresholds=RELATIVE_2026_04,
        specials="unseen",
    ),
)
