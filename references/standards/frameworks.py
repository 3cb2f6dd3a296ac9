"""The rules of frameworks, libraries and specifications that are not of the common form: counts, ulps, sums.

TOSA's is the only public one that knows how many terms were summed; OpenCL's is empirical, and unsound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolproof.references.comparison import Comparison
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.standards.base import (
    NOT_APPLICABLE,
    Standard,
    StandardVerdict,
    Thresholds,
    agree,
    count_true,
    largest,
    root_mean_square,
    settle,
    share,
)
from poolproof.references.standards.commercial import Bitwise

# torch_npu, test case class, assertRtolEqual: tolerance and the guard added to max(|a|, |g|).
NPU_TOLERANCE: Thresholds = {"float16": 1e-3, "float32": 1e-4, "float64": 1e-4}
NPU_TOLERANCE_ADAPTIVE: Thresholds = {"float16": 3e-4, "float32": 3e-4, "float64": 3e-4}
NPU_GUARD: Thresholds = {"float16": 6e-8, "float32": 1e-9, "float64": 1e-9}
# Same class: bfloat16 is compared by allclose with this as both tolerances.
NPU_BFLOAT16 = 1e-3

# benchdnn, pooling driver and comparison: relative error above this magnitude, absolute below.
BENCHDNN_ABSOLUTE_BELOW = 1e-5
# benchdnn, pooling driver: multiples of the epsilon allowed when accumulation is not strict.
BENCHDNN_RELAXED = 10.0

# TOSA, dot product check: share of the squared bound that the mean square may take, and the bias test's factor.
TOSA_SQUARES, TOSA_BIAS = 4 * 0.4, 10.0
TOSA_ABSOLUTE, TOSA_ABSOLUTE_FLOAT32 = 2.0, 3.0 * 2.0
# TOSA, formats: fraction bits of the output and of its accumulator.
TOSA_FRACTION = {"float16": (10, 23), "bfloat16": (7, 23), "float32": (23, 23)}

# MIOpen, pooling driver: units in the last place, absolute difference, root mean square.
MIOPEN_ULPS = 4.0
MIOPEN_DIFFERENCE: Thresholds = {"float32": 1e-6, "float16": 5e-3}


@dataclass(frozen=True, kw_only=True)
class AssertRtolEqual(Standard):
    """Fails only if both the share with a large relative and that with a large absolute error exceed the tolerance."""

    tolerance: Thresholds

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name, golden = comparison.fmt.name, comparison.rounded
        errors = comparison.rounded_error
        if name == "bfloat16":
            within = errors <= NPU_BFLOAT16 + NPU_BFLOAT16 * np.abs(golden)
            beyond = count_true(~agree(errors, within))
            return StandardVerdict(beyond == 0, {"n_beyond": float(beyond)})
        if name not in self.tolerance:
            return NOT_APPLICABLE
        tolerance = self.tolerance[name]
        with np.errstate(invalid="ignore"):
            relative = errors / (np.maximum(np.abs(comparison.outputs), np.abs(golden)) + NPU_GUARD[name])
            odd = {"rel_share": ~(relative <= tolerance), "abs_share": ~(errors <= tolerance)}
        shares = {figure: share(count_true(mask), mask.size) for figure, mask in odd.items()}
        return StandardVerdict(not all(value > tolerance for value in shares.values()), shares)


@dataclass(frozen=True, kw_only=True)
class Benchdnn(Standard):
    """Error at most ``epsilons`` of the output's format, on data whose sums are exact; any other data do not apply."""

    epsilons: float

    def judge(self, comparison: Comparison) -> StandardVerdict:
        exact = (comparison.golden == comparison.rounded) & (comparison.sums.residue == 0.0)
        if not exact.all():
            return NOT_APPLICABLE
        errors = comparison.rounded_error
        magnitude = np.abs(comparison.rounded)
        scaled = errors / np.where(magnitude > BENCHDNN_ABSOLUTE_BELOW, magnitude, 1.0)
        worst = largest(scaled)
        return StandardVerdict(worst <= self.epsilons * 2.0 * comparison.fmt.unit_roundoff, {"max_error": worst})


@dataclass(frozen=True, kw_only=True)
class DotProductBound(Standard):
    """TOSA's bound for sums, each sum a dot product with ones.

    With E = sum |terms| * 2**(-1 - fraction) (at least the smallest normal) an error may be 2 ksb E (three times that
    in float32), the squares 1.6 ksb E**2 on average, where ksb = ceil(k / 2**((accumulator - output fraction) / 2)).
    ``bias`` adds the limit on the errors' sum that the text has for its random data sets.
    """

    bias: bool = False

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name, sums, fmt = comparison.fmt.name, comparison.sums, comparison.fmt
        if name not in TOSA_FRACTION:
            return NOT_APPLICABLE
        fraction, accumulator = TOSA_FRACTION[name]
        magnitude = sums.positive + sums.negative
        free = (magnitude >= fmt.overflow_threshold) | ~np.isfinite(comparison.golden)
        if (np.isnan(comparison.golden) & ~np.isnan(comparison.outputs)).any():
            return StandardVerdict(False)
        bound = np.maximum(magnitude * 2.0 ** (-1 - fraction), fmt.smallest_normal)
        terms = np.ceil(np.maximum(sums.count, 1) / 2.0 ** ((accumulator - fraction) / 2))
        with np.errstate(invalid="ignore", over="ignore"):
            errors = np.where(free, 0.0, comparison.error / bound)
        factor = TOSA_ABSOLUTE_FLOAT32 if name == "float32" else TOSA_ABSOLUTE
        with np.errstate(over="ignore"):
            squares = float(np.dot(errors, errors))
        allowed = TOSA_SQUARES * float(terms[~free].sum())
        zeros = ((magnitude == 0.0) & ~free & (comparison.outputs != 0.0)).any()
        passed = bool((np.abs(errors) <= factor * terms).all()) and not zeros and squares <= allowed
        if self.bias:
            passed &= bool(abs(errors.sum()) <= np.sqrt(TOSA_BIAS * allowed))
        return StandardVerdict(passed, {"max_error": largest(np.abs(errors)), "squares": squares, "allowed": allowed})


@dataclass(frozen=True, kw_only=True)
class MIOpen(Standard):
    """Fails only if the root mean square is too large and some element is, in ulps and in difference."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        name = comparison.fmt.name
        decided, _ = settle(comparison, self.specials)
        if name not in MIOPEN_DIFFERENCE or decided is not None:
            return decided or NOT_APPLICABLE
        errors = comparison.rounded_error
        limit = MIOPEN_DIFFERENCE[name]
        ulps = errors / comparison.fmt.ulp(comparison.rounded)
        square = root_mean_square(errors)
        far = count_true((ulps > MIOPEN_ULPS) & (errors > limit))
        return StandardVerdict(not (far and square > limit), {"rms": square, "n_far": float(far)})


Order = Literal["ascending", "descending", "ascending_magnitude", "descending_magnitude"]
ORDERS: tuple[Order, ...] = ("ascending", "descending", "ascending_magnitude", "descending_magnitude")


@dataclass(frozen=True, kw_only=True)
class EmpiricalOrders(Standard):
    """Error at most the spread of the sum over five orders of addition, four of them rounded at every step."""

    def judge(self, comparison: Comparison) -> StandardVerdict:
        decided, _ = settle(comparison, self.specials)
        if comparison.terms is None or decided is not None:
            return decided or NOT_APPLICABLE
        cells, values = comparison.terms
        size = len(comparison.outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = [sum_in_order(cells, values, size, comparison.fmt, order) for order in ORDERS]
            spread = np.max([*sums, comparison.golden], axis=0) - np.min([*sums, comparison.golden], axis=0)
        errors = comparison.golden_error
        beyond = count_true(~(errors <= spread))
        return StandardVerdict(beyond == 0, {"n_beyond": float(beyond)})


def sum_in_order(cells: Int64, values: Float64, size: int, fmt: FloatFormat, order: Order) -> Float64:
    """Each cell's terms added one by one in ``order``, every sum rounded to ``fmt``."""
    key = np.abs(values) if order.endswith("magnitude") else values
    sequence = np.argsort(key if order.startswith("ascending") else -key, kind="stable")
    total = np.zeros(size, fmt.dtype)
    np.add.at(total, cells[sequence], values[sequence].astype(fmt.dtype))
    return total.astype(np.float64)


_NPU = "torch_npu, test case class, assertRtolEqual"

FRAMEWORKS: tuple[Standard, ...] = (
    AssertRtolEqual(
        name="npu-assert-rtol",
        source=_NPU,
        note="a share of elements may be anything: one in a thousand (float16) or ten thousand (float32)",
        tolerance=NPU_TOLERANCE,
    ),
    AssertRtolEqual(
        name="npu-assert-rtol-adaptive",
        source=f"{_NPU}, with the tolerance of the adaptive pools' tests",
        tolerance=NPU_TOLERANCE_ADAPTIVE,
    ),
    Benchdnn(
        name="benchdnn-strict",
        source="oneDNN benchdnn, pooling driver, strict and float32 accumulation",
        epsilons=0.0,
    ),
    Benchdnn(
        name="benchdnn-relaxed",
        source="oneDNN benchdnn, pooling driver, other accumulation",
        epsilons=BENCHDNN_RELAXED,
    ),
    DotProductBound(name="tosa", source="TOSA specification, reference check of dot products"),
    DotProductBound(
        name="tosa-random",
        source="TOSA specification, reference check of dot products, data sets 3 to 5",
        note="for symmetric random data; errors of one sign fail",
        bias=True,
    ),
    MIOpen(
        name="miopen",
        source="MIOpen, pooling driver",
        note="elements are looked at only when the root mean square over all of them is too large",
    ),
    EmpiricalOrders(
        name="opencl-orders",
        source="OpenCL conformance tests, floating-point atomics",
        note="other orders exceed the five: correct kernels fail",
        sound=False,
    ),
    Bitwise(name="webnn-scatter", source="WebNN platform tests, scatter and gather", note="reductions have their own"),
)
