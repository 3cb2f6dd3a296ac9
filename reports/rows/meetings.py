"""Meetings of classes: the pairs and triples of classes of factors that calls visit, among the possible ones.

Possible are those that a stored case visits (`poolproof.suites.cases.pairs`). This folder has the classes of the stored
cases, one file per operator; ``python studies/pairs.py`` writes both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.operators import Operator
from poolproof.reports.rows.factors import BY_NAME, FACTORS, Scope, classes_of
from poolproof.reports.rows.features import call_features
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED

Flags = NDArray[np.bool_]
Calls = NDArray[np.integer[Any]]
"""Calls, one per line: for each of `FACTORS` the number of its class, -1 if a call has none."""

TOGETHER = {2: "pairs", 3: "triples"}
"""Number of factors that meet: all of them by two, those that matter by three."""

COLUMNS = {factor.name: column for column, factor in enumerate(FACTORS)}

PLACES = [(factor.name, own) for factor in FACTORS for own in factor.classes]
"""All classes, with their factors. Arrays of flags of meetings have one axis of these per factor."""

_OFFSETS = np.array([0, *accumulate(len(factor.classes) for factor in FACTORS)])[:-1]
_MATTERS = np.array([factor.matters for factor in FACTORS])
_EMPTY = PLACES.index(("batch", "empty"))
_DECISIVE = ("dilation", "a dilation that differs by axis", "tensors tagged NHWC")
"""Factors without which further classes cannot meet; other classes that a backend lacks do not keep others apart."""


def call_of(classes: Mapping[str, str]) -> tuple[int, ...]:
    """Return the numbers of the classes of a call, as in `Calls`."""
    return tuple(f.classes.index(classes[f.name]) if f.name in classes else -1 for f in FACTORS)


def meeting_in(call: Sequence[int] | Calls, size: int) -> tuple[Any, ...]:
    """Return where the classes of a call meet in an array with ``size`` axes of `PLACES`, in every order but one.

    An empty call computes nothing: each class meets only the emptiness, on the first axis.
    """
    numbers = np.asarray(call)
    met = (_OFFSETS + numbers)[(numbers >= 0) & (_MATTERS | (size < max(TOGETHER)))]
    return np.ix_([_EMPTY] if _EMPTY in met else met, *[met] * (size - 1))


def met_in(calls: Iterable[Sequence[int] | Calls], size: int) -> Flags:
    """Flag the classes that meet in calls, each combination in the order of `PLACES`."""
    numbers = np.array([*calls], np.intp).reshape(-1, len(FACTORS))
    numbers = np.where(_MATTERS | (size < max(TOGETHER)), numbers, -1)
    has = np.zeros((len(numbers), len(PLACES)), np.float32)
    lines, columns = np.nonzero(numbers >= 0)
    has[lines, (numbers + _OFFSETS)[lines, columns]] = 1
    flags = np.zeros((len(PLACES),) * size, np.bool_)
    empty, full = (has[(has[:, _EMPTY] > 0) == are_empty] for are_empty in (True, False))
    if size < max(TOGETHER):
        flags[:] = full.T @ full > 0
        flags[_EMPTY] = empty.any(axis=0)
    else:
        for place in np.flatnonzero(full.any(axis=0)):
            own = full[full[:, place] > 0][:, place:]
            flags[place, place:, place:] = own.T @ own > 0
        flags[_EMPTY] = empty.T @ empty > 0
    for axis in range(1, size):  # move the emptiness to its place in the order
        axes: list[Any] = [slice(_EMPTY)] * axis + [slice(_EMPTY + 1, None)] * (size - 1 - axis)
        flags[(*axes[:axis], _EMPTY, *axes[axis:])] |= flags[(_EMPTY, *axes)]
    return flags & _in_order(size)


@cache
def _in_order(size: int) -> Flags:
    """Flag the combinations of different classes in the order of `PLACES`."""
    axes = np.ogrid[(slice(len(PLACES)),) * size]
    return reduce(np.logical_and, (before < after for before, after in pairwise(axes)))


def choose(calls: Mapping[int, Calls], left: Flags) -> list[int]:
    """Return the calls in which classes meet that are still ``left``, and remove those from it."""
    chosen = []
    for number, call in calls.items():
        visited = meeting_in(call, left.ndim)
        if left[visited].any():
            left[visited] = False
            chosen.append(number)
    return chosen


def file_of(operator: Operator) -> Path:
    """Return the file with the classes of an operator's stored cases: of pairs, then of triples."""
    return Path(__file__).parent / "stored_classes" / f"{operator.name}.npz"


@dataclass(frozen=True, eq=False)
class Space:
    """The classes of the stored cases in a scope."""

    scope: Scope

    def _calls(self, size: int) -> Calls:
        """Return the classes in the lists up to that of ``size``, with index dtypes of the scope."""
        with np.load(file_of(self.scope.operator)) as file:
            calls = np.concatenate([file[name] for number, name in TOGETHER.items() if number <= size])
        dtypes, column = BY_NAME["index dtype"].classes, calls[:, COLUMNS["index dtype"]]
        own = [dtypes.index(name) for name in self.scope.index_dtypes]
        column[~np.isin(column, own)] = own[0]
        return calls

    @cache  # noqa: B019 - there is one space for each scope, and few of them
    def stored(self, size: int) -> Mapping[int, Calls]:
        """Return the cases of the scope in the lists up to that of ``size``, by their numbers there."""
        return {number: call for number, call in enumerate(self._calls(size)) if self.has(call)}

    def has(self, call: Sequence[int] | Calls) -> bool:
        return not any(call[column] == number for column, number in self._lacking)

    @cached_property
    def _lacking(self) -> list[tuple[int, int]]:
        return [(COLUMNS[name], BY_NAME[name].classes.index(own)) for name, own in self.scope.lacking]

    @cache  # noqa: B019
    def possible(self, size: int) -> Flags:
        """Flag the classes that can meet, as `met_in` does, of factors with several classes here."""
        calls = self._calls(max(TOGETHER))
        for column, number in self._lacking:
            own = calls[:, column] == number
            if FACTORS[column].name in _DECISIVE:
                calls = calls[~own]
            else:
                calls[own, column] = -1
        calls[:, [len({*column} - {-1}) < 2 for column in calls.T.tolist()]] = -1
        return met_in(calls, size)

    @cache  # noqa: B019
    def visiting(self, size: int) -> Sequence[int]:
        """Return the stored cases in which classes meet first; for triples, that meet in none of the pairs."""
        left, stored = np.ones((len(PLACES),) * size, np.bool_), self.stored(size)
        if size > min(TOGETHER):
            choose({number: stored[number] for number in self.visiting(size - 1)}, left)
        return choose(stored, left)


space_of = cache(Space)


@dataclass(frozen=True, eq=False)
class Meetings:
    """Numbers of visited and of possible combinations of ``size`` classes; ``left`` flags those not visited."""

    size: int
    visited: int
    possible: int
    left: Flags

    def missing(self) -> Iterator[str]:
        """Yield the combinations that no call visits, as text."""
        for places in np.argwhere(self.left):
            yield ", ".join(": ".join(PLACES[place]) for place in places)

    def __str__(self) -> str:
        return share(self.visited, self.possible, self.size)


def share(visited: int, possible: int, size: int) -> str:
    return f"{visited / possible if possible else 1.0:.1%} of {possible:,} {TOGETHER[size]}"


class FactorCoverage:
    """The classes of factors that met in the calls of one scope, by their features; other calls are left out."""

    def __init__(self, scope: Scope) -> None:
        self.space = space_of(scope)
        self._calls: Counter[tuple[int, ...]] = Counter()
        self._failing: Counter[tuple[int, ...]] = Counter()
        self._meetings: dict[int, Meetings] = {}

    def add(self, row: Row) -> None:
        """Count a call, if it has a geometry and the scope has it."""
        features = call_features(row)
        if "plane cells" in features and self.space.has(call := call_of(classes_of(features))):
            self._meetings.clear()
            self._calls[call] += 1
            self._failing[call] += row.get("verdict") in FAILED

    @property
    def calls(self) -> int:
        return self._calls.total()

    def counts(self, down: str, across: str, failing: bool = False) -> NDArray[np.integer[Any]]:
        """Return the numbers of calls, or of ``failing`` ones, by the classes of two factors."""
        counted = np.zeros([len(BY_NAME[name].classes) for name in (down, across)], np.int64)
        for call, number in (self._failing if failing else self._calls).items():
            place = call[COLUMNS[down]], call[COLUMNS[across]]
            if min(place) >= 0:
                counted[place] += number
        return counted

    def meetings(self, size: int) -> Meetings:
        """Return the numbers of combinations of ``size`` factors: 2, or 3 of those that matter."""
        if size not in self._meetings:
            possible = self.space.possible(size)
            visited = possible & met_in(self._calls, size)
            self._meetings[size] = Meetings(size, int(visited.sum()), int(possible.sum()), possible & ~visited)
        return self._meetings[size]
