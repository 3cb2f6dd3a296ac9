"""From a way to draw and a seed to a list of cases.

What is drawn is a function of `Draws`, which answers each of its questions with one of so many. Cases are drawn by a
seed, without knowing verdicts, so that every case of a block is judged whatever the earlier ones did, and without
Hypothesis, whose bookkeeping costs twenty times as much as the drawing: it is asked to draw the same only when a case
failed and a smaller one is sought (`poolproof.suites.cases.searching`).
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Drawn = TypeVar("Drawn")


def derive_seed(*parts: object) -> int:
    """A 64-bit seed that depends on the text of ``parts`` alone."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:8], "big")


class Draws:
    """What cases are drawn by."""

    def __init__(self) -> None:
        self._dealt: defaultdict[str, Counter[Hashable]] = defaultdict(Counter)

    def __call__(self, count: int) -> int:
        """One of 0 .. count - 1; the lower the simpler."""
        raise NotImplementedError

    def _one_of(self, numbers: Sequence[int], count: int) -> int:
        """One of some ``numbers`` of 0 .. count - 1, by lot; another, too, where a simpler case is sought."""
        raise NotImplementedError

    def deal(self, deck: str, options: Sequence[T]) -> T:
        """One of ``options``, of those that the deck gave least often in this list of cases; the first is the simplest.

        What is merely drawn from many needs hundreds of cases until each of them has come. An option that stands twice
        comes twice as often.
        """
        given, weights = self._dealt[deck], Counter(options)
        shares = [given[option] / weights[option] for option in options]
        least = min(shares)
        hand = [number for number, share in enumerate(shares) if share == least]
        option = options[self._one_of(hand, len(options))]
        given[option] += 1
        return option


Make = Callable[[Draws], Drawn]
"""How something is drawn: the same of the same answers."""


class _Lots(Draws):
    """Draws uniformly by a seed, once ``by_lot``; until then the simplest of everything."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.by_lot = False

    def __call__(self, count: int) -> int:
        return self._random.getrandbits(64) * count >> 64 if self.by_lot else 0

    def _one_of(self, numbers: Sequence[int], count: int) -> int:  # noqa: ARG002
        return self._random.choice(numbers) if self.by_lot else 0


def generate(make: Make[Drawn], count: int, seed: int) -> list[Drawn]:
    """``count`` cases, or whatever is drawn, that depend on ``make`` and the seed alone; the first is the simplest."""
    lots = _Lots(seed)
    drawn = []
    for number in range(count):
        lots.by_lot = number > 0
        drawn.append(make(lots))
    return drawn
