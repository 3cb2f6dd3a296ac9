"""The open precision standard of the Ascend operator ecosystem, and ATK's copy of an earlier edition.

ATK judges mean and largest relative error (MERE, MARE), as the edition of April 2026 did. The edition of September has
a mixed tolerance, a share of free misses and a limit for the worst. Both compare with a more precise golden result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolproof.references.deviations import Deviations, element_errors
from poolproof.references.formats import FloatFormat
from poolproof.references.standards.base import (
    Figures,
    Largest,
    Standard,
    Thresholds,
    agree,
    by_dtype,
    count_true,
    largest,
    share,
)

RELATIVE_GUARD = 1e-7
"""Added to |golden| before dividing by it (ecosystem standard, April 2026 text, definitions of MERE and MARE)."""

MARE_FACTOR = 10.0
"""MARE may be ten times the threshold of MERE (same text, pass criterion)."""

REQUIRED_SHARE = 0.99
"""Share of elements that must meet the mixed tolerance (September 2026 text, table of thresholds)."""

ULP_MULTIPLE = 32
"""The 32 of "or 32 ULP" (same text, row of the absolute limit)."""


@dataclass(frozen=True, kw_only=True)
class RelativeErrors(Standard):
    """MERE < threshold and MARE < 10 threshold: the mean and largest |a - g| / (|g| + 1e-7).

    A golden value that is not finite passes the whole case without comparison.
    """

    thresholds: Thresholds

    def count(self, part: Deviations) -> Figures | None:
        if part.fmt.name not in self.thresholds:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            relative = part.golden_error / (part.magnitude + RELATIVE_GUARD)
            total = float(relative.sum())
        special = count_true(~np.isfinite(part.rounded))
        return Figures(special=special, cells=relative.size, sum=total, largest=largest(relative))

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        if figures["special"]:
            return True
        mere, mare = share(figures["sum"], figures["cells"]), figures["largest"].value
        threshold = self.thresholds[fmt.name]
        return bool(mere < threshold and mare < MARE_FACTOR * threshold)


@dataclass(frozen=True, kw_only=True)
class MixedTolerance(Standard):
    """At least 99 % of the elements within an absolute plus relative tolerance, and none beyond a limit.

    The limit is ``floor``, or 32 ulp of the golden value at the largest difference if that is more. Two NaN, or two
    equal infinities, agree. Other elements that are not finite count as one wrong element each.
    """

    tolerance: Thresholds
    floor: Thresholds

    def count(self, part: Deviations) -> Figures | None:
        if part.fmt.name not in self.tolerance:
            return None
        golden, errors, tolerance = part.golden, part.golden_error, self.tolerance[part.fmt.name]
        if np.isinf(part.outputs).any():
            golden = np.where(np.isinf(part.outputs), part.rounded, golden)  # both overflow
            errors = element_errors(part.outputs, golden)
        with np.errstate(invalid="ignore"):
            within = errors <= tolerance + tolerance * np.abs(golden)
        compared = np.where(np.isfinite(errors), errors, -1.0)
        place = int(compared.argmax()) if compared.size else None
        return Figures(
            cells=errors.size,
            within=count_true(agree(errors, within)),
            largest=Largest(-1.0) if place is None else Largest(float(compared[place]), float(golden[place])),
        )

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        farthest: Largest = figures["largest"]
        limit = self.floor[fmt.name]
        if farthest.value >= 0:
            limit = max(limit, ULP_MULTIPLE * float(fmt.ulp(fmt.round(np.array([farthest.beside])))[0]))
        enough = not figures["cells"] or share(figures["within"], figures["cells"]) >= REQUIRED_SHARE
        return enough and farthest.value <= limit


ECOSYSTEM: tuple[Standard, ...] = (
    MixedTolerance(
        name="ecosystem-2026-09",
        source="ecosystem standard, September 2026 text, table of thresholds and definition of the limit",
        tolerance=by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-10, 2.0**-3, 2.0**-2),
        floor=by_dtype(1e-1, 1e-1, 1e-2, 1e-1, 1e0, 1e0),
    ),
    RelativeErrors(
        name="atk-single",
        source="ATK, configuration of single_bm; ecosystem standard, April 2026 text, table of thresholds",
        note="a golden NaN or infinity passes the case without comparison; other keys of the configuration are ignored",
        thresholds=by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-11, 2.0**-3, 2.0**-2),
    ),
)
