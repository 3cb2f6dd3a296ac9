"""Generation of cases from a seed.

What is drawn is a function of `Draws`, which picks one of so many each time. Cases are drawn without knowing verdicts,
so that every case of a block is judged whatever the earlier ones did.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")
Option = TypeVar("Option", bound=Hashable)


def derive_seed(*parts: object) -> int:
    """Hash the text of ``parts`` to a seed of 64 bits."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:8], "big")


class Draws:
    """The choices that a case is drawn by: uniform by a seed, or while not ``is_random`` the simplest of everything."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._counts: defaultdict[str, Counter[Hashable]] = defaultdict(Counter)
        self.is_random = False

    def __call__(self, count: int) -> int:
        """Draw one of 0 .. count - 1; the lower the simpler."""
        return self._rng.getrandbits(64) * count >> 64 if self.is_random else 0

    def between(self, low: int, high: int) -> int:
        return low + self(high - low + 1)

    def choose(self, options: Sequence[T]) -> T:
        """Draw one of ``options``, of which the first is the simplest."""
        return options[self(len(options))]

    def flip(self) -> bool:
        return bool(self(2))

    def chance(self, probability: float) -> bool:
        return self.is_random and self._rng.random() < probability

    def balanced_choice(self, group: str, options: Sequence[Option]) -> Option:
        """Choose among the ``options`` that the group had least often so far; the first is the simplest.

        Uniform draws from many options need hundreds of cases until each of them has come. An option that stands twice
        comes twice as often.
        """
        counts, weights = self._counts[group], Counter(options)
        shares = [counts[option] / weights[option] for option in options]
        rarest = [option for option, share in zip(options, shares, strict=True) if share == min(shares)]
        option = self._pick(rarest) if self.is_random else options[0]
        counts[option] += 1
        return option

    def _pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)


Make = Callable[[Draws], T]
"""How something is drawn: the same of the same answers."""


def generate(make: Make[T], count: int, seed: int) -> list[T]:
    """Draw ``count`` cases, or anything else, that depend on ``make`` and the seed alone; the first is the simplest."""
    draws = Draws(seed)
    drawn = []
    for number in range(count):
        draws.is_random = number > 0
        drawn.append(make(draws))
    return drawn
