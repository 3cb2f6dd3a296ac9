"""The verdicts of msprobe's API accuracy checker on this family's gradients.

Source: the package mindstudio-probe 26.2.0; for the list of binary consistency, 8.3.3. `studies/msprobe_verdicts.py`
compares these rules with the package. Golden values are a CPU result one precision up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from poolproof.references.deviations import Deviations
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.standards.base import (
    Figures,
    Standard,
    Thresholds,
    count_true,
    largest,
    share,
    squares,
)

# |golden| up to which a value is small (API accuracy checker, configuration of the standards).
SMALL_VALUE: Thresholds = {"float16": 2.0**-10, "bfloat16": 2.0**-10, "float32": 2.0**-20}
# Added to |golden| before dividing: the machine epsilon of the golden values' dtype; bfloat16 has a number of its own.
EPSILON: Thresholds = {"float16": 2.0**-23, "bfloat16": 2.0**-8, "float32": 2.0**-52}

# Benchmark method: error above which a small value is wrong. The code says 1e-16, the document 2**-16.
BENCHMARK_ATOL: Thresholds = {"float16": 1e-16, "bfloat16": 1e-16, "float32": 2.0**-30}
# Benchmark method: least divisor of a ratio to the second device's figure.
BENCHMARK_LEAST: Thresholds = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-14}
# Benchmark method: largest ratios by level. Only APIs of a list have the levels L1 and L2, and no pool is in it. The
# verdict ignores the limit of 2 for error balance.
BENCHMARK_RATIOS = {
    "L0": {"small_ratio": 2.0, "rmse_ratio": 2.0, "max_rel_ratio": 10.0, "mean_rel_ratio": 2.0},
    "L1": {"small_ratio": 2.0, "rmse_ratio": 1.5, "max_rel_ratio": 5.0, "mean_rel_ratio": 1.5},
    "L2": {"small_ratio": 2.0, "rmse_ratio": 1.2, "max_rel_ratio": 2.0, "mean_rel_ratio": 1.2},
}

# acc_check: least cosine similarity.
LEAST_COSINE = 0.99
# acc_check: largest |value| of a tensor that counts as all zero.
ALL_ZERO = 2.0**-52
# acc_check: absolute error below which a tensor passes in any case.
ABSOLUTE_ERROR = 0.001
# acc_check: bounds of the relative error. A share of 1 minus the same number must stay below, else the result is an
# error, or a warning.
ERROR_BELOW: Thresholds = {"float16": 0.01, "bfloat16": 0.01, "float32": 0.001}
WARNING_BELOW: Thresholds = {"float16": 0.001, "bfloat16": 0.001, "float32": 0.0001}


@dataclass(frozen=True, kw_only=True)
class BinaryConsistency(Standard):
    """No element may differ from the golden value rounded to the output's format; NaN differs from NaN."""

    def count(self, part: Deviations) -> Figures:
        return Figures(different=count_true(part.outputs != part.rounded))

    def passes(self, figures: Figures, _: FloatFormat) -> bool:
        return not figures["different"]


@dataclass(frozen=True, kw_only=True)
class Benchmark(Standard):
    """Four error figures as ratios to those of a second device, both against the golden values."""

    level: str = "L0"

    def count(self, part: Deviations) -> Figures | None:
        if part.second is None or part.fmt.name not in SMALL_VALUE:
            return None
        return Figures(
            mine=_count_errors(part, part.outputs, part.golden_error),
            theirs=_count_errors(part, part.second, part.second_error),
        )

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool:
        mine, theirs = _errors(figures["mine"]), _errors(figures["theirs"])
        least = BENCHMARK_LEAST[fmt.name]
        ratios = {f"{figure}_ratio": mine[figure] / max(theirs[figure], least) for figure in mine}
        return all(ratios[ratio] <= limit for ratio, limit in BENCHMARK_RATIOS[self.level].items())


def _count_errors(part: Deviations, actual: Float64, errors: Float64) -> Figures:
    name = part.fmt.name
    finite = np.isfinite(actual) & np.isfinite(part.rounded)
    small = finite & (part.magnitude <= SMALL_VALUE[name])
    normal = finite & ~small
    relative = errors[normal] / (part.magnitude[normal] + EPSILON[name])
    return Figures(
        cells=len(actual),
        small=count_true(small),
        small_wrong=count_true(small & (errors > BENCHMARK_ATOL[name])),
        normal=count_true(normal),
        squares=squares(errors[normal]),
        relative=float(relative.sum()),
        largest=largest(relative),
    )


def _errors(figures: Figures) -> dict[str, float]:
    cells, masked = figures["cells"], figures["cells"] - figures["normal"]
    mean_square = figures["squares"] / max(cells, 1)
    return {
        "small": share(figures["small_wrong"], figures["small"]),
        "rmse": sqrt(mean_square * (cells / (cells - masked + 1e-4) + 1e-4)),  # the checker's own guards
        "max_rel": figures["largest"].value,
        "mean_rel": share(figures["relative"], figures["normal"]),
    }


@dataclass(frozen=True, kw_only=True)
class AccCheck(Standard):
    """The verdict without a second device: direction, then absolute error, then shares of relative errors.

    A warning is neither pass nor failure, so the rule gives no answer. float64 is left out: its golden values are no
    more precise than the output.
    """

    def count(self, part: Deviations) -> Figures | None:
        if (name := part.fmt.name) not in ERROR_BELOW:
            return None
        # here two equal infinities, or two NaN, do not agree
        errors = np.where(np.isfinite(part.outputs) & np.isfinite(part.golden), part.golden_error, np.inf)
        with np.errstate(invalid="ignore"):
            relative = errors / (part.magnitude + EPSILON[name])
            product = float(np.dot(part.outputs, part.golden))
        return Figures(
            cells=len(errors),
            product=product,
            output_squares=squares(part.outputs),
            golden_squares=squares(part.golden),
            output_peak=largest(np.abs(part.outputs)),
            golden_peak=largest(part.magnitude),
            error=largest(errors),
            no_error=count_true(relative < ERROR_BELOW[name]),
            no_warning=count_true(relative < WARNING_BELOW[name]),
        )

    def passes(self, figures: Figures, fmt: FloatFormat) -> bool | None:
        if not _is_alike(figures):
            return False
        if figures["error"].value < ABSOLUTE_ERROR:
            return True
        if share(figures["no_error"], figures["cells"]) <= 1 - ERROR_BELOW[fmt.name]:
            return False
        return True if share(figures["no_warning"], figures["cells"]) > 1 - WARNING_BELOW[fmt.name] else None


def _is_alike(figures: Figures) -> bool:
    """Compare directions. One cell, or two tensors of zeros, pass without; so do NaN and infinities."""
    zeros = [figures[peak].value <= ALL_ZERO for peak in ("output_peak", "golden_peak")]
    if figures["cells"] == 1 or all(zeros):
        return True
    cosine = figures["product"] / (sqrt(figures["output_squares"]) * sqrt(figures["golden_squares"]) or nan)
    return not any(zeros) and not cosine <= LEAST_COSINE


MSPROBE: tuple[Standard, ...] = (
    BinaryConsistency(
        name="msprobe-binary",
        source="mindstudio-probe 8.3.3, API accuracy checker, list of binary consistency",
        note="chosen for max_pool3d by its name; from 26.0 on only outputs of integers are compared so",
    ),
    Benchmark(
        name="msprobe-benchmark",
        source="mindstudio-probe 26.2.0, API accuracy checker, configuration of the standards, benchmark method",
        note="cells that are NaN or infinite are left out",
    ),
    AccCheck(
        name="msprobe-acc-check",
        source="mindstudio-probe 26.2.0, API accuracy checker, acc_check without a second device",
        note="any tensor of errors below 0.001 passes; a warning counts as neither passed nor failed",
    ),
)
