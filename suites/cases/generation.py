"""Generation of cases from a seed.

What is drawn is a function of `Draws`, which picks one of so many each time. Cases are drawn without knowing verdicts,
so that every case of a block is judged whatever the earlier ones did, and without Hypothesis, which draws them again
only to make a failing case smaller (`poolproof.suites.cases.searching`).
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
    """Hash the text of ``parts`` to a seed of 64 bits."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:8], "big")


class Draws:
    """The choices that a case is drawn by."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[Hashable]] = defaultdict(Counter)

    def __call__(self, count: int) -> int:
        """Draw one of 0 .. count - 1; the lower the simpler."""
        raise NotImplementedError

    def _pick(self, numbers: Sequence[int], count: int) -> int:
        """Draw one of ``numbers``, each below ``count``; where a smaller case is sought, any below ``count``."""
        raise NotImplementedError

    def balanced_choice(self, group: str, options: Sequence[T]) -> T:
        """Choose among the ``options`` that the group had least often so far; the first is the simplest.

        Uniform draws from many options need hundreds of cases until each of them has come. An option that stands twice
        comes twice as often.
        """
        counts, weights = self._counts[group], Counter(options)
        shares = [counts[option] / weights[option] for option in options]
        rarest = min(shares)
        candidates = [number for number, share in enumerate(shares) if share == rarest]
        option = options[self._pick(candidates, len(options))]
        counts[option] += 1
        return option


Make = Callable[[Draws], Drawn]
"""How something is drawn: the same of the same answers."""


class _SeededDraws(Draws):
    """Uniform draws by a seed, once ``is_random``; until then the simplest of everything."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = random.Random(seed)
        self.is_random = False

    def __call__(self, count: int) -> int:
        return self._rng.getrandbits(64) * count >> 64 if self.is_random else 0

    def _pick(self, numbers: Sequence[int], count: int) -> int:  # noqa: ARG002
        return self._rng.choice(numbers) if self.is_random else 0


def generate(make: Make[Drawn], count: int, seed: int) -> list[Drawn]:
    """Draw ``count`` cases, or anything else, that depend on ``make`` and the seed alone; the first is the simplest."""
    draws = _SeededDraws(seed)
    drawn = []
    for number in range(count):
        draws.is_random = number > 0
        drawn.append(make(draws))
    return drawn
