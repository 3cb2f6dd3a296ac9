"""Progress of a run and an estimate of the time left, from the finished tests of its workers.

A case of one aspect may cost a hundred of another, and aspects follow one another. The estimate uses the cost of each
aspect's cases in this run; for aspects that have not begun, their usual cost in relation to those.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from poolproof.reports.rows.checks import SEARCH
from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.text import duration, visible

SECONDS = 10.0
"""Seconds until the first line; the pause before each further line is the time of all before it."""

MOST_SECONDS = 600.0
"""Longest pause between two lines."""

_ENOUGH = 0.05
"""Least share of a run's cost before an estimate means something."""


class Progress:
    """Counts the judged ones of the ``planned`` cases of each aspect, and estimates the time of the others.

    ``clock`` returns seconds; at its time ``until`` the run ends in any case.
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
        """Count a finished test: ``cases`` of each aspect, which took a worker ``seconds``.

        The first test of a worker also loads the backend, so its time is not used.
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
        """Return a line about the progress if it is due."""
        now = self._clock()
        pause = min(max(SECONDS, self._last_line - self._began), MOST_SECONDS)
        if now - self._last_line < pause or self._judging_since is None:
            return None
        self._last_line = now
        text = f"{self.done:,} of {self._planned.total():,} cases, {self.failed:,} failed"
        rate = self.done / max(now - self._judging_since, 1e-3)
        left = self.seconds_left()
        # at the end of a budget, begun cases and the report take an unknown time
        return f"{text}, {rate:,.0f} a second" + (f", about {duration(left)} left" if left else "")

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


class Waiting:
    """A thread that prints the cases that calls do not return from.

    A file of the case in flight (``in-flight-NAME.json`` in ``folder``) is written when the case begins. After
    `SECONDS`, and then after twice the time, a line about it is printed. It goes to a copy of the descriptor
    ``stdout``, which pytest does not capture.
    """

    def __init__(self, folder: Path, stdout: int) -> None:
        self._folder, self._stdout = folder, os.dup(stdout)
        self._reported: dict[Path, tuple[float, float]] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        os.close(self._stdout)

    def _watch(self) -> None:
        while not self._is_over.wait(1.0):
            for line in self._lines(time.time()):
                os.write(self._stdout, f"\n{line}\n".encode())

    def _lines(self, now: float) -> Iterator[str]:
        for path in self._folder.glob("in-flight-*.json"):
            with suppress(OSError, ValueError):
                began = path.stat().st_mtime
                before, pause = self._reported.get(path, (0.0, SECONDS))
                pause = pause if before == began else SECONDS
                if now - began >= pause:
                    self._reported[path] = began, 2 * pause
                    yield f"{duration(now - began)} without an end: {visible(_case_in(path))}"


def _case_in(path: Path) -> str:
    """Return the case of a file in flight as text: backend, aspect and the case's line."""
    record = json.loads(path.read_bytes())
    return f"{record['backend']}, aspect {record['aspect']}, case {json.dumps(record['case'], separators=(',', ':'))}"
