"""The two methods that msprobe's API accuracy checker picks for this family's APIs.

Golden values are a CPU result one precision up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolproof.references.deviations import Deviations
from poolproof.references.formats import Float64
from poolproof.references.standards.base import Standard, Thresholds, count_true, largest, mean, share

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

    def judge(self, deviations: Deviations) -> bool | None:
        return bool((deviations.outputs == deviations.rounded).all())


@dataclass(frozen=True, kw_only=True)
class Benchmark(Standard):
    """Four error figures as ratios to those of a second device, both against the golden values."""

    def judge(self, deviations: Deviations) -> bool | None:
        name = deviations.fmt.name
        if deviations.second is None or name not in SMALL_VALUE:
            return None
        mine = self._figures(deviations, deviations.outputs, deviations.golden_error)
        theirs = self._figures(deviations, deviations.second, deviations.second_error)
        least = BENCHMARK_LEAST[name]
        ratios = {f"{figure}_ratio": mine[figure] / max(theirs[figure], least) for figure in mine}
        return all(ratios[ratio] <= limit for ratio, limit in BENCHMARK_RATIOS.items())

    def _figures(self, deviations: Deviations, actual: Float64, errors: Float64) -> dict[str, float]:
        name, golden = deviations.fmt.name, deviations.golden
        cells = len(actual)
        finite = np.isfinite(actual) & np.isfinite(deviations.rounded)
        small = finite & (np.abs(golden) <= SMALL_VALUE[name])
        normal = finite & ~small
        relative = errors[normal] / (np.abs(golden[normal]) + EPSILON[name])
        squares = float(np.dot(errors[normal], errors[normal])) / max(cells, 1)
        masked = cells - count_true(normal)
        return {
            "small": share(small & (errors > BENCHMARK_ATOL[name]), among=small),
            "rmse": float(np.sqrt(squares * (cells / (cells - masked + 1e-4) + 1e-4))),  # the checker's own guards
            "max_rel": largest(relative),
            "mean_rel": mean(relative),
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
