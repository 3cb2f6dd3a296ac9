"""Comparisons of a trial's runs: the first element, bit or byte that differs, as a mismatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Tensor, dtype_name
from poolproof.references.formats import Float64
from poolproof.reports.rows.failures import MAX_GUESSED
from poolproof.reports.rows.guesses import window_text
from poolproof.suites.cases.memory import (
    GAP_FILL,
    as_bits,
    guard_and_gap_mask,
    has_gaps,
    has_intact_guards,
    holds_poison,
    lies_outside,
)
from poolproof.suites.judging.cells import SINGLE_VALUED
from poolproof.suites.judging.chunks import anywhere, where
from poolproof.suites.judging.findings import Element, Mismatch, element_text, first_element, mismatch
from poolproof.suites.judging.trial import ExecutedCall, Trial


def differs(first: Float64, second: Float64) -> NDArray[np.bool_]:
    """Mark where two results differ in value; NaN payloads and signs of zero do not count."""
    other = first != second
    return other & ~(np.isnan(first) & np.isnan(second)) if np.count_nonzero(other) else other


def wrong_window(
    trial: Trial,
    name: str,
    wrong: NDArray[np.bool_],
    got: NDArray[Any],
    expected: NDArray[Any] | str,
    context: str = "",
) -> Mismatch | None:
    """Return the first wrong output of a forward, with its window and the window's values; None if none is wrong."""
    if not wrong.any():
        return None
    element = first_element(wrong)
    leading, window = element[: -trial.case.api.spatial_rank], element[-trial.case.api.spatial_rank :]
    visited = [axis.positions[at][axis.valid[at]].tolist() for axis, at in zip(trial.case.axes, window, strict=True)]
    reason = window_text(visited, trial.operands.values[leading][np.ix_(*visited)].astype(np.float64).ravel())
    case, guess = trial.case, ""
    if not (context or case.has_bit_mask or case.has_empty_window or case.planes * case.plane_size > MAX_GUESSED):
        guess = trial.guessed_rule
    return wrong_element(name, wrong, got, expected, context, reason, windows=(window,), guess=guess)


def wrong_element(
    name: str,
    wrong: NDArray[np.bool_],
    got: NDArray[Any],
    expected: NDArray[Any] | str,
    context: str = "",
    reason: str = "",
    windows: Sequence[Element] = (),
    guess: str = "",
) -> Mismatch | None:
    """Return the first wrong element of a tensor, made as ``context`` says; None if none is wrong."""
    if not wrong.any():
        return None
    element = first_element(wrong)
    right = expected if isinstance(expected, str) else expected[element]
    subject = f"{element_text(name, element)} {context}".rstrip()
    return mismatch(subject, got[element], right, reason, wrong=wrong, element=element, windows=windows, guess=guess)


def other_shape(run: ExecutedCall) -> Mismatch | None:
    """Return the first output that came back with another shape or dtype."""
    for name, (shape, dtype) in run.outcome.results.items():
        tensor = run.call.tensors[name]
        if (shape, dtype) != (tensor.shape, dtype_name(tensor.dtype)):
            given = f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"
            return mismatch(f"{name} as it came back", f"{dtype}{list(shape)}", given)
    return None


def other_bits(trial: Trial, other: ExecutedCall, context: str) -> Mismatch | None:
    """Return the first element of ``other`` that differs in its bits from the first run."""
    for name in trial.case.api.outputs:
        if not trial.equals_baseline(other, name):
            got, expected = (trial.case.known(name, run.output(name)) for run in (other, trial.baseline))
            wrong = as_bits(got) != as_bits(expected)
            return wrong_element(name, wrong, got, expected, context, "as the first call gave")
    return None


def other_values(
    trial: Trial, run: ExecutedCall, right: ExecutedCall, context: str = "", reason: str = ""
) -> Mismatch | None:
    """Return the first element that differs in value from the run ``right``, where the criterion allows one value."""
    for name in trial.case.api.outputs:
        if name not in trial.case.api.strided:
            continue
        outputs = run.output(name), right.output(name)
        if not anywhere(_other_value, *outputs):
            continue
        wrong = where(_other_value, *outputs)
        if trial.case.api.is_backward:
            wrong &= (trial.cells.flags & SINGLE_VALUED != 0).reshape(wrong.shape)
        if found := wrong_element(name, wrong, *outputs, context, reason):
            return found
    return None


def _other_value(got: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark where values differ, as `differs` does; comparing bits first is faster."""
    other = as_bits(got) != as_bits(expected)
    return differs(got.astype(np.float64), expected.astype(np.float64)) if np.count_nonzero(other) else other


def is_written_out_of_bounds(tensor: Tensor) -> bool:
    """Tell whether a guard band of an output, or a gap between its elements, was written."""
    if has_gaps(tensor):
        is_written = ~holds_poison(tensor.buffer.view(tensor.dtype), GAP_FILL)
        return bool((is_written & lies_outside(tensor)).any())
    return not has_intact_guards(tensor, GAP_FILL)


def out_of_bounds_writes(tensor: Tensor) -> NDArray[np.bool_]:
    """Mark the written bytes of an output's buffer that belong to no element."""
    written = guard_and_gap_mask(tensor)
    written &= tensor.buffer != GAP_FILL
    return written


def changed_bytes(
    name: str, tensor: Tensor, before: NDArray[np.uint8], changed: NDArray[np.bool_], reason: str
) -> Mismatch:
    """Return the first byte of a tensor's memory that must not be written and was, with the extent of the write."""
    byte, guard, size = int(changed.argmax()), tensor.guard, len(tensor.buffer)
    parts = (0, guard, guard, "before"), (guard, size - guard, guard, "in"), (size - guard, size, size - guard, "past")
    start, stop, counted_from, place = next(part for part in parts if byte < part[1])
    last = start + int(np.flatnonzero(changed[start:stop])[-1])
    numbers = [abs(each - counted_from) for each in (byte, last)]
    span = f"bytes {numbers[0]} to {numbers[1]}" if last > byte else f"byte {numbers[0]}"
    subject = f"a write at {span} {place} the storage of {name}"
    return mismatch(subject, tensor.buffer[byte], before[byte], reason, wrong=changed, noun="bytes")
