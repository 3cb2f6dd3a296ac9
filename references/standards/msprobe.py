"""The two methods that msprobe's API accuracy checker picks for this family's APIs.

Golden values are a CPU result one precision up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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

# API accuracy checker, configuration of the standards: |golden| up to which a value is small.
SMALL_VALUE: Thresholds = {"float16": 2.0**-10, "bfloat16": 2.0**-10, "float32": 2.0**-20}
# Added to |golden| before dividing: the machine epsilon of the golden values' dtype, a number of its own for bfloat16.
EPSILON: Thresholds = {"float16": 2.0**-23, "bfloat16": 2.0**-8, "float32": 2.0**-52}

# Benchmark method: error a small value may have, in the code; the document says 2**-16 where the code says 1e-16.
BENCHMARK_ATOL: Thresholds = {"float16": 1e-16, "bfloat16": 1e-16, "float32": 2.0**-30}
# Benchmark method: least figure of the second device that a ratio is taken to.
BENCHMARK_LEAST: Thresholds = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-14}
# Benchmark method: ratios that are an error. Error balance has a limit of 2 too, but is not in the verdict.
BENCHMARK_RATIOS = {"small_ratio": 2.0, "rmse_ratio": 2.0, "max_rel_ratio": 10.0, "mean_rel_ratio": 2.0}


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
        return all(ratios[ratio] <= limit for ratio, limit in BENCHMARK_RATIOS.items())


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


MSPROBE: tuple[Standard, ...] = (
    BinaryConsistency(
        name="msprobe-binary",
        source="msprobe API accuracy checker, list of binary consistency",
        note="chosen for max_pool3d by its name, forward and backward alike",
    ),
    Benchmark(
        name="msprobe-benchmark",
        source="msprobe API accuracy checker, configuration of the standards, benchmark method, code",
        note="cells that are NaN or infinite are left out",
    ),
)
