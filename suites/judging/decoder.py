"""The decoder of coded gradients: from a wrong output to the windows that were sent elsewhere.

Coded recipes (`colour_ids`, `binary_weights`, `base_four_weights`) give different gradients to windows that can meet in
a cell. Then any sum shows its terms. A gradient that one cell lacks and another has too often was misrouted. The
decoder knows the gradients and where they belong, but not how they were made.

It also infers the indices of a backward that takes none and may choose any of tied maxima. The inferred index must obey
the rule. If a window's gradient came twice, in parts or elsewhere, the rule's own index is used, so that the case's
gradients show the fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import FORMATS, Float64
from poolproof.references.forward import forward_maximum, judge_forward, window_cells
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.geometry import Int64
from poolproof.references.kernels.forward import WRONG_INDEX
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CaseOperands

FaultKind = Literal["lost", "duplicated", "misrouted", "copied", "unreadable"]

MAX_CELLS = 4096
"""Most wrong cells to decode: more are not a few misrouted windows."""


@dataclass(frozen=True)
class Fault:
    """A gradient that did not arrive where, or as often as, it should.

    Attributes:
        kind: ``lost``: it did not arrive. ``duplicated``: it arrived ``times`` more than once. ``misrouted``: it
            arrived in ``cell`` instead of ``home``. ``copied``: it arrived in ``home`` and in ``cell``. ``unreadable``:
            ``cell`` holds no sum of the code's gradients.
        cell: Flat cell of grad_input that shows the fault.
        window: Flat number of the gradient in grad_output; None if several have its value.
        home: Flat cell of grad_input where it belongs.
    """

    kind: FaultKind
    cell: int
    window: int | None = None
    home: int | None = None
    times: int = 1

    def shows_in(self, cell: int) -> bool:
        """Tell whether ``cell`` has a gradient that does not belong there, or lacks one."""
        return cell == self.cell or (self.kind == "misrouted" and cell == self.home)

    def to_record(self, case: Case) -> dict[str, Any]:
        """Return a record with coordinates instead of flat numbers, without unknown fields."""
        record: dict[str, Any] = {"kind": self.kind, "cell": _coordinates(self.cell, case.shape)}
        if self.window is not None:
            record["window"] = _coordinates(self.window, case.pooled_shape)
        if self.home is not None:
            record["home"] = _coordinates(self.home, case.shape)
        return record | ({"times": self.times} if self.times > 1 else {})

    def text(self, case: Case) -> str:
        cell = f"grad_input{_coordinates(self.cell, case.shape)}"
        if self.kind == "unreadable":
            return f"{cell} holds no sum of these gradients"
        window = "a gradient" if self.window is None else f"grad_output{_coordinates(self.window, case.pooled_shape)}"
        home = "" if self.home is None else f"grad_input{_coordinates(self.home, case.shape)}"
        return {
            "lost": f"{window} did not arrive in {cell}",
            "duplicated": f"{window} arrived {self.times + 1} times in {cell}",
            "misrouted": f"{window} arrived in {cell} instead of {home}",
            "copied": f"{window} arrived in {cell} as well" if home else f"{window} arrived in {cell} out of place",
        }[self.kind]


_CHUNK_ELEMENTS = 1 << 16
"""Cells, or windows, of a group of planes that is decoded together, if there are several planes."""


def decode(operands: CaseOperands, outputs: NDArray) -> list[Fault]:
    """Return the faults that explain ``outputs``, the resulting grad_input.

    Empty if the gradients are not coded, or if two in a cell are equal. That happens if one element stands for many (an
    expanded tensor), or if indices are outside their windows.
    """
    if operands.case.gradient not in ("colour_ids", "binary_weights", "base_four_weights"):
        return []
    faults, missing, surplus = _read(_wrong_cells(operands, outputs.reshape(-1)), operands)
    return sorted([*faults, *_matched(missing, surplus, operands)], key=lambda fault: (fault.cell, fault.window or 0))


def _wrong_cells(operands: CaseOperands, outputs: NDArray) -> dict[int, float]:
    """Map each wrong cell to its output, in units of the code; empty if it cannot be decoded."""
    wrong_values: dict[int, float] = {}
    case = operands.case
    for chunk in operands.chunk_ranges(_CHUNK_ELEMENTS, 1):
        cells, gradients = operands.gradients_into(chunk)
        cells, sent = cells[gradients != 0], _in_units(gradients[gradients != 0], case)
        if not _tells_apart(case.gradient, cells, sent):
            return {}
        values = _in_units(outputs[chunk].astype(np.float64), case)
        wrong = np.flatnonzero(values != np.bincount(cells, sent, len(values)))
        if len(wrong_values) + len(wrong) > MAX_CELLS:
            return {}
        wrong_values.update(zip((chunk.start + wrong).tolist(), values[wrong].tolist(), strict=True))
    return wrong_values


def _in_units(numbers: Float64, case: Case) -> Float64:
    return np.ldexp(numbers, -case.scale)


def _tells_apart(recipe: str, cells: Int64, weights: Float64) -> bool:
    """Tell whether no two gradients of a cell are equal; for colours, whether no cell has two gradients."""
    if recipe == "colour_ids":
        return len(np.unique(cells)) == len(cells)
    order = np.lexsort((weights, cells))
    return not np.any((np.diff(cells[order]) == 0) & (np.diff(weights[order]) == 0.0))


def _senders(operands: CaseOperands, cell: int) -> dict[float, int]:
    """Map the nonzero gradients that belong to ``cell``, in units of the code, to their windows."""
    windows = operands.senders(cell)
    gradients = _in_units(operands.gradient.reshape(-1)[windows].astype(np.float64), operands.case)
    pairs = zip(gradients.tolist(), windows.tolist(), strict=True)
    return {gradient: window for gradient, window in pairs if gradient}


def _carriers(operands: CaseOperands, cell: int, value: float) -> list[int]:
    """Return the windows of the cell's plane with the gradient ``value``, in units of the code; it is not 0."""
    case = operands.case
    plane = cell // case.plane_size
    gradients = _in_units(operands.gradient.reshape(case.planes, -1)[plane].astype(np.float64), case)
    windows: list[int] = (plane * case.plane_windows + np.flatnonzero(gradients == value)).tolist()
    return windows


_Missing = dict[float, list[tuple[int, int]]]
"""Gradient -> (window, cell) of each missing one."""

_Surplus = list[tuple[int, float, int]]
"""(cell, gradient, count of the surplus)."""

_Change = dict[float, int]
"""Gradient -> surplus (positive) or missing (negative) count of it in a cell."""


def _read(wrong: dict[int, float], operands: CaseOperands) -> tuple[list[Fault], _Missing, _Surplus]:
    """Return the changes of every wrong cell; empty cells first, because what they lack helps to read others."""
    faults, surplus = [], []
    missing: _Missing = defaultdict(list)
    for cell, value in sorted(wrong.items(), key=lambda item: item[1] != 0.0):
        expected, recipe = _senders(operands, cell), operands.case.gradient
        is_count = np.isfinite(value) and value >= 0.0 and value == np.floor(value)
        if not is_count:
            change = None
        elif recipe == "colour_ids":
            change = _colour(value, [*expected], (missing.get, partial(_carriers, operands, cell)))
        else:
            change = _digits(int(value), expected, recipe)
        if change is None:
            faults.append(Fault("unreadable", cell))
            continue
        for gradient, times in change.items():
            if times > 0:
                surplus.append((cell, gradient, times))
            else:
                missing[gradient].append((expected[gradient], cell))
    return faults, missing, surplus


def _digits(rest: int, expected: Mapping[float, int], recipe: str) -> _Change | None:
    """Return the change that a sum's digits show; None if binary digits may have carried."""
    base = 2 if recipe == "binary_weights" else 4
    change: _Change = {}
    weight = 1
    while rest or weight <= max(expected, default=0.0):
        rest, digit = divmod(rest, base)
        if surplus := digit - (weight in expected):
            change[float(weight)] = surplus
        weight *= base
    return None if base == 2 and max(change.values(), default=0) > 0 else change


def _colour(value: float, expected: list[float], sources: Sequence[Callable[[float], object]]) -> _Change | None:
    """Return the change of a cell with at most one gradient: a multiple of it, another one, or the sum of both.

    Another gradient must be in one of the ``sources``, which are tried in order.
    """
    (own,) = expected or (0.0,)
    if own and value % own == 0.0 and value / own <= 3:  # a small multiple of its own gradient can only be repetitions
        return {own: int(value / own) - 1}
    for source in sources:
        if source(value - own):
            return {value - own: 1}
        if source(value):
            return {value: 1, own: -1} if own else {value: 1}
    return None


def _matched(missing: _Missing, surplus: _Surplus, operands: CaseOperands) -> list[Fault]:
    """Pair each surplus gradient with the nearest equal missing one; the rest was lost, or added again."""
    faults = []
    left = {gradient: np.array(places, np.int64).reshape(-1, 2) for gradient, places in missing.items()}
    for cell, gradient, times in surplus:
        places = left.get(gradient, np.empty((0, 2), np.int64))
        homes, size = places[:, 1], operands.case.plane_size
        nearest = np.lexsort((np.abs(homes - cell), homes // size != cell // size))[:times]  # first of the same plane
        faults += [Fault("misrouted", cell, window, home) for window, home in places[nearest].tolist()]
        left[gradient] = np.delete(places, nearest, axis=0)
        if more := times - len(nearest):
            faults.append(_extra(cell, gradient, more, operands))
    faults += [Fault("lost", cell, window, cell) for places in left.values() for window, cell in places.tolist()]
    return faults


def _extra(cell: int, weight: float, times: int, operands: CaseOperands) -> Fault:
    own = _senders(operands, cell).get(weight)
    if own is not None:
        return Fault("duplicated", cell, own, cell, times)
    windows = _carriers(operands, cell, weight)
    if len(windows) == 1:
        index = int(operands.indices.flat[windows[0]])
        return Fault("copied", cell, windows[0], cell - cell % operands.case.plane_size + index, times)
    return Fault("copied", cell, times=times) if windows else Fault("unreadable", cell)


def _coordinates(number: int, shape: tuple[int, ...]) -> list[int]:
    return list(map(int, np.unravel_index(number, shape)))


Scatter = Callable[[CaseOperands], Float64 | None]
"""Returns the grad_input of some operands, in any shape; None if the call gave none."""


def inferred_indices(operands: CaseOperands, rule: ForwardRule, scatter: Scatter) -> Int64:
    """Infer the indices, of shape (planes, *windows), by which ``scatter`` routes gradients.

    An inferred index that is not legal by the rule is replaced by the rule's. ``scatter`` must choose alike in every
    call.
    """
    case = operands.case
    maxima, own = forward_maximum(operands.planes, case.axes, rule)
    read = _read_whole(operands, scatter).reshape(own.shape)
    flags = judge_forward(operands.planes, case.axes, maxima, np.where(read < 0, own, read), rule).reshape(own.shape)
    return np.where((read < 0) | (flags & WRONG_INDEX != 0), own, read)


def _read_whole(operands: CaseOperands, scatter: Scatter) -> Int64:
    """Return the cell that got the whole gradient of each window, or -1: int64 of shape (planes, windows).

    Each call covers a group of windows, in every plane, with the gradients 2**place; other windows have gradient 0.
    """
    landing, case = operands.landing, operands.case
    cells_of = np.full((case.planes, case.plane_windows), -1, np.int64)
    residue, digits = landing.residue(), FORMATS[case.dtype].precision
    cells, valid = window_cells(case.axes)
    for lowest in range(0, landing.residues, digits):
        places = residue - lowest
        group = np.flatnonzero((places >= 0) & (places < digits))
        codes = np.zeros(case.plane_windows)
        codes[group] = 2.0 ** places[group]
        coded = np.broadcast_to(codes, (case.planes, len(codes))).reshape(operands.gradient.shape)
        sums = scatter(replace(operands, gradient=coded.astype(operands.gradient.dtype)))
        if sums is None:
            return cells_of
        for plane, row in enumerate(sums.reshape(case.planes, case.plane_size)):
            cells_of[plane, group] = _only_cell(row, cells[group], valid[group], places[group])
    return cells_of


def _only_cell(sums: Float64, cells: Int64, valid: NDArray[np.bool_], places: Int64) -> Int64:
    """Return the one ``valid`` cell of each window with its digit in the sum; -1 if none or several have it."""
    whole = np.isfinite(sums) & (sums >= 0) & (sums == np.floor(sums)) & (sums < 2.0**53)
    digits = np.where(whole, sums, 0.0).astype(np.int64)[cells] >> places[:, np.newaxis]
    has = (digits & 1 == 1) & valid
    return np.where(has.sum(axis=1) == 1, cells[np.arange(len(cells)), has.argmax(axis=1)], -1)
