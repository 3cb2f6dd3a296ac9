"""Checks of grad_input: the sums that belong in its cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.summary import Summary, summarise
from poolproof.reports.rows.rejudge import number
from poolproof.suites.cases.operands import CaseOperands
from poolproof.suites.judging.cells import REACHED, REJECTED, CellChunks
from poolproof.suites.judging.checks.registry import check, is_full_backward
from poolproof.suites.judging.chunks import anywhere, are_same_bits, where
from poolproof.suites.judging.comparing import differs, wrong_element
from poolproof.suites.judging.findings import (
    Mismatch,
    element_text,
    expected_text,
    first_element,
    mismatch,
    wrong_cells,
)
from poolproof.suites.judging.trial import SCALE, ExecutedCall, ProducerFailed, Trial


@check(
    "every cell that a window reaches holds an admissible sum",
    lambda case: case.api.is_backward,
    leaves_memory_intact=True,
)
def interval(trial: Trial) -> Mismatch | None:
    if not trial.summary.tally.rejected_reached:
        return None
    flags = trial.cells.flags
    return wrong_cells(trial, flags & (REACHED | REJECTED) == REACHED | REJECTED, trial.summary.tally.reached)


@check("cells that no window reaches are exactly zero", lambda case: case.api.is_backward, leaves_memory_intact=True)
def unreached(trial: Trial) -> Mismatch | None:
    if not trial.summary.tally.rejected_unreached:
        return None
    flags, unreached = trial.cells.flags, trial.summary.tally.cells - trial.summary.tally.reached
    return wrong_cells(trial, flags & (REACHED | REJECTED) == REJECTED, unreached)


def _data_is_exact(trial: Trial) -> bool:
    """Tell whether every cell has one possible sum in any order, and a plane's sum fits into float64."""
    summary = trial.summary.tally
    certain = summary.single_valued == summary.cells and not summary.special and not summary.inexact_sums
    return certain and 0.0 < summary.total < 2.0 ** (min(summary.least_lattice, 900) + 53)


@check("on exact data each plane of grad_input sums to its plane of grad_output", is_full_backward, _data_is_exact)
def plane_sum(trial: Trial) -> Mismatch | None:
    if not trial.summary.tally.planes_off:
        return None
    outputs, gradient = trial.baseline.output("grad_input"), trial.operands.gradient
    with np.errstate(invalid="ignore"):
        expected, got = (
            np.array([plane.astype(np.float64).sum() for plane in tensor.reshape(trial.case.planes, -1)])
            for tensor in (gradient, outputs)
        )
    wrong = (got != expected).reshape(trial.case.leading_shape)
    if not wrong.any():
        return None
    plane, element = int(wrong.argmax()), first_element(wrong)
    subject = f"the sum of grad_input's plane {list(element)}"
    return mismatch(subject, got[plane], expected[plane], wrong=wrong, noun="planes", element=element)


def _has_producer(trial: Trial) -> bool:
    """Tell whether the backend takes indices that a forward other than the trial's own can make."""
    is_readable = not trial.case.has_bit_mask and 0 not in trial.case.shape
    return is_readable and trial.backend.abilities(trial.case.api).indices


@check(
    "indices that the implementation's own forward made are legal, and lead to the right sums",
    is_full_backward,
    _has_producer,
)
def round_trip(trial: Trial) -> Mismatch | None:
    try:
        indices = trial.producing("indices").output_indices.reshape(trial.operands.indices.shape)
    except ProducerFailed:
        return None
    outside = (indices < 0) | (indices >= trial.case.plane_size)
    if outside.any():
        legal, element = f"0 .. {trial.case.plane_size - 1}", first_element(outside)
        subject = f"{element_text('indices', element)} that the forward made"
        return mismatch(subject, indices[element], legal, wrong=outside)
    return wrong_sums(trial, *trial.with_indices(indices), "with the indices of its own forward")


def wrong_sums(trial: Trial, run: ExecutedCall, operands: CaseOperands, context: str) -> Mismatch | None:
    """Return the first cell of grad_input that a backward on ``operands`` fills with an inadmissible value.

    A result equal to the first run's reuses its judgement.
    """
    outputs, baseline = run.output("grad_input"), trial.baseline.output("grad_input")
    is_first = np.array_equal(operands.indices, trial.operands.indices) and are_same_bits(outputs, baseline)
    if not (trial.summary if is_first else _summary(trial, operands, outputs)).tally.rejected:
        return None
    cells = trial.cells if is_first else CellChunks(operands, outputs, trial.model)
    wrong = (cells.flags & REJECTED != 0).reshape(outputs.shape)
    expected = expected_text(cells, int(wrong.argmax()))
    return wrong_element("grad_input", wrong, outputs, expected, context)


def _summary(trial: Trial, operands: CaseOperands, outputs: NDArray[Any]) -> Summary:
    return summarise(operands.chunks(outputs), trial.case.plane_size, trial.fmt, trial.model)


def _scales_exactly(trial: Trial) -> bool:
    """Tell whether multiplying by 2**3 keeps every term and partial sum finite and normal."""
    if not trial.is_deterministic:
        return False
    summary = trial.summary.tally
    stays = summary.greatest * 2.0 ** (SCALE + 1) < trial.fmt.max and summary.least_lattice >= trial.fmt.min_exponent
    return stays and not summary.special


@check("gradients times 8 give grad_input times 8", is_full_backward, _scales_exactly)
def scale_equivariance(trial: Trial) -> Mismatch | None:
    outputs = trial.variation("scale", SCALE).output("grad_input"), trial.baseline.output("grad_input")
    if not anywhere(_differs_scaled, *outputs):
        return None
    wrong = where(_differs_scaled, *outputs)
    expected = number(float(outputs[1][first_element(wrong)]) * 2.0**SCALE)
    return wrong_element("grad_input", wrong, outputs[0], expected, f"with gradients times {2**SCALE}")


def _differs_scaled(scaled: NDArray[Any], plain: NDArray[Any]) -> NDArray[np.bool_]:
    return differs(scaled.astype(np.float64), plain.astype(np.float64) * 2.0**SCALE)
