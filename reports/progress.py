"""Progress of a run and an estimate of the time left, from the tests that its workers have finished.

A case of one aspect may cost a hundred of another, and aspects come one after the other. What is left is estimated by
what a case of each aspect has cost in this run; aspects that have not begun, by their usual cost beside those.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from poolproof.reports.rows.checks import SEARCH
from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.text import duration

SECONDS = 10.0
"""Seconds until the first line; each further one takes as long as all before it."""

_ENOUGH = 0.05
"""Share of a run's cost that has to be spent before an estimate means something."""


class Progress:
    """Counts the ``planned`` cases of each aspect that are done, and estimates the time of the others.

    ``clock`` gives seconds; at its time ``until`` a run ends in any case.
    """

    def __init__(
        self, planned: Mapping[str, int], until: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.done = self.failed = 0
        self._planned = Counter(planned)
        self._until = until
        self._clock = clock
        self._began = self._last_line = clock()
        self._judging_since: float | None = None
        self._workers: set[str] = set()
        self._judged: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._timed: Counter[str] = Counter()

    def add(self, cases: Mapping[str, int], failed: int, seconds: float, worker: str) -> None:
        """Count a test that has ended: ``cases`` of each aspect, which took a worker so many seconds.

        The first test of a worker loads the backend, too, so its time is not used.
        """
        if self._judging_since is None:
            self._judging_since = self._clock() - seconds
        self._judged.update(cases)
        self.done += sum(number for aspect, number in cases.items() if aspect != SEARCH)
        self.failed += failed
        if worker in self._workers and len(cases) == 1:
            ((aspect, number),) = cases.items()
            self._seconds[aspect] += seconds
            self._timed[aspect] += number
        self._workers.add(worker)

    def line(self) -> str | None:
        """Return a line about the progress when it is time for one."""
        now = self._clock()
        if now - self._last_line < max(SECONDS, self._last_line - self._began) or self._judging_since is None:
            return None
        self._last_line = now
        text = f"{self.done:,} of {self._planned.total():,} cases, {self.failed:,} failed"
        rate = self.done / max(now - self._judging_since, 1e-3)
        left = self.seconds_left()
        return f"{text}, {rate:,.0f} a second" + ("" if left is None else f", about {duration(left)} left")

    def seconds_left(self) -> float | None:
        """Estimate the seconds left; None while too little is known."""
        ending = None if self._until is None else max(self._until - self._clock(), 0.0)
        costs = self._seconds_per_case()
        whole = sum(cost * self._planned[aspect] for aspect, cost in costs.items())
        if sum(self._seconds.values()) < _ENOUGH * whole or not whole:
            return ending
        left = sum(cost * max(self._planned[aspect] - self._judged[aspect], 0) for aspect, cost in costs.items())
        estimate = left / len(self._workers)
        return estimate if ending is None else min(estimate, ending)

    def _seconds_per_case(self) -> dict[str, float]:
        """Estimate a worker's seconds for a case of each aspect; all 0 while nothing is known."""
        usual = sum(usual_cost(aspect) * number for aspect, number in self._timed.items())
        unit = sum(self._seconds.values()) / usual if usual else 0.0
        return {
            aspect: self._seconds[aspect] / self._timed[aspect] if self._timed[aspect] else unit * usual_cost(aspect)
            for aspect in self._planned
        }
