"""TTK's comparison method close: |a - g| <= atol + rtol |g| for all but a few elements.

If the share of free elements is zero, it is allclose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poolproof.references.deviations import Deviations
from poolproof.references.formats import FloatFormat
from poolproof.references.standards.base import Figures, Standard, Thresholds, agree, count_true, share

# Defaults of TTK's comparison method close; rtol and the free share are equal.
TTK_CLOSE: Thresholds = {"float16": 1e-3, "bfloat16": 1e-3, "float32": 1e-4}


@dataclass(frozen=True, kw_only=True)
class CloseShare(Standard):
    """At most a share ``free`` of the elements differs by more than atol + rtol |g|. Two NaN agree.

    g is rounded to the output's format. ``free`` is a share per dtype, 0 by default.
    """

    rtol: Thresholds
    atol: Thresholds
    free: Thresholds = field(default_factory=dict)

    def count(self, part: Deviations) -> Figures | None:
        name, errors = part.fmt.name, part.rounded_error
        if name not in self.rtol:
            return None
        with np.errstate(invalid="ignore"):
            within = errors <= self.atol[name] + self.rtol[name] * np.abs(part.rounded)
        return Figures(cells=errors.size, beyond=count_true(~agree(errors, within)))

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        return share(figures["beyond"], figures["cells"]) <= self.free.get(fmt.name, 0.0)


def share_close(name: str, rtol: float, free: float, atol: float) -> CloseShare:
    """Make TTK's comparison method close with the numbers of one row of a case list, for all dtypes."""
    source, dtypes = "TTK, comparison method close, with the row's own numbers", (*TTK_CLOSE, "float64")
    rtols, atols, shares = (dict.fromkeys(dtypes, number) for number in (rtol, atol, free))
    return CloseShare(name=name, source=source, rtol=rtols, atol=atols, free=shares)


TTK: tuple[Standard, ...] = (
    CloseShare(
        name="ttk-close",
        source="TTK, comparison method close, defaults and the pooling gradients' case lists",
        rtol=TTK_CLOSE,
        atol=dict.fromkeys(TTK_CLOSE, 1e-8),
        free=TTK_CLOSE,
    ),
)
