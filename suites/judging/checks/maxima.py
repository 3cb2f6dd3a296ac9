"""Checks of a forward's outputs: maxima and their indices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolproof.references.forward import maximum_without_cells
from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.suites.judging.checks.registry import (
    check,
    forward,
    forward_with_empty_windows,
    forward_with_readable_indices,
)
from poolproof.suites.judging.comparing import wrong_element, wrong_window
from poolproof.suites.judging.findings import Mismatch, first_element, format_value
from poolproof.suites.judging.trial import ExecutedCall, Trial


@check("every output is the maximum of its window", forward)
def maximum(trial: Trial) -> Mismatch | None:
    wrong = _windows_flagged(trial, WRONG_MAXIMUM)
    if wrong is None:
        return None
    value, _ = trial.maximum_of(first_element(wrong))
    return wrong_window(trial, "out", wrong, trial.baseline.output("out"), format_value(value))


@check(
    "indices are those of the declared rule: the first maximum, or the last NaN, unless it is another",
    forward_with_readable_indices,
)
def index_rule(trial: Trial) -> Mismatch | None:
    wrong = _windows_flagged(trial, WRONG_INDEX)
    if wrong is None:
        return None
    _, index = trial.maximum_of(first_element(wrong))
    return wrong_window(trial, "indices", wrong, trial.output_indices, str(index))


@check("every index lies in its window and points at the value that came out", forward_with_readable_indices)
def index_points(trial: Trial) -> Mismatch | None:
    wrong = _windows_flagged(trial, POINTS_ELSEWHERE)
    if wrong is None:
        return None
    value = float(trial.baseline.output("out")[first_element(wrong)])
    expected = f"a cell of its window that holds {format_value(value)}"
    return wrong_window(trial, "indices", wrong, trial.output_indices, expected)


def _windows_flagged(trial: Trial, kind: int) -> NDArray[np.bool_] | None:
    """Mark the windows that are wrong in one way, of the pooled shape; None where none is."""
    if not trial.any_forward_flag & kind:
        return None
    return (trial.forward_flags.reshape(trial.case.pooled_shape) & kind) != 0


@check(
    "a window without cells yields -inf, or what the declared rule says, and an index inside the plane, or -1 for none",
    forward_with_empty_windows,
)
def empty_window(trial: Trial) -> Mismatch | None:
    empty = trial.case.empty_windows
    out, indices = trial.baseline.output("out"), trial.output_indices
    outside = empty & ((indices < -1) | (indices >= trial.case.plane_size))
    legal, why = f"-1 .. {trial.case.plane_size - 1}", "or the backward would write outside the plane"
    expected = maximum_without_cells(trial.forward_rule, trial.fmt)
    return wrong_window(trial, "out", empty & (out != expected), out, format_value(expected)) or wrong_element(
        "indices", outside, indices, legal, reason=why
    )


def wrong_maxima(trial: Trial, run: ExecutedCall, context: str) -> Mismatch | None:
    """Report the first window whose maximum or index a forward gets wrong."""
    out, indices = run.output("out"), trial.indices_of(run)
    flags = trial.forward_flags_of(out, indices).reshape(trial.case.pooled_shape)
    if not np.any(flags):
        return None
    window = first_element(flags != 0)
    value, index = trial.maximum_of(window)
    if flags[window] & WRONG_MAXIMUM:
        return wrong_window(trial, "out", flags & WRONG_MAXIMUM != 0, out, format_value(value), context)
    return wrong_window(trial, "indices", flags & (WRONG_INDEX | POINTS_ELSEWHERE) != 0, indices, str(index), context)
