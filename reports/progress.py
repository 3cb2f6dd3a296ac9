"""How far a run is, and how long the rest will take, from the tests that its workers have finished.

A case of one aspect may cost a hundred of another, and aspects come one after the other: what is left is priced by what
a case of each aspect has cost in this run, and of aspects that have not begun by what it usually costs beside those.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from poolproof.reports.rows.costs import usual_cost

SECONDS = 10.0
"""Between two lines."""

_ENOUGH = 0.05
"""The part of a run's price that has to be paid before an estimate means something."""


class Progress:
    """Counts the ``planned`` cases of each aspect that are done, and prices the others.

    ``until`` is the Unix time by which a run ends in any case. ``clock`` gives seconds.
    """

    def __init__(
        self, planned: Mapping[str, int], until: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.done = self.failed = 0
        self._planned = Counter(planned)
        self._until = until
        self._clock = clock
        self._last_line = clock()
        self._judging_since: float | None = None
        self._workers: set[str] = set()
        self._judged: Counter[str] = Counter()
        self._paid: defaultdict[str, float] = defaultdict(float)
        self._priced: Counter[str] = Counter()

    def add(self, cases: Mapping[str, int], failed: int, seconds: float, worker: str) -> None:
        """A test has ended: ``cases`` of each aspect, which took a worker so long.

        The first of a worker loads the backend, too, so nothing is learned from what it took.
        """
        if self._judging_since is None:
            self._judging_since = self._clock() - seconds
        self._judged.update(cases)
        self.done += sum(cases.values())
        self.failed += failed
        if worker in self._workers and len(cases) == 1:
            ((aspect, number),) = cases.items()
            self._paid[aspect] += seconds
            self._priced[aspect] += number
        self._workers.add(worker)

    def line(self) -> str | None:
        """One about how far the run is, when it is time for it."""
        now = self._clock()
        if now - self._last_line < SECONDS or self._judging_since is None:
            return None
        self._last_line = now
        told = f"{self.done:,} of {self._planned.total():,} cases, {self.failed:,} failed"
        rate = self.done / max(now - self._judging_since, 1e-3)
        left = self.seconds_left()
        return f"{told}, {rate:,.0f} a second" + ("" if left is None else f", about {_duration(left)} left")

    def seconds_left(self) -> float | None:
        """None while too little is known."""
        ending = None if self._until is None else max(self._until - time.time(), 0.0)
        prices = self._prices()
        whole = sum(price * self._planned[aspect] for aspect, price in prices.items())
        if sum(self._paid.values()) < _ENOUGH * whole or not whole:
            return ending
        left = sum(price * max(self._planned[aspect] - self._judged[aspect], 0) for aspect, price in prices.items())
        estimate = left / len(self._workers)
        return estimate if ending is None else min(estimate, ending)

    def _prices(self) -> dict[str, float]:
        """Seconds of a worker for a case of each aspect; all 0 while nothing is known."""
        usual = sum(usual_cost(aspect) * number for aspect, number in self._priced.items())
        unit = sum(self._paid.values()) / usual if usual else 0.0
        return {
            aspect: self._paid[aspect] / self._priced[aspect] if self._priced[aspect] else unit * usual_cost(aspect)
            for aspect in self._planned
        }


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
