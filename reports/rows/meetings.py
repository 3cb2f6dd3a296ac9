"""Meetings of classes: which pairs and triples of classes of factors calls visit, of those that can be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.rows.factors import BY_NAME, EMPTY, FACTORS, RULES, Factor, Rule, Scope, classes_of
from poolproof.reports.rows.features import features_of
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import FAILED

Flags = NDArray[np.bool_]

TOGETHER = {2: "pairs", 3: "triples"}
"""How many factors are looked at together: all of them by two, those that matter by three."""


@dataclass(frozen=True, eq=False)
class Space:
    """The factors of a scope, and which of their classes can meet there."""

    scope: Scope

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in RULES if rule.holds(self.scope))

    def excluded(self, classes: Mapping[str, str]) -> str:
        """Return the reason why no call has these classes together; empty where one has."""
        for reason, parts in self._by_part:
            for name, wanted in parts:
                if classes.get(name) not in wanted:
                    break
            else:
                return reason
        return ""

    @cached_property
    def _by_part(self) -> list[tuple[str, list[tuple[str, frozenset[str]]]]]:
        """Return the rules as every call of a run is held to them."""
        return [(rule.reason, [(name, frozenset(own)) for name, own in rule.parts.items()]) for rule in self.rules]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Return the factors that have several classes here."""
        return tuple(factor for factor in FACTORS if self._possible((factor,)).sum() > 1)

    @cache  # noqa: B019 - there is one space for each scope, and few of them
    def combinations(self, size: int) -> list[tuple[tuple[Factor, ...], Flags]]:
        """Return each pair of factors, or each triple of those that matter, with which of their classes can meet."""
        chosen = [factor for factor in self.factors if size < max(TOGETHER) or factor.matters]
        return [(together, self._possible(together)) for together in combinations(chosen, size)]

    @cached_property
    def _by_factors(self) -> Mapping[frozenset[str], list[Rule]]:
        grouped = defaultdict[frozenset[str], list[Rule]](list)
        for rule in self.rules:
            grouped[frozenset(rule.parts)].append(rule)
        return grouped

    def _possible(self, together: Sequence[Factor]) -> Flags:
        possible = np.ones([len(factor.classes) for factor in together], np.bool_)
        for size in range(1, len(together) + 1):
            for part in combinations(range(len(together)), size):
                for rule in self._by_factors.get(frozenset(together[place].name for place in part), ()):
                    chosen: list[Any] = [range(length) for length in possible.shape]
                    for place in part:
                        factor = together[place]
                        chosen[place] = [factor.classes.index(own) for own in rule.parts[factor.name]]
                    possible[np.ix_(*chosen)] = False
        return possible


@dataclass(frozen=True, eq=False)
class Meetings:
    """How many combinations of classes of so many factors calls visit, of those that can be; which they do not."""

    size: int
    visited: int
    possible: int
    found: Sequence[tuple[tuple[Factor, ...], Flags]]

    def missing(self) -> Iterator[str]:
        """Yield the combinations that no call visits, in words."""
        for together, open_ones in self.found:
            for place in np.argwhere(open_ones):
                words = zip(together, place, strict=True)
                yield ", ".join(f"{factor.name}: {factor.classes[number]}" for factor, number in words)

    def __str__(self) -> str:
        share = self.visited / self.possible if self.possible else 1.0
        return f"{share:.1%} of {self.possible:,} {TOGETHER[self.size]}"


space_of = cache(Space)

Places = Mapping[tuple[str, str], int]
"""Of each class of each factor, its number among all."""


def meeting_in(own: Mapping[str, str], places: Places, size: int) -> tuple[Any, ...]:
    """Return where a call's classes meet in an array of ``size`` axes of all places, in every order of factors but one.

    Nothing is computed in an empty call, so there everything meets the emptiness alone, which has the first axis.
    """
    met = [places[each] for each in own.items() if each in places]
    first = [places[EMPTY]] if EMPTY in own.items() else met
    return np.ix_(first, *[met] * (size - 1))


class FactorCoverage:
    """Which classes of factors met in the calls of one scope, by their features; others are left out."""

    def __init__(self, scope: Scope) -> None:
        self.space = space_of(scope)
        self._calls: Counter[tuple[int, ...]] = Counter()
        self._failing: Counter[tuple[int, ...]] = Counter()
        self._meetings: dict[int, Meetings] = {}

    def add(self, row: Row) -> bool:
        """Count a call; false where it has no geometry, or a rule says that there is none such."""
        features = features_of(row)
        if "plane cells" not in features:
            return False
        classes = classes_of(features)
        if self.space.excluded(classes):
            return False
        call = tuple(
            factor.classes.index(classes[factor.name]) if factor.name in classes else -1
            for factor in self.space.factors
        )
        self._calls[call] += 1
        self._failing[call] += row.get("verdict") in FAILED
        self._meetings.clear()
        return True

    @property
    def calls(self) -> int:
        return self._calls.total()

    def counts(self, down: str, across: str, failing: bool = False) -> NDArray[np.integer[Any]]:
        """Count the calls, or those ``failing``, by the classes of two factors."""
        counted = np.zeros([len(BY_NAME[name].classes) for name in (down, across)], np.int64)
        names = [factor.name for factor in self.space.factors]
        if {down, across} <= {*names}:
            for call, number in (self._failing if failing else self._calls).items():
                place = call[names.index(down)], call[names.index(across)]
                if min(place) >= 0:
                    counted[place] += number
        return counted

    def meetings(self, size: int) -> Meetings:
        """Count the combinations of ``size`` factors: 2, or of those that matter 3."""
        if size not in self._meetings:
            self._meetings[size] = self._meet(size)
        return self._meetings[size]

    def _meet(self, size: int) -> Meetings:
        calls = np.array(sorted(self._calls), np.intp).reshape(len(self._calls), len(self.space.factors))
        column = {factor.name: calls[:, number] for number, factor in enumerate(self.space.factors)}
        is_empty = column[EMPTY[0]] == BY_NAME[EMPTY[0]].classes.index(EMPTY[1])
        visited = total = 0
        left = []
        for together, possible in self.space.combinations(size):
            places = np.stack([column[factor.name] for factor in together])
            is_shown = ~is_empty | (BY_NAME[EMPTY[0]] in together)  # nothing is computed in an empty call
            met = np.zeros(possible.shape, np.bool_)
            met[tuple(places[:, is_shown & (places >= 0).all(axis=0)])] = True
            total += int(possible.sum())
            visited += int((met & possible).sum())
            left.append((together, possible & ~met))
        return Meetings(size, visited, total, left)
