"""Two ways to draw one definition: by the seed of a plan, or as a strategy of Hypothesis.

A definition is a function of `Draws`, which picks one of so many each time. By a seed it gives the same cases in any
process and with any version of Hypothesis, so that another party can derive a plan again; and all of them, whatever the
verdicts. As a strategy it is searched, made smaller and remembered by Hypothesis.

A search steers each draw: shapes, windows, layouts, recipes, and the gradients of
`literal_gradients`. Data that a recipe makes of the seed of a case is a hash: no number near it gives data near it, so
the seed itself is no hill that could be climbed.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, update_wrapper
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from hypothesis import strategies as st

P = ParamSpec("P")
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
        least = min(shares)
        rarest = [option for option, share in zip(options, shares, strict=True) if share == least]
        option = self._pick(rarest) if self.is_random else options[0]
        counts[option] += 1
        return option

    def _pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)


Make = Callable[[Draws], T]
"""How something is drawn: the same of the same choices."""


class composite(Generic[P, T]):  # noqa: N801, it is used as that of Hypothesis is
    """Make a strategy of a function with `Draws` as its first parameter.

    ::

        @composite
        def lengths(draw: Draws, most: int) -> list[int]:
            return [draw.between(1, most) for _ in range(2)]

        lengths(5)  # a strategy of Hypothesis
        generate(lengths.make(5), 10, seed=0)  # ten draws of a plan
        lengths.define(draw, 5)  # part of a larger definition
    """

    def __init__(self, define: Callable[Concatenate[Draws, P], T]) -> None:
        self.define = define
        update_wrapper(self, define)

    def make(self, *args: P.args, **kwargs: P.kwargs) -> Make[T]:
        return lambda draw: self.define(draw, *args, **kwargs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> st.SearchStrategy[T]:
        return strategy(self.make(*args, **kwargs))


def strategy(make: Make[T]) -> st.SearchStrategy[T]:
    """Return a strategy of Hypothesis for the same draws."""
    from hypothesis import strategies as st  # takes 0.3 s, which most commands do not need

    return st.composite(lambda draw: make(_SearchedDraws(draw)))()


class _SearchedDraws(Draws):
    """The choices that Hypothesis makes, for each case without regard to those before it."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__()
        self._draw, self.is_random = draw, True

    def __call__(self, count: int) -> int:
        return self._draw(_below(count))

    def chance(self, probability: float) -> bool:
        return self(_CHANCES) >= _CHANCES * (1 - probability)

    def _pick(self, options: Sequence[T]) -> T:
        return self.choose(options)


_CHANCES = 1024
"""Parts of a probability that Hypothesis draws one of; the first stand for no."""


@lru_cache(maxsize=1024)
def _below(count: int) -> st.SearchStrategy[int]:
    """Return one strategy for one range: to make it anew costs as much as to draw from it."""
    from hypothesis import strategies as st

    return st.integers(0, count - 1)


def generate(make: Make[T], count: int, seed: int) -> list[T]:
    """Draw ``count`` cases, or anything else, that depend on ``make`` and the seed alone; the first is the simplest."""
    draws = Draws(seed)
    drawn = []
    for number in range(count):
        draws.is_random = number > 0
        drawn.append(make(draws))
    return drawn
