"""From a wrong output of coded gradients to the windows that went astray.

Coded recipes (`colour_ids`, `binary_weights`, `base_four_weights`) give windows that can meet in a cell gradients
that tell them apart in any sum. What is missing from one cell and too much in another is one gradient gone to the
wrong place. The decoder knows the gradients and where they belong, and nothing of how they were made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.recipes.gradients import Landing

Kind = Literal["lost", "duplicated", "misrouted", "copied", "unreadable"]

MOST_CELLS = 4096
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

    kind: Kind
    cell: int
    window: int | None = None
    home: int | None = None
    times: int = 1

    def shows_in(self, cell: int) -> bool:
        """Whether ``cell`` has the gradient that does not belong there, or lacks it."""
        return cell == self.cell or (self.kind == "misrouted" and cell == self.home)

    def to_record(self, case: Case) -> dict[str, Any]:
        """Coordinates instead of flat numbers; what is not known is left out."""
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


def decode(recipe: str, landing: Landing, gradient: Float64, outputs: Float64) -> list[Fault]:
    """The faults that explain ``outputs`` (cells,), given ``gradient`` (windows,); both flat, in units of the code.

    Empty where the recipe is no code, or where the gradients are not told apart in some cell after all, as when one
    element stands for many (an expanded tensor) or indices lie outside their windows.
    """
    sent = np.flatnonzero(gradient)
    cells, weights = landing.cells[sent], gradient[sent]
    if recipe not in _READERS or not _tells_apart(recipe, cells, weights):
        return []
    owed = np.bincount(cells, weights, landing.size)
    wrong = np.flatnonzero(outputs != owed)
    if len(wrong) > MOST_CELLS:
        return []
    senders = _Senders(landing, sent, gradient)
    faults, missing, surplus = _read(_READERS[recipe], wrong, outputs, senders)
    return sorted([*faults, *_matched(missing, surplus, senders)], key=lambda fault: (fault.cell, fault.window or 0))


def _tells_apart(recipe: str, cells: Int64, weights: Float64) -> bool:
    """Whether no two gradients of a cell are equal; of colours there is only one in a cell."""
    if recipe == "colour_ids":
        return len(np.unique(cells)) == len(cells)
    return np.unique(np.stack([cells, weights]), axis=1).shape[1] == len(cells)


class _Senders:
    """Which gradients belong into a cell, and which carry a value."""

    def __init__(self, landing: Landing, sent: Int64, gradient: Float64) -> None:
        self.landing = landing
        self.gradient = gradient
        self._sent = sent[np.argsort(landing.cells[sent], kind="stable")]
        self._cells = landing.cells[self._sent]
        self.plane_size = landing.size // (int(landing.plane.max(initial=0)) + 1)

    def of(self, cell: int) -> dict[float, int]:
        """Gradient -> window, of those that belong into ``cell``."""
        first, last = np.searchsorted(self._cells, [cell, cell + 1])
        return {float(self.gradient[window]): int(window) for window in self._sent[first:last]}

    def plane(self, cell: int) -> int:
        return cell // self.plane_size

    def carrying(self, cell: int, value: float) -> list[int]:
        """Windows of the cell's plane whose gradient is ``value``."""
        return self._by_value.get((self.plane(cell), value), [])

    @cached_property
    def _by_value(self) -> dict[tuple[int, float], list[int]]:
        """(plane, gradient) -> windows; asked only where there is too much of something."""
        found: dict[tuple[int, float], list[int]] = defaultdict(list)
        sent = np.sort(self._sent)
        carried = zip(self.landing.plane[sent].tolist(), self.gradient[sent].tolist(), sent.tolist(), strict=True)
        for plane, value, window in carried:
            found[plane, value].append(window)
        return found


_Missing = dict[float, list[tuple[int, int]]]
"""Gradient -> (window, cell) of those that are missing."""

_Surplus = list[tuple[int, float, int]]
"""(cell, gradient, how many too many)."""

_Change = dict[float, int]
"""Gradient -> how many more (or fewer) of it are in a cell than belong there."""


class _WrongCell:
    """A cell's ``value``, the gradients it is ``owed`` (gradient -> window), and what others could have come."""

    def __init__(self, cell: int, value: float, senders: _Senders, missing: _Missing) -> None:
        self.cell, self.value, self.owed = cell, value, senders.of(cell)
        self._senders, self._missing = senders, missing

    @property
    def holds_a_count(self) -> bool:
        return bool(np.isfinite(self.value)) and self.value >= 0.0 and self.value == np.floor(self.value)

    def is_known(self, gradient: float) -> bool:
        """Whether the cell's plane has such a gradient."""
        return bool(self._senders.carrying(self.cell, gradient))

    def is_missing(self, gradient: float) -> bool:
        """Whether such a gradient is missing elsewhere, as far as that is known yet."""
        return bool(self._missing.get(gradient))


_Reader = Callable[[_WrongCell], _Change | None]
"""How a cell's value reads; None if it does not."""


def _digits(wrong: _WrongCell, base: int) -> _Change | None:
    if not wrong.holds_a_count:
        return None
    change: _Change = {}
    rest, weight = int(wrong.value), 1
    while rest or weight <= max(wrong.owed, default=0.0):
        rest, digit = divmod(rest, base)
        if surplus := digit - (weight in wrong.owed):
            change[float(weight)] = surplus
        weight *= base
    return change


def _lost_digits(wrong: _WrongCell) -> _Change | None:
    """Binary digits tell what is lost; what is too much carries into the next digit and cannot be read."""
    change = _digits(wrong, 2)
    return None if change is None or max(change.values(), default=0) > 0 else change


def _colour(wrong: _WrongCell) -> _Change | None:
    """One gradient at most belongs into a cell; what it holds is a multiple of it, another, or the sum of both."""
    if not wrong.holds_a_count:
        return None
    value, (own,) = wrong.value, wrong.owed or (0.0,)
    if own and value % own == 0.0 and value / own <= _MOST_TIMES:
        return {own: int(value / own) - 1}
    instead = {value: 1, own: -1} if own else {value: 1}
    for could_come in (wrong.is_missing, wrong.is_known):
        if could_come(value - own):
            return {value - own: 1}
        if could_come(value):
            return instead
    return None


_MOST_TIMES = 3
"""A colour up to so many times its own is taken for itself, repeated."""

_READERS: dict[str, _Reader] = {
    "colour_ids": _colour,
    "binary_weights": _lost_digits,
    "base_four_weights": partial(_digits, base=4),
}


def _read(reader: _Reader, wrong: Int64, outputs: Float64, senders: _Senders) -> tuple[list[Fault], _Missing, _Surplus]:
    """Every wrong cell's change; empty cells first, because what they miss helps to read the others."""
    faults, surplus = [], []
    missing: _Missing = defaultdict(list)
    for cell in map(int, wrong[np.argsort(outputs[wrong] != 0.0, kind="stable")]):
        place = _WrongCell(cell, float(outputs[cell]), senders, missing)
        change = reader(place)
        if change is None:
            faults.append(Fault("unreadable", cell))
            continue
        for gradient, times in change.items():
            if times > 0:
                surplus.append((cell, gradient, times))
            else:
                missing[gradient].append((place.owed[gradient], cell))
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
    """Places in a list of cells, those of the plane of ``cell`` before any other, then the nearer; ties in order."""
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
    return Fault("copied", cell, windows[0], int(senders.landing.cells[windows[0]]), times)


def _coordinates(number: int, shape: tuple[int, ...]) -> list[int]:
    return list(map(int, np.unravel_index(number, shape)))
