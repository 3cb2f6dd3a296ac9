"""Runs of a case besides its first, each judged by what the case owes: no other run says what is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolproof.references.kernels.forward import POINTS_ELSEWHERE, WRONG_INDEX, WRONG_MAXIMUM
from poolproof.references.summary import summarise
from poolproof.suites.cases.operands import Contents
from poolproof.suites.judging.comparing import other_shape, wrong_element, wrong_window
from poolproof.suites.judging.findings import Mismatch, first_element, format_value, owed_text
from poolproof.suites.judging.parts import REJECTED, Parts
from poolproof.suites.judging.trial import Run, Trial


def wrong_by_itself(trial: Trial, run: Run | None, how: str) -> Mismatch | None:
    """What is wrong with a run that was made ``how``, whatever the first gave; None of one that could not be made."""
    if run is None:
        return None
    other = other_shape(run)
    if other:
        return replace(other, message=f"{how}: {other.message}")
    return wrong_sums(trial, run, trial.content, how) if trial.case.api.is_backward else wrong_maxima(trial, run, how)


def wrong_sums(trial: Trial, run: Run, content: Contents, how: str) -> Mismatch | None:
    """The first cell of grad_input that a backward, made ``how`` of ``content``, fills with what cannot be."""
    outputs = run.output("grad_input")
    if not summarise(content.slabs(outputs), trial.case.plane_size, trial.fmt, trial.model).rejected:
        return None
    parts = Parts(content, outputs, trial.model)
    wrong = (parts.flags & REJECTED != 0).reshape(outputs.shape)
    cell = int(wrong.argmax())
    part = parts.around(cell)
    owed = owed_text(part.admissible, cell - part.cells.start)
    return wrong_element("grad_input", wrong, outputs, owed, how)


def wrong_maxima(trial: Trial, run: Run, how: str) -> Mismatch | None:
    """The first window whose maximum or index a forward, made ``how``, gets wrong."""
    out, indices = run.output("out"), trial.indices_of(run)
    flags = trial.misses_of(out, indices).reshape(trial.case.pooled_shape)
    if not np.any(flags):
        return None
    window = first_element(flags != 0)
    value, index = trial.maximum_of(window)
    if flags[window] & WRONG_MAXIMUM:
        return wrong_window(trial, "out", flags & WRONG_MAXIMUM != 0, out, format_value(value), how)
    return wrong_window(trial, "indices", flags & (WRONG_INDEX | POINTS_ELSEWHERE) != 0, indices, str(index), how)
