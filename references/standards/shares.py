"""Rules of one form: |a - g| <= atol + rtol |g| for all but a share of the elements.

Most of the world's tolerances are this with different numbers; with a share of zero it is allclose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poolproof.references.comparison import Comparison
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Specials,
    Standard,
    StandardVerdict,
    Thresholds,
    agree,
    count_true,
    settle,
    share,
)

_DTYPES = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class CloseShare(Standard):
    """At most ``free`` of the elements may be farther off than atol + rtol |g|, g rounded to the output's format.

    ``free`` is a share per dtype, nothing by default. ``nan_equal``: whether two NaN agree. ``scaled``: atol is
    per window of a plane.
    """

    rtol: Thresholds
    atol: Thresholds
    free: Thresholds = field(default_factory=dict)
    nan_equal: bool = True
    scaled: bool = False
    specials: Specials = "elements"

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        if name not in self.rtol or (self.scaled and comparison.windows_per_plane is None):
            return NOT_APPLICABLE
        decided, _ = settle(comparison, self.specials)
        if decided is not None:
            return decided
        errors = comparison.rounded_error
        atol = self.atol[name] * (comparison.windows_per_plane or 1 if self.scaled else 1)
        with np.errstate(invalid="ignore"):
            within = errors <= atol + self.rtol[name] * np.abs(comparison.rounded)
        beyond = ~agree(errors, within)
        if not self.nan_equal:
            beyond |= np.isnan(comparison.outputs)
        missed = share(count_true(beyond), beyond.size)
        return StandardVerdict(missed <= self.free.get(name, 0.0), {"missed_share": missed})


def _all(value: float) -> Thresholds:
    return dict.fromkeys(_DTYPES, value)


def _halves(half: float, single: float) -> Thresholds:
    """One threshold for float16 and bfloat16, another for float32."""
    return {"float16": half, "bfloat16": half, "float32": single}


def _double(name: str, thresholds: Thresholds, source: str, note: str = "") -> CloseShare:
    """A "double" rule: relative tolerance, absolute tolerance and share of free misses are all the same number."""
    return CloseShare(name=name, source=source, note=note, rtol=thresholds, atol=thresholds, free=thresholds)


# The older rules' numbers (test code and documents of operator libraries).
THOUSANDTH, FIVE_THOUSANDTHS, FOUR_THOUSANDTHS, TEN_THOUSANDTH = 1e-3, 5e-3, 4e-3, 1e-4

# TTK, comparison method close, defaults; rtol and the free share are equal.
TTK_CLOSE = _halves(1e-3, 1e-4)
TTK_CLOSE_ATOL = _halves(1e-8, 1e-8)

# torch.testing, table of default tolerances.
TORCH_RTOL: Thresholds = {"float64": 1e-7, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}
TORCH_ATOL: Thresholds = {"float64": 1e-7, "float32": 1e-5, "float16": 1e-5, "bfloat16": 1e-5}

# FlagGems, testing module: torch's relative tolerances, an absolute one of its own.
FLAGGEMS_ATOL = _all(1e-4)

# JAX, public test utilities, default and gradient tolerances (rtol and atol are equal).
JAX: Thresholds = {"float64": 1e-15, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}
JAX_GRADIENT: Thresholds = {"float64": 1e-5, "float32": 2e-3, "float16": 1e-2, "bfloat16": 1e-1}
# JAX, gradient test of reduce_window.
JAX_REDUCE_WINDOW: Thresholds = {"float32": 0.06, "float16": 0.1}

# ONNX, loader of the backend tests.
ONNX_RTOL, ONNX_ATOL = _all(1e-3), _all(1e-7)

# TensorFlow, pooling operator tests, direct test of the max pool gradient (integer data).
TENSORFLOW = _all(1e-6)

# StableHLO, reference document, almost_eq.
STABLEHLO = _all(1e-4)

# KernelBench, evaluation.
KERNELBENCH = _halves(1e-2, 1e-4)

# Experimental pooling gradient of the NN operator library, comparison script.
EXPERIMENTAL_RTOL: Thresholds = {"float32": 1e-4, "float16": 1e-2}
EXPERIMENTAL_ATOL: Thresholds = {"float32": 1e-4, "float16": 1e-3}

_OLD = "test code and documents of operator libraries, double rule"

SHARES: tuple[Standard, ...] = (
    _double("double-thousandth", _all(THOUSANDTH), _OLD, "meant for float16"),
    _double("double-five-thousandths", _all(FIVE_THOUSANDTHS), _OLD, "meant for bfloat16"),
    _double("double-ten-thousandth", _all(TEN_THOUSANDTH), _OLD, "meant for float32"),
    _double(
        "double-by-dtype",
        {"float16": THOUSANDTH, "bfloat16": FIVE_THOUSANDTHS, "float32": TEN_THOUSANDTH},
        _OLD,
        "each dtype by the rule meant for it",
    ),
    _double(
        "double-by-dtype-ascendoptest",
        {"float16": THOUSANDTH, "bfloat16": FOUR_THOUSANDTHS, "float32": TEN_THOUSANDTH},
        "AscendOpTest defaults, as others quote them",
        "bfloat16 by four thousandths",
    ),
    _double(
        "double-by-dtype-ops-nn",
        _halves(THOUSANDTH, TEN_THOUSANDTH),
        "read-me files of the NN operator library",
        "bfloat16 by the thousandth; elsewhere in the same library by four thousandths",
    ),
    CloseShare(
        name="ttk-close",
        source="TTK, comparison method close, defaults and the pooling gradients' case lists",
        rtol=TTK_CLOSE,
        atol=TTK_CLOSE_ATOL,
        free=TTK_CLOSE,
    ),
    CloseShare(
        name="torch-assert-close",
        source="torch.testing, table of default tolerances",
        note="by default two NaN differ",
        rtol=TORCH_RTOL,
        atol=TORCH_ATOL,
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
    CloseShare(name="jax", source="JAX, public test utilities, default tolerances", rtol=JAX, atol=JAX),
    CloseShare(
        name="jax-gradient",
        source="JAX, public test utilities, gradient tolerances",
        rtol=JAX_GRADIENT,
        atol=JAX_GRADIENT,
    ),
    CloseShare(
        name="jax-reduce-window",
        source="JAX, gradient test of reduce_window",
        rtol=JAX_REDUCE_WINDOW,
        atol=JAX_REDUCE_WINDOW,
    ),
    CloseShare(name="onnx", source="ONNX, loader of the backend tests", rtol=ONNX_RTOL, atol=ONNX_ATOL, nan_equal=True),
    CloseShare(
        name="tensorflow",
        source="TensorFlow, pooling operator tests",
        note="its own data are integers",
        rtol=TENSORFLOW,
        atol=TENSORFLOW,
    ),
    CloseShare(name="stablehlo", source="StableHLO, reference document", rtol=STABLEHLO, atol=STABLEHLO),
    CloseShare(name="kernelbench", source="KernelBench, evaluation", rtol=KERNELBENCH, atol=KERNELBENCH),
    CloseShare(
        name="ops-nn-experimental",
        source="NN operator library, experimental max pooling gradient, comparison script",
        rtol=EXPERIMENTAL_RTOL,
        atol=EXPERIMENTAL_ATOL,
    ),
)
