"""So many bad inputs: one for every option, then of every kind in turn, those spelled out before drawn ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from bad_inputs import Given, folders, libraries, lines, options, plugins, surroundings, waivers

_LISTED = (options, lines, waivers, plugins, libraries, folders, surroundings)
"""Modules that spell inputs out, each of a kind."""

_DRAWN: tuple[Callable[[Random], Given], ...] = (lines.drawn, waivers.drawn)
"""Grammars that have no end."""

DRAWN_SHARE = 0.15
"""Least share of inputs that are drawn."""


def generated(number: int, seed: int = 0) -> list[Given]:
    """The same inputs for the same number and seed, no two of one name."""
    random = Random(seed)
    spelled = _first_of_each_option(_in_turn(random))
    drawn = _drawn(random)
    most = round(number * (1 - DRAWN_SHARE))
    chosen = {given.name: given for given in spelled[:most]}
    while len(chosen) < number:
        given = next(drawn)
        chosen[given.name] = given
    return list(chosen.values())


def _in_turn(random: Random) -> Iterator[Given]:
    """One of each kind after the other, until none is left."""
    kinds = [list(module.listed()) for module in _LISTED]
    for kind in kinds:
        random.shuffle(kind)
    while any(kinds):
        for kind in filter(None, kinds):
            yield kind.pop()


def _first_of_each_option(inputs: Iterator[Given]) -> list[Given]:
    """The same inputs, with the first about each option in front."""
    first: dict[str, Given] = {}
    rest = []
    for given in inputs:
        if given.about and given.about not in first:
            first[given.about] = given
        else:
            rest.append(given)
    return [*first.values(), *rest]


def _drawn(random: Random) -> Iterator[Given]:
    while True:
        for draw in _DRAWN:
            yield draw(random)
