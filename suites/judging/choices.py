"""Which of several tied maxima a backward took that takes no indices and leaves open which.

It is asked with gradients from whose sums the windows can be read: powers of two, so that those of windows which share
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
from poolproof.suites.cases.operands import Contents

Ask = Callable[[Contents], Float64 | None]
"""What came out as grad_input for some contents, of any shape; None where nothing did."""


def chosen_indices(content: Contents, rule: ForwardRule, ask: Ask) -> Int64:
    """The indices, of shape (planes, *windows), by which ``ask`` sends gradients, where they are legal by the rule.

    The same choice is taken to be made in every call.
    """
    case = content.case
    planes = content.values.reshape(case.planes, *case.spatial_shape)
    maxima, own = forward_maximum(planes, case.axes, rule)
    read = _read(content, ask).reshape(own.shape)
    flags = judge_forward(planes, case.axes, maxima, np.where(read < 0, own, read), rule).reshape(own.shape)
    return np.where((read < 0) | (flags & WRONG_INDEX != 0), own, read)


def _read(content: Contents, ask: Ask) -> Int64:
    """The cell that each window's gradient came to as a whole, and no other, of shape (planes, windows); else -1."""
    landing, case = content.landing, content.case
    found = np.full((case.planes, case.plane_windows), -1, np.int64)
    residue, digits = landing.residue(), FORMATS[case.dtype].precision
    cells, valid = window_cells(case.axes)
    for lowest in range(0, landing.residues, digits):
        places = residue - lowest
        told = np.flatnonzero((places >= 0) & (places < digits))
        sums = ask(_coded(content, places, told))
        if sums is None:
            return found
        for plane, row in enumerate(sums.reshape(case.planes, case.plane_size)):
            found[plane, told] = _only_cell(row, cells[told], valid[told], places[told])
    return found


def _coded(content: Contents, places: Int64, told: Int64) -> Contents:
    """Gradients 2**place for some windows of every plane, and 0 for the others."""
    assert content.gradient is not None
    codes = np.zeros(content.case.plane_windows)
    codes[told] = 2.0 ** places[told]
    coded = np.broadcast_to(codes, (content.case.planes, len(codes))).reshape(content.gradient.shape)
    return replace(content, gradient=coded.astype(content.gradient.dtype))


def _only_cell(sums: Float64, cells: Int64, valid: NDArray[np.bool_], places: Int64) -> Int64:
    """Of each window the one of its ``valid`` cells whose sum has its digit; -1 where none has, or several have."""
    whole = np.isfinite(sums) & (sums >= 0) & (sums == np.floor(sums)) & (sums < 2.0**53)
    digits = np.where(whole, sums, 0.0).astype(np.int64)[cells] >> places[:, np.newaxis]
    has = (digits & 1 == 1) & valid
    return np.where(has.sum(axis=1) == 1, cells[np.arange(len(cells)), has.argmax(axis=1)], -1)
