"""Runs of a case besides its first that are each judged by the case itself: no other run says what is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolproof.references.core.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.references.summary import summarise
from poolproof.suites.cases.operands import Operands
from poolproof.suites.judging.cells import REJECTED, CellChunks
from poolproof.suites.judging.comparing import other_shape, wrong_element, wrong_window
from poolproof.suites.judging.findings import Mismatch, expected_text, first_element, format_value
from poolproof.suites.judging.trial import ExecutedCall, Trial


def wrong_by_itself(trial: Trial, run: ExecutedCall | None, context: str) -> Mismatch | None:
    """Report what is wrong with a run, whatever the first gave; None of one that could not be made."""
    if run is None:
        return None
    other = other_shape(run)
    if other:
        return replace(other, message=f"{context}: {other.message}")
    return (
        wrong_sums(trial, run, trial.operands, context)
        if trial.case.api.is_backward
        else wrong_maxima(trial, run, context)
    )


def wrong_sums(trial: Trial, run: ExecutedCall, operands: Operands, context: str) -> Mismatch | None:
    """Report the first cell of grad_input that a backward on ``operands`` fills with what cannot be."""
    outputs = run.output("grad_input")
    if not summarise(operands.chunks(outputs), trial.case.plane_size, trial.fmt, trial.model).rejected:
        return None
    chunks = CellChunks(operands, outputs, trial.model)
    wrong = (chunks.flags & REJECTED != 0).reshape(outputs.shape)
    cell = int(wrong.argmax())
    chunk = chunks.around(cell)
    expected = expected_text(chunk.admissible, cell - chunk.cells.start)
    return wrong_element("grad_input", wrong, outputs, expected, context)


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
