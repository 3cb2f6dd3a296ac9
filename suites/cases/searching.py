"""The search for a smaller failing case by Hypothesis, which draws what `generate` drew and goes on from there.

Strategies of Hypothesis that draw something else than cases are explored here, too. Hypothesis is used as an engine,
with a provider of our own.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws, Make

Drawn = TypeVar("Drawn")


def examples(strategy: st.SearchStrategy[Drawn], count: int, seed: int) -> list[Drawn]:
    """Draw ``count`` examples of a strategy of Hypothesis, which depend on the strategy and the seed alone."""
    drawn: list[Drawn] = []
    _explore(strategy, count, seed, drawn.append, phases=(Phase.generate,))
    return drawn[:count]


class _HypothesisDraws(Draws):
    """Draws as Hypothesis wants it, which goes on where a seed has led to what fails."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__()
        self._draw = draw
        self._counts = _SeededProvider.counts

    def __call__(self, count: int) -> int:
        return self._draw(_index(count))

    def _pick(self, numbers: Sequence[int], count: int) -> int:
        _SeededProvider.candidates = numbers
        try:
            return self(count)
        finally:
            _SeededProvider.candidates = ()


@cache
def _index(count: int) -> st.SearchStrategy[int]:
    """Make a strategy of 0 .. count - 1, shrinking towards 0."""
    return st.integers(0, count - 1)


def strategy_of(make: Make[Drawn]) -> st.SearchStrategy[Drawn]:
    """Make a strategy of Hypothesis that draws what ``make`` draws."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Drawn:
        return make(_HypothesisDraws(draw))

    return drawn()


def shrink(
    make: Make[Case],
    count: int,
    seed: int,
    failing: Case,
    still_fails: Callable[[Case], bool],
    budget_seconds: float,
) -> Case:
    """Find the smallest case that still fails, starting from ``failing``, one of `generate`'s cases.

    Stops shrinking when the budget is spent; returns ``failing`` itself if nothing smaller fails.
    """
    deadline = time.monotonic() + budget_seconds
    verdicts: dict[Case, bool] = {}

    def replay(case: Case) -> None:
        """Pass until ``failing`` comes along, then ask; without an answer in time, pass."""
        if case not in verdicts:
            searching = failing in verdicts
            verdicts[case] = case == failing or (searching and time.monotonic() < deadline and still_fails(case))
        if verdicts[case]:
            raise _StillFails

    with suppress(_StillFails, Flaky):
        _explore(strategy_of(make), count, seed, replay, phases=(Phase.generate, Phase.shrink))
    return min([failing, *(case for case, fails in verdicts.items() if fails)], key=_extent)


def _extent(case: Case) -> tuple[int, int, int]:
    """Measure how small a case is for a person: few elements, few windows, a short line."""
    return case.planes * case.plane_size, case.planes * case.plane_windows, len(case.to_json())


class _StillFails(Exception):
    """The predicate's answer, in the form Hypothesis understands."""


def _explore(
    strategy: st.SearchStrategy[Drawn],
    count: int,
    seed: int,
    visit: Callable[[Drawn], None],
    phases: tuple[Phase, ...],
) -> None:
    @hypothesis_seed(seed)
    @settings(
        backend="poolproof",
        database=None,
        deadline=None,
        max_examples=count,
        phases=phases,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def explore(drawn: Drawn) -> None:
        visit(drawn)

    _SeededProvider.random = random.Random(seed)
    _SeededProvider.counts = defaultdict(Counter)
    explore()


class _SeededProvider(PrimitiveProvider):
    """Draws uniformly from the seed, or from the ``candidates`` of a balanced choice.

    Hypothesis' own provider mixes in constants found in whatever modules happen to be loaded, so that the same
    seed would draw other cases in another process.
    """

    random = random.Random(0)
    counts: ClassVar[defaultdict[str, Counter[Hashable]]] = defaultdict(Counter)
    candidates: Sequence[int] = ()

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self.random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,  # noqa: ARG002  (only nudges towards the ends)
        shrink_towards: int = 0,  # noqa: ARG002
    ) -> int:
        assert min_value is not None
        assert max_value is not None
        if self.candidates:
            return self.random.choice(self.candidates)
        return min_value + (self.random.getrandbits(64) * (max_value - min_value + 1) >> 64)

    def draw_float(self, **constraints: Any) -> float:
        raise NotImplementedError("cases draw no floats: a float in a case would not survive its JSON")

    def draw_string(self, *args: Any, **constraints: Any) -> str:
        raise NotImplementedError("cases draw no strings")

    def draw_bytes(self, *args: Any, **constraints: Any) -> bytes:
        raise NotImplementedError("cases draw no bytes")


AVAILABLE_PROVIDERS["poolproof"] = f"{__name__}._SeededProvider"
