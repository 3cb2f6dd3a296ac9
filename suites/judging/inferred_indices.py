"""Indices inferred from outputs, of a backward that takes none and leaves open which of tied maxima it chooses.

It is run on gradients from whose sums the windows can be read: powers of two, so that those of windows which share
a cell differ. What is read there is held against the rule; a window of which nothing legal can be read, for it came
twice, in parts or elsewhere, keeps the rule's own index, so that the gradients of the case show what became of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import FORMATS, Float64
from poolproof.references.forward import forward_maximum, judge_forward, window_cells
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.geometry import Int64
from poolproof.references.kernels.forward import WRONG_INDEX
from poolproof.suites.cases.operands import CaseOperands

Scatter = Callable[[CaseOperands], Float64 | None]
"""Returns what comes out as grad_input for some operands, of any shape; None where nothing did."""


def inferred_indices(operands: CaseOperands, rule: ForwardRule, scatter: Scatter) -> Int64:
    """Infer the indices, of shape (planes, *windows), by which ``scatter`` sends gradients.

    Where they are not legal by the rule, its own stand. ``scatter`` is taken to choose alike in every call.
    """
    case = operands.case
    maxima, own = forward_maximum(operands.planes, case.axes, rule)
    read = _read(operands, scatter).reshape(own.shape)
    flags = judge_forward(operands.planes, case.axes, maxima, np.where(read < 0, own, read), rule).reshape(own.shape)
    return np.where((read < 0) | (flags & WRONG_INDEX != 0), own, read)


def _read(operands: CaseOperands, scatter: Scatter) -> Int64:
    """Find the cell that each window's gradient came to as a whole, -1 where there is none: (planes, windows)."""
    landing, case = operands.landing, operands.case
    found = np.full((case.planes, case.plane_windows), -1, np.int64)
    residue, digits = landing.residue(), FORMATS[case.dtype].precision
    cells, valid = window_cells(case.axes)
    for lowest in range(0, landing.residues, digits):
        places = residue - lowest
        group = np.flatnonzero((places >= 0) & (places < digits))
        sums = scatter(_coded(operands, places, group))
        if sums is None:
            return found
        for plane, row in enumerate(sums.reshape(case.planes, case.plane_size)):
            found[plane, group] = _only_cell(row, cells[group], valid[group], places[group])
    return found


def _coded(operands: CaseOperands, places: Int64, group: Int64) -> CaseOperands:
    """Make gradients 2**place for the windows of a group in every plane, and 0 for the others."""
    codes = np.zeros(operands.case.plane_windows)
    codes[group] = 2.0 ** places[group]
    coded = np.broadcast_to(codes, (operands.case.planes, len(codes))).reshape(operands.gradient.shape)
    return replace(operands, gradient=coded.astype(operands.gradient.dtype))


def _only_cell(sums: Float64, cells: Int64, valid: NDArray[np.bool_], places: Int64) -> Int64:
    """Find the one of each window's ``valid`` cells whose sum has its digit; -1 where none has, or several have."""
    whole = np.isfinite(sums) & (sums >= 0) & (sums == np.floor(sums)) & (sums < 2.0**53)
    digits = np.where(whole, sums, 0.0).astype(np.int64)[cells] >> places[:, np.newaxis]
    has = (digits & 1 == 1) & valid
    return np.where(has.sum(axis=1) == 1, cells[np.arange(len(cells)), has.argmax(axis=1)], -1)
