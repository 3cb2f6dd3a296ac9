"""So many bad inputs: one for every option, then of every kind in turn."""

from __future__ import annotations

from itertools import chain, zip_longest
from random import Random

from bad_inputs import Given, folders, libraries, lines, options, plugins, surroundings, waivers

_LISTED = (options, lines, waivers, plugins, libraries, folders, surroundings)
"""Modules that spell inputs out, each of a kind."""


def chosen(number: int, seed: int = 0) -> list[Given]:
    """Inputs for a number and a seed, no two of one name, the first about each option in front."""
    random = Random(seed)
    kinds = [list(module.listed()) for module in _LISTED]
    for kind in kinds:
        random.shuffle(kind)
    inputs = [given for given in chain.from_iterable(zip_longest(*kinds)) if given]
    first = {given.about: given for given in reversed(inputs) if given.about}
    names = {given.name: given for given in [*first.values(), *inputs]}
    return list(names.values())[:number]
