"""Rules of frameworks, libraries and test tools: |a - g| <= atol + rtol |g| for all, or all but a few, elements.

With a share of zero that is allclose; torch_npu's unit tests and benchdnn have rules of another form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poolproof.references.deviations import Deviations
from poolproof.references.formats import FloatFormat
from poolproof.references.standards.base import (
    CountedStandard,
    Figures,
    Thresholds,
    agree,
    count_true,
    share,
)

# torch_npu, test case class, assertRtolEqual: the guard added to max(|a|, |g|).
NPU_GUARD: Thresholds = {"float16": 6e-8, "float32": 1e-9, "float64": 1e-9}
# Same class: bfloat16 is compared by allclose with this as both tolerances.
NPU_BFLOAT16 = 1e-3

# TTK, comparison method close, defaults; rtol and the free share are equal.
TTK_CLOSE: Thresholds = {"float16": 1e-3, "bfloat16": 1e-3, "float32": 1e-4}

# torch.testing, table of default tolerances.
TORCH_RTOL: Thresholds = {"float64": 1e-7, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}

# FlagGems, testing module: torch's relative tolerances, an absolute one of its own.
FLAGGEMS_ATOL: Thresholds = dict.fromkeys(TORCH_RTOL, 1e-4)


@dataclass(frozen=True, kw_only=True)
class AssertRtolEqual(CountedStandard):
    """Fails only if both the share with a large relative and that with a large absolute error exceed the tolerance."""

    tolerance: Thresholds

    def count(self, part: Deviations) -> Figures | None:
        name, golden, errors = part.fmt.name, part.rounded, part.rounded_error
        if name == "bfloat16":
            within = errors <= NPU_BFLOAT16 + NPU_BFLOAT16 * np.abs(golden)
            return Figures(cells=errors.size, beyond=count_true(~agree(errors, within)))
        if name not in self.tolerance:
            return None
        tolerance = self.tolerance[name]
        with np.errstate(invalid="ignore"):
            relative = errors / (np.maximum(np.abs(part.outputs), np.abs(golden)) + NPU_GUARD[name])
            odd = {"relative": count_true(~(relative <= tolerance)), "absolute": count_true(~(errors <= tolerance))}
        return Figures(odd, cells=errors.size)

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        if fmt.name == "bfloat16":
            return not figures["beyond"]
        shares = (share(figures[odd], figures["cells"]) for odd in ("relative", "absolute"))
        return min(shares) <= self.tolerance[fmt.name]


@dataclass(frozen=True, kw_only=True)
class Benchdnn(CountedStandard):
    """No error at all on data whose sums are exact; any other data do not apply."""

    def count(self, part: Deviations) -> Figures:
        exact = (part.golden == part.rounded) & (part.sums.residue == 0.0)
        return Figures(inexact=count_true(~exact), wrong=count_true(part.rounded_error != 0.0))

    def passes(self, figures: Figures, _: FloatFormat) -> bool | None:
        return None if figures["inexact"] else not figures["wrong"]


@dataclass(frozen=True, kw_only=True)
class CloseShare(CountedStandard):
    """At most a share ``free`` of the elements is farther off than atol + rtol |g|, g rounded to the output's format.

    ``free`` is a share per dtype, nothing by default. ``nan_equal``: whether two NaN agree. ``scaled``: atol is
    per window of a plane.
    """

    rtol: Thresholds
    atol: Thresholds
    free: Thresholds = field(default_factory=dict)
    nan_equal: bool = True
    scaled: bool = False

    def count(self, part: Deviations) -> Figures | None:
        name, errors = part.fmt.name, part.rounded_error
        if name not in self.rtol or (self.scaled and part.windows_per_plane is None):
            return None
        atol = self.atol[name] * (part.windows_per_plane or 1 if self.scaled else 1)
        with np.errstate(invalid="ignore"):
            within = errors <= atol + self.rtol[name] * np.abs(part.rounded)
        beyond = ~agree(errors, within)
        if not self.nan_equal:
            beyond |= np.isnan(part.outputs)
        return Figures(cells=errors.size, beyond=count_true(beyond))

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        return share(figures["beyond"], figures["cells"]) <= self.free.get(fmt.name, 0.0)


def share_close(name: str, rtol: float, free: float, atol: float) -> CloseShare:
    """Make TTK's comparison method close with the numbers that one row of a case list names, whatever the dtype."""
    source, dtypes = "TTK, comparison method close, with the row's own numbers", (*TTK_CLOSE, "float64")
    rtols, atols, shares = (dict.fromkeys(dtypes, number) for number in (rtol, atol, free))
    return CloseShare(name=name, source=source, rtol=rtols, atol=atols, free=shares)


_NPU = "torch_npu, test case class, assertRtolEqual"

FRAMEWORKS: tuple[CountedStandard, ...] = (
    AssertRtolEqual(
        name="npu-assert-rtol",
        source=_NPU,
        note="a share of elements may be anything: one in a thousand (float16) or ten thousand (float32)",
        tolerance={"float16": 1e-3, "float32": 1e-4, "float64": 1e-4},
    ),
    AssertRtolEqual(
        name="npu-assert-rtol-adaptive",
        source=f"{_NPU}, with the tolerance of the adaptive pools' tests",
        tolerance=dict.fromkeys(("float16", "float32", "float64"), 3e-4),
    ),
    Benchdnn(name="benchdnn-strict", source="oneDNN benchdnn, pooling driver, strict and float32 accumulation"),
    CloseShare(
        name="ttk-close",
        source="TTK, comparison method close, defaults and the pooling gradients' case lists",
        rtol=TTK_CLOSE,
        atol=dict.fromkeys(TTK_CLOSE, 1e-8),
        free=TTK_CLOSE,
    ),
    CloseShare(
        name="torch-assert-close",
        source="torch.testing, table of default tolerances",
        note="by default two NaN differ",
        rtol=TORCH_RTOL,
        atol={"float64": 1e-7, "float32": 1e-5, "float16": 1e-5, "bfloat16": 1e-5},
        nan_equal=False,
    ),
    CloseShare(
        name="flaggems-max-pool2d",
        source="FlagGems, testing module and test of max_pool2d (reduce_dim 1)",
        rtol=TORCH_RTOL,
        atol=FLAGGEMS_ATOL,
        nan_equal=False,
    ),
    CloseShare(
        name="flaggems-adaptive-max-pool2d",
        source="FlagGems, testing module and test of adaptive_max_pool2d's backward (reduce_dim oH * oW)",
        note="the absolute tolerance grows with the windows of a plane, not with those that meet in a cell",
        rtol=TORCH_RTOL,
        atol=FLAGGEMS_ATOL,
        nan_equal=False,
        scaled=True,
    ),
    CloseShare(
        name="ops-nn-experimental",
        source="NN operator library, experimental max pooling gradient, comparison script",
        rtol={"float32": 1e-4, "float16": 1e-2},
        atol={"float32": 1e-4, "float16": 1e-3},
    ),
)
