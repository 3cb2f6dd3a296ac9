"""The decoder of coded gradients: from a wrong output to the windows that went astray.

Coded recipes (`colour_ids`, `binary_weights`, `base_four_weights`) give windows that can meet in a cell gradients
that tell them apart in any sum. What is missing from one cell and too much in another is one gradient gone to the
wrong place. The decoder knows the gradients and where they belong, and nothing of how they were made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CaseOperands

FaultKind = Literal["lost", "duplicated", "misrouted", "copied", "unreadable"]

MAX_CELLS = 4096
"""More wrong cells than this are not a few windows astray, and are not decoded."""


@dataclass(frozen=True)
class Fault:
    """One gradient that did not arrive where and as often as it should.

    kind
        ``lost``: it did not arrive. ``duplicated``: it arrived ``times`` more than once. ``misrouted``: it arrived in
        ``cell`` instead of ``home``. ``copied``: it arrived in ``home`` and in ``cell`` as well. ``unreadable``:
        ``cell`` holds no sum of the code's gradients.
    cell, home
        Flat cells of grad_input: where it shows and where it belongs.
    window
        Flat number of the gradient in grad_output; None where several gradients of that value could be meant.
    """

    kind: FaultKind
    cell: int
    window: int | None = None
    home: int | None = None
    times: int = 1

    def shows_in(self, cell: int) -> bool:
        """Tell whether ``cell`` has the gradient that does not belong there, or lacks it."""
        return cell == self.cell or (self.kind == "misrouted" and cell == self.home)

    def to_record(self, case: Case) -> dict[str, Any]:
        """Write coordinates instead of flat numbers; what is not known is left out."""
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


def decode(operands: CaseOperands, outputs: NDArray) -> list[Fault]:
    """Find the faults that explain ``outputs``, what came out as grad_input.

    Empty where the gradients are no code, or where they are not told apart in some cell after all, as when one element
    stands for many (an expanded tensor) or indices lie outside their windows.
    """
    recipe, senders = operands.case.gradient, _Senders(operands)
    if recipe not in _READERS:
        return []
    wrong = _wrong_cells(recipe, senders, outputs)
    faults, missing, surplus = _read(_READERS[recipe], wrong, senders)
    return sorted([*faults, *_matched(missing, surplus, senders)], key=lambda fault: (fault.cell, fault.window or 0))


def _wrong_cells(recipe: str, senders: _Senders, outputs: NDArray) -> dict[int, float]:
    """Map each wrong cell to what came out there, in units of the code; none where that cannot be decoded."""
    found: dict[int, float] = {}
    for sent, planes in senders.all(outputs):
        if not _tells_apart(recipe, sent.cells, sent.gradients):
            return {}
        values = senders.in_units(planes)
        wrong = np.flatnonzero(values != np.bincount(sent.cells - sent.first_cell, sent.gradients, len(values)))
        if len(found) + len(wrong) > MAX_CELLS:
            return {}
        found.update(zip((sent.first_cell + wrong).tolist(), values[wrong].tolist(), strict=True))
    return found


def _tells_apart(recipe: str, cells: Int64, weights: Float64) -> bool:
    """Tell whether no two gradients of a cell are equal; of colours there is only one in a cell."""
    if recipe == "colour_ids":
        return len(np.unique(cells)) == len(cells)
    order = np.lexsort((weights, cells))
    return not np.any((np.diff(cells[order]) == 0) & (np.diff(weights[order]) == 0.0))


@dataclass(frozen=True, eq=False)
class _Sent:
    """The gradients of some planes that are not zero, in units of the code: their cells, values and windows, flat."""

    first_cell: int
    cells: Int64
    gradients: Float64
    windows: Int64

    def into(self, cell: int) -> Int64:
        """Find those that belong into a cell."""
        return _equal_to(cell, self.cells, self._by_cell)

    def of_value(self, value: float) -> Int64:
        return _equal_to(value, self.gradients, self._by_value)

    @cached_property
    def _by_cell(self) -> Int64:
        return np.argsort(self.cells, kind="stable")

    @cached_property
    def _by_value(self) -> Int64:
        return np.argsort(self.gradients, kind="stable")


def _equal_to(value: float, values: NDArray, order: Int64) -> Int64:
    """Find those of the ``values``, which that order sorts, that are that value, in their order."""
    first, last = (np.searchsorted(values, value, side, sorter=order) for side in ("left", "right"))
    return order[first:last]


_CHUNK_ELEMENTS = 1 << 16
"""Cells, or windows, of the planes that are looked at together, where these are more than one."""


class _Senders:
    """Which gradients belong into a cell, and which carry a value; in the memory of some planes."""

    def __init__(self, operands: CaseOperands) -> None:
        case = operands.case
        self._operands = operands
        self.plane_size = case.plane_size
        self._step = max(1, _CHUNK_ELEMENTS // max(case.plane_size, case.plane_windows, 1))
        self._last: tuple[int, _Sent] | None = None

    def all(self, outputs: NDArray) -> Iterator[tuple[_Sent, NDArray]]:
        """Yield the gradients, some planes at a time, and what came out there."""
        planes = outputs.reshape(self._operands.case.planes, self.plane_size)
        for first in range(0, len(planes), self._step):
            yield self._around(first), planes[first : first + self._step]

    def in_units(self, numbers: NDArray) -> Float64:
        """Convert gradients, or sums of them, to units of the code, flat."""
        return np.ldexp(numbers.ravel().astype(np.float64), -self._operands.case.scale)

    def of(self, cell: int) -> dict[float, int]:
        """Map the gradients that belong into ``cell`` to their windows."""
        sent = self._around(self.plane(cell))
        chosen = sent.into(cell)
        return dict(zip(sent.gradients[chosen].tolist(), sent.windows[chosen].tolist(), strict=True))

    def plane(self, cell: int) -> int:
        return cell // self.plane_size

    def carrying(self, cell: int, value: float) -> list[int]:
        """List the windows of the cell's plane whose gradient is ``value``."""
        sent = self._around(self.plane(cell))
        windows = sent.windows[sent.of_value(value)]
        found: list[int] = windows[windows // self._operands.case.plane_windows == self.plane(cell)].tolist()
        return found

    def home(self, window: int) -> int:
        """Find the cell into which a window's gradient belongs."""
        assert self._operands.indices is not None
        plane = window // self._operands.case.plane_windows
        return plane * self.plane_size + int(self._operands.indices.flat[window])

    def _around(self, plane: int) -> _Sent:
        """Return the gradients of some planes with this one; the last ones are cached."""
        first = plane // self._step * self._step
        if self._last is None or self._last[0] != first:
            self._last = None
            self._last = first, self._sent(slice(first, first + self._step))
        return self._last[1]

    def _sent(self, planes: slice) -> _Sent:
        case, operands = self._operands.case, self._operands
        assert operands.gradient is not None
        assert operands.indices is not None
        shape = case.planes, case.plane_windows
        gradients = self.in_units(operands.gradient.reshape(shape)[planes])
        sent = np.flatnonzero(gradients)
        windows = planes.start * case.plane_windows + sent
        cells = windows // case.plane_windows * case.plane_size + operands.indices.reshape(-1)[windows]
        return _Sent(planes.start * case.plane_size, cells, gradients[sent], windows)


_Missing = dict[float, list[tuple[int, int]]]
"""Gradient -> (window, cell) of those that are missing."""

_Surplus = list[tuple[int, float, int]]
"""(cell, gradient, how many too many)."""

_Change = dict[float, int]
"""Gradient -> how many more (or fewer) of it are in a cell than belong there."""


class _WrongCell:
    """A cell's ``value``, the gradients ``expected`` in it (gradient -> window), and what others could have come."""

    def __init__(self, cell: int, value: float, senders: _Senders, missing: _Missing) -> None:
        self.cell, self.value, self.expected = cell, value, senders.of(cell)
        self._senders, self._missing = senders, missing

    @property
    def holds_a_count(self) -> bool:
        return bool(np.isfinite(self.value)) and self.value >= 0.0 and self.value == np.floor(self.value)

    def is_known(self, gradient: float) -> bool:
        """Tell whether the cell's plane has such a gradient."""
        return bool(self._senders.carrying(self.cell, gradient))

    def is_missing(self, gradient: float) -> bool:
        """Tell whether such a gradient is missing elsewhere, as far as that is known yet."""
        return bool(self._missing.get(gradient))


_Reader = Callable[[_WrongCell], _Change | None]
"""How a cell's value reads; None if it does not."""


def _digits(wrong: _WrongCell, base: int) -> _Change | None:
    if not wrong.holds_a_count:
        return None
    change: _Change = {}
    rest, weight = int(wrong.value), 1
    while rest or weight <= max(wrong.expected, default=0.0):
        rest, digit = divmod(rest, base)
        if surplus := digit - (weight in wrong.expected):
            change[float(weight)] = surplus
        weight *= base
    return change


def _lost_digits(wrong: _WrongCell) -> _Change | None:
    """Read in binary digits what is lost; what is too much carries into the next digit and cannot be read."""
    change = _digits(wrong, 2)
    return None if change is None or max(change.values(), default=0) > 0 else change


def _colour(wrong: _WrongCell) -> _Change | None:
    """Read a cell into which one gradient at most belongs: it holds a multiple of it, another, or the sum of both."""
    if not wrong.holds_a_count:
        return None
    value, (own,) = wrong.value, wrong.expected or (0.0,)
    if own and value % own == 0.0 and value / own <= _MAX_TIMES:
        return {own: int(value / own) - 1}
    instead = {value: 1, own: -1} if own else {value: 1}
    for could_come in (wrong.is_missing, wrong.is_known):
        if could_come(value - own):
            return {value - own: 1}
        if could_come(value):
            return instead
    return None


_MAX_TIMES = 3
"""A colour up to so many times its own is taken for itself, repeated."""

_READERS: dict[str, _Reader] = {
    "colour_ids": _colour,
    "binary_weights": _lost_digits,
    "base_four_weights": partial(_digits, base=4),
}


def _read(reader: _Reader, wrong: dict[int, float], senders: _Senders) -> tuple[list[Fault], _Missing, _Surplus]:
    """Read every wrong cell's change; empty cells first, because what they miss helps to read the others."""
    faults, surplus = [], []
    missing: _Missing = defaultdict(list)
    for cell, value in sorted(wrong.items(), key=lambda item: item[1] != 0.0):
        wrong_cell = _WrongCell(cell, value, senders, missing)
        change = reader(wrong_cell)
        if change is None:
            faults.append(Fault("unreadable", cell))
            continue
        for gradient, times in change.items():
            if times > 0:
                surplus.append((cell, gradient, times))
            else:
                missing[gradient].append((wrong_cell.expected[gradient], cell))
    return faults, missing, surplus


def _matched(missing: _Missing, surplus: _Surplus, senders: _Senders) -> list[Fault]:
    """Pair what is too much with the nearest equal gradient that is missing; the rest was lost, or added again."""
    faults = []
    left = {gradient: np.array(places, np.int64).reshape(-1, 2) for gradient, places in missing.items()}
    for cell, gradient, times in surplus:
        places = left.get(gradient, _NOWHERE)
        nearest = _nearest(places[:, 1], cell, senders)[:times]
        faults += [Fault("misrouted", cell, window, home) for window, home in places[nearest].tolist()]
        left[gradient] = np.delete(places, nearest, axis=0)
        if more := times - len(nearest):
            faults.append(_extra(cell, gradient, more, senders))
    faults += [Fault("lost", cell, window, cell) for places in left.values() for window, cell in places.tolist()]
    return faults


_NOWHERE = np.empty((0, 2), np.int64)


def _nearest(homes: Int64, cell: int, senders: _Senders) -> Int64:
    """Order places in a list of cells: those of the plane of ``cell`` first, then the nearer; ties in order."""
    in_other_plane = homes // senders.plane_size != senders.plane(cell)
    return np.lexsort((np.abs(homes - cell), in_other_plane))


def _extra(cell: int, weight: float, times: int, senders: _Senders) -> Fault:
    own = senders.of(cell).get(weight)
    if own is not None:
        return Fault("duplicated", cell, own, cell, times)
    windows = senders.carrying(cell, weight)
    if not windows:
        return Fault("unreadable", cell)
    if len(windows) > 1:
        return Fault("copied", cell, times=times)
    return Fault("copied", cell, windows[0], senders.home(windows[0]), times)


def _coordinates(number: int, shape: tuple[int, ...]) -> list[int]:
    return list(map(int, np.unravel_index(number, shape)))
