"""Checks of a forward's outputs: maxima and their indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from poolproof.references.forward import maximum_without_cells
from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.reports.rows.rejudge import number
from poolproof.suites.judging.checks.registry import check, is_forward_with_readable_indices
from poolproof.suites.judging.comparing import wrong_element, wrong_window
from poolproof.suites.judging.findings import Element, Mismatch, first_element
from poolproof.suites.judging.trial import ExecutedCall, Trial


@check(
    "every output is the maximum of its window",
    lambda case: not case.api.is_backward and not case.has_empty_window,
    leaves_memory_intact=True,
)
def maximum(trial: Trial) -> Mismatch | None:
    return _flagged(trial, WRONG_MAXIMUM, "out", lambda window: number(trial.maximum_of(window)[0]))


@check(
    "indices are those of the declared rule: the first maximum, or the last NaN, unless it is another",
    is_forward_with_readable_indices,
    leaves_memory_intact=True,
)
def index_rule(trial: Trial) -> Mismatch | None:
    return _flagged(trial, WRONG_INDEX, "indices", lambda window: str(trial.maximum_of(window)[1]))


@check(
    "every index is in its window and points at the value that came out",
    is_forward_with_readable_indices,
    leaves_memory_intact=True,
)
def index_points(trial: Trial) -> Mismatch | None:
    return _flagged(trial, POINTS_ELSEWHERE, "indices", partial(_cell_of, trial.baseline))


def _cell_of(run: ExecutedCall, window: Element) -> str:
    return f"a cell of its window that holds {number(float(run.output('out')[window]))}"


def _flagged(trial: Trial, kind: int, output: str, expected: Callable[[Element], str]) -> Mismatch | None:
    """Return the first window that is wrong in one way."""
    if not np.bitwise_or.reduce(trial.forward_flags.ravel()) & kind:
        return None
    wrong = (trial.forward_flags.reshape(trial.case.pooled_shape) & kind) != 0
    got = trial.baseline.output("out") if output == "out" else trial.output_indices
    return wrong_window(trial, output, wrong, got, expected(first_element(wrong)))


@check(
    "a window without cells yields -inf, or the declared value, with an index inside the plane, or -1 for none",
    lambda case: not case.api.is_backward and case.has_empty_window,
    leaves_memory_intact=True,
)
def empty_window(trial: Trial) -> Mismatch | None:
    empty = trial.case.empty_windows
    out, indices = trial.baseline.output("out"), trial.output_indices
    outside = empty & ((indices < -1) | (indices >= trial.case.plane_size))
    legal, why = f"-1 .. {trial.case.plane_size - 1}", "or the backward would write outside the plane"
    expected = maximum_without_cells(trial.forward_rule, trial.fmt)
    mismatch = wrong_window(trial, "out", empty & (out != expected), out, number(expected))
    return mismatch or wrong_element("indices", outside, indices, legal, reason=why)


def wrong_maxima(trial: Trial, run: ExecutedCall, context: str) -> Mismatch | None:
    """Return the first window with a wrong maximum or index in a further run of a forward."""
    flags = trial.forward_flags if run is trial.baseline else trial.forward_flags_of(run)
    flags = flags.reshape(trial.case.pooled_shape)
    if not np.any(flags):
        return None
    window = first_element(flags != 0)
    value, index = trial.maximum_of(window)
    if flags[window] & WRONG_MAXIMUM:
        return wrong_window(trial, "out", flags & WRONG_MAXIMUM != 0, run.output("out"), number(value), context)
    wrong = flags & (WRONG_INDEX | POINTS_ELSEWHERE) != 0
    expected = str(index) if flags[window] & WRONG_INDEX else _cell_of(run, window)
    return wrong_window(trial, "indices", wrong, trial.indices_of(run), expected, context)
