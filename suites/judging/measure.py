"""The numbers of a judged case: how far its output is from the truth, and what the standards of others say of it.

Statistics are taken of every case. The standards cost as much again as the whole judgement of a small case, so they
are held against the outputs of aspects that ask for them (`Aspect.standards`) and against single named cases.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.deviations import sequential_sums
from poolproof.references.standards import StandardVerdict, applications_of, judge_all
from poolproof.references.statistics import error_statistics, ordinals
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases.operands import POISONS
from poolproof.suites.judging.trial import Trial


def measure_output(trial: Trial) -> Row:
    """The statistics of one backward's grad_input."""
    row = error_statistics(trial.deviations, trial.acceptance, trial.model)
    rejected = row.pop("first_reject")
    row["first_reject_index"] = "" if rejected is None else _coordinates(rejected, trial.case.shape)
    output = np.ascontiguousarray(trial.first.output("grad_input"))
    row["n_unwritten"] = int(np.count_nonzero(_bits(output) == _poison_word(output.itemsize)))
    row["output_digest"] = hashlib.blake2b(output.tobytes(), digest_size=8).hexdigest()
    if rejected is not None:
        row["decoded_faults"] = json.dumps([fault.to_record(trial.case) for fault in trial.faults[:_MOST_FAULTS]])
    return row | _repetitions(trial)


_MOST_FAULTS = 100
"""Windows gone astray that one row tells of."""


def _coordinates(cell: int, shape: tuple[int, ...]) -> str:
    """A flat cell number as coordinates separated by commas."""
    coordinates: list[int] = []
    for length in reversed(shape):
        cell, coordinate = divmod(cell, length)
        coordinates.append(coordinate)
    return ",".join(map(str, reversed(coordinates)))


def _poison_word(size: int) -> int:
    return int.from_bytes(bytes([POISONS[0]]) * size, "little")


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(f"u{array.itemsize}")


def _repetitions(trial: Trial) -> Row:
    """How the repetitions that checks asked for compare with the first run."""
    first = np.ascontiguousarray(trial.first.output("grad_input"))
    others = [np.ascontiguousarray(run.output("grad_input")) for run in trial.repetitions]
    if not others:
        return {"repeat_n": 0}
    unequal = [other for other in others if not np.array_equal(_bits(first), _bits(other))]
    return {
        "repeat_n": len(others),
        "repeat_bitwise_equal": not unequal,
        "repeat_max_ulp_spread": max((_spread(trial, first, other) for other in unequal), default=0.0),
    }


def _spread(trial: Trial, first: NDArray[Any], other: NDArray[Any]) -> float:
    """Largest distance of two outputs in representable values; infinite where one alone is not finite."""
    finite = np.isfinite(first.astype(np.float64)), np.isfinite(other.astype(np.float64))
    if not np.array_equal(*finite):
        return float("inf")
    steps = np.abs(ordinals(first[finite[0]], trial.fmt) - ordinals(other[finite[0]], trial.fmt))
    return float(steps.max(initial=0))


def measure_standards(trial: Trial) -> Row:
    """What every standard says of one backward's grad_input.

    The second implementation that some compare with is float32 accumulation in memory order, narrowed once.
    """
    landing, gradient = trial.content.landing, trial.content.gradient
    assert gradient is not None
    second = sequential_sums(landing.cells, gradient.ravel(), landing.size, trial.fmt)
    verdicts = judge_all(trial.deviations.beside(second, trial.case.plane_windows))
    return standard_columns(verdicts, trial.case.operator)


def standard_columns(verdicts: dict[str, StandardVerdict], operator: str) -> Row:
    """The columns that standards fill, from all their verdicts on one output."""
    row: Row = {
        "standards_passed": [name for name, verdict in verdicts.items() if verdict.passed],
        "standards_failed": [name for name, verdict in verdicts.items() if verdict.passed is False],
    }
    for column, (standard, figure) in FIGURES.items():
        row[column] = verdicts[standard].figures.get(figure)
    for column, standard in PASSES.items():
        row[column] = verdicts[standard].passed
    levels = [(level, verdicts[f"commercial-{level}-unguarded"].passed) for level in LEVELS]
    if any(passed is not None for _, passed in levels):
        row["comm_level"] = next((level for level, passed in levels if passed), "fail")
    methods = [name for usage in applications_of(operator) for name in usage.standards if name.startswith("msprobe")]
    if methods:
        row["msprobe_method"] = methods[0].removeprefix("msprobe-")
        row["msprobe_pass"] = verdicts[methods[0]].passed
    return row


LEVELS = ("l2", "l1", "l0")
"""Of the commercial standard, highest first."""

FIGURES = {
    "mix09_ratio": ("ecosystem-2026-09", "matched_ratio"),
    "mix09_maxabs": ("ecosystem-2026-09", "max_abs_error"),
    "mix09_limit": ("ecosystem-2026-09", "limit"),
    "mix07_ratio": ("ecosystem-2026-07-fixed-limit", "matched_ratio"),
    "ttk_close_share": ("ttk-close", "missed_share"),
    "comm_mare_ratio": ("commercial-l2-unguarded", "mare_ratio"),
    "comm_mere_ratio": ("commercial-l2-unguarded", "mere_ratio"),
    "comm_rmse_ratio": ("commercial-l2-unguarded", "rmse_ratio"),
    "comm_small_ratio": ("commercial-l2-unguarded", "small_ratio"),
}
"""Column -> (standard, figure of it)."""

PASSES = {
    "mix09_pass": "ecosystem-2026-09",
    "mix07_pass": "ecosystem-2026-07-fixed-limit",
    "gen04_pass": "ecosystem-2026-04",
    "ttk_close_pass": "ttk-close",
    "torch_close_pass": "torch-assert-close",
    "npu_rtol_pass": "npu-assert-rtol",
}
"""Column -> standard whose verdict it holds."""
