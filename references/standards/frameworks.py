"""Rules of frameworks, libraries and test tools: |a - g| <= atol + rtol |g| for all, or all but a few, elements.

With a share of zero that is allclose; torch_npu's unit tests and benchdnn have rules of another form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poolproof.references.deviations import Deviations
from poolproof.references.standards.base import Specials, Standard, Thresholds, agree, largest, leaves_unanswered, share

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
class AssertRtolEqual(Standard):
    """Fails only if both the share with a large relative and that with a large absolute error exceed the tolerance."""

    tolerance: Thresholds

    def judge(self, deviations: Deviations) -> bool | None:
        name, golden = deviations.fmt.name, deviations.rounded
        errors = deviations.rounded_error
        if name == "bfloat16":
            within = errors <= NPU_BFLOAT16 + NPU_BFLOAT16 * np.abs(golden)
            return bool(agree(errors, within).all())
        if name not in self.tolerance:
            return None
        tolerance = self.tolerance[name]
        with np.errstate(invalid="ignore"):
            relative = errors / (np.maximum(np.abs(deviations.outputs), np.abs(golden)) + NPU_GUARD[name])
            odd = ~(relative <= tolerance), ~(errors <= tolerance)
        return not all(share(mask) > tolerance for mask in odd)


@dataclass(frozen=True, kw_only=True)
class Benchdnn(Standard):
    """No error at all on data whose sums are exact; any other data do not apply."""

    def judge(self, deviations: Deviations) -> bool | None:
        exact = (deviations.golden == deviations.rounded) & (deviations.sums.residue == 0.0)
        if not exact.all():
            return None
        return largest(deviations.rounded_error) == 0.0


@dataclass(frozen=True, kw_only=True)
class CloseShare(Standard):
    """At most a share ``free`` of the elements is farther off than atol + rtol |g|, g rounded to the output's format.

    ``free`` is a share per dtype, nothing by default. ``nan_equal``: whether two NaN agree. ``scaled``: atol is
    per window of a plane.
    """

    rtol: Thresholds
    atol: Thresholds
    free: Thresholds = field(default_factory=dict)
    nan_equal: bool = True
    scaled: bool = False
    specials: Specials = "elements"

    def judge(self, deviations: Deviations) -> bool | None:
        name = deviations.fmt.name
        if name not in self.rtol or (self.scaled and deviations.windows_per_plane is None):
            return None
        if leaves_unanswered(deviations, self.specials):
            return None if self.specials == "silent" else True
        errors = deviations.rounded_error
        atol = self.atol[name] * (deviations.windows_per_plane or 1 if self.scaled else 1)
        with np.errstate(invalid="ignore"):
            within = errors <= atol + self.rtol[name] * np.abs(deviations.rounded)
        beyond = ~agree(errors, within)
        if not self.nan_equal:
            beyond |= np.isnan(deviations.outputs)
        return share(beyond) <= self.free.get(name, 0.0)


def share_close(name: str, rtol: float, free: float, atol: float) -> CloseShare:
    """Make TTK's comparison method close with the numbers that one row of a case list names, whatever the dtype."""
    source, dtypes = "TTK, comparison method close, with the row's own numbers", (*TTK_CLOSE, "float64")
    rtols, atols, shares = (dict.fromkeys(dtypes, number) for number in (rtol, atol, free))
    return CloseShare(name=name, source=source, rtol=rtols, atol=atols, free=shares)


_NPU = "torch_npu, test case class, assertRtolEqual"

FRAMEWORKS: tuple[Standard, ...] = (
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
