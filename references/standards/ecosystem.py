"""The open precision standard of the Ascend operator ecosystem, in its three generations, and ATK's copy.

2026-04 judges mean and largest relative error (MERE, MARE), 2026-07 and 2026-09 a mixed tolerance with a share of
free misses and a limit for the worst. All compare with a single golden result of higher precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.deviations import Deviations, element_errors
from poolproof.references.formats import FloatFormat
from poolproof.references.standards.base import (
    CountedStandard,
    Figures,
    Largest,
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
"""The largest relative error may be ten times the mean one's threshold (same text, pass criterion)."""

REQUIRED_SHARE = 0.99
"""Elements that must meet the mixed tolerance (July and September 2026 texts, table of thresholds)."""

ULP_MULTIPLE = 32
"""The multiple of "or 32 ULP" (July and September 2026 texts, row of the absolute limit)."""

# Ecosystem standard, April 2026 text, table of thresholds.
RELATIVE_2026_04: Thresholds = by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-11, 2.0**-3, 2.0**-2)

# Ecosystem standard, September 2026 text, table of thresholds; rtol and atol are equal.
TOLERANCE_2026_09: Thresholds = by_dtype(2.0**-10, 2.0**-7, 2.0**-13, 2.0**-10, 2.0**-3, 2.0**-2)

Specials = Literal["silent", "elements", "unseen"]
"""What a text says about NaN and infinities, golden values that overflow the output's format included.

``silent``: nothing. A golden value that is not finite leaves the standard without an answer; an output that is not
finite where it should be has an infinite error.
``elements``: an element is right if both are NaN or the same infinity, and counts as one wrong element otherwise.
``unseen``: a case with a golden value that is not finite passes without a look at it.
"""

Limit = Literal["fixed", "largest_ulp"]
"""Readings of "1e-1 or 32 ULP" as the limit of |actual - golden|.

``fixed``: the number. ``largest_ulp``: the greater of the number and 32 ulp of the golden value at the place of the
largest difference.
"""


@dataclass(frozen=True, kw_only=True)
class RelativeErrors(CountedStandard):
    """MERE < threshold and MARE < 10 threshold, MERE and MARE being mean and largest |a - g| / (|g| + 1e-7)."""

    thresholds: Thresholds
    specials: Specials = "silent"

    def count(self, part: Deviations) -> Figures | None:
        if part.fmt.name not in self.thresholds:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            relative = part.golden_error / (part.magnitude + RELATIVE_GUARD)
            total = float(relative.sum())
        special = count_true(~np.isfinite(part.rounded))
        return Figures(special=special, cells=relative.size, sum=total, largest=largest(relative))

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool | None:
        if figures["special"]:
            return None if self.specials == "silent" else True
        mere, mare = share(figures["sum"], figures["cells"]), figures["largest"].value
        threshold = self.thresholds[fmt.name]
        return bool(mere < threshold and mare < MARE_FACTOR * threshold)


@dataclass(frozen=True, kw_only=True)
class MixedTolerance(CountedStandard):
    """At least 99 % of the elements within atol + rtol |g|, and none farther off than a limit."""

    rtol: Thresholds
    atol: Thresholds
    floor: Thresholds
    limit: Limit
    specials: Specials = "silent"

    def count(self, part: Deviations) -> Figures | None:
        row = part.fmt.name
        if row not in self.rtol:
            return None
        golden, errors = part.golden, part.golden_error
        if self.specials == "elements" and np.isinf(part.outputs).any():
            golden = np.where(np.isinf(part.outputs), part.rounded, golden)  # overflow of both
            errors = element_errors(part.outputs, golden)
        with np.errstate(invalid="ignore"):
            within = errors <= self.atol[row] + self.rtol[row] * np.abs(golden)
        compared = np.where(np.isfinite(errors), errors, -1.0) if self.specials == "elements" else errors
        place = int(compared.argmax()) if compared.size else None
        return Figures(
            special=count_true(~np.isfinite(part.rounded)),
            cells=errors.size,
            within=count_true(agree(errors, within)),
            largest=Largest(-1.0) if place is None else Largest(float(compared[place]), float(golden[place])),
        )

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool | None:
        if figures["special"] and self.specials == "silent":
            return None
        farthest: Largest = figures["largest"]
        limit = self.floor[fmt.name]
        if self.limit == "largest_ulp" and farthest.value >= 0:
            limit = max(limit, ULP_MULTIPLE * float(fmt.ulp(fmt.round(np.array([farthest.beside])))[0]))
        enough = not figures["cells"] or share(figures["within"], figures["cells"]) >= REQUIRED_SHARE
        return enough and farthest.value <= limit


ECOSYSTEM: tuple[CountedStandard, ...] = (
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
