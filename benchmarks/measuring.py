"""Figures, medians of rounds and the description of the machine, for all parts of the speed benchmark.

A figure is one row of the table: what was measured, our value, the other value in the same minute, and their ratio.
Compared values are measured in turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from poolproof.reports.rows.environment import cpu_model

PACKAGES = ("poolproof", "torch", "numpy", "hypothesis", "numba", "pytest", "pytest-xdist", "pyarrow", "pandas")


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        ours: Our value in ``unit``.
        other: The other value; None if there is none, or if ``note`` says why it could not be measured.
        ratio: Median of the ratios of the rounds, ours to the other.
        bound: Bound of the ratio, or of ``ours`` if there is no other, as text: ">= 4".
    """

    part: str
    what: str
    unit: str
    ours: float | None
    beside: str = ""
    other: float | None = None
    ratio: float | None = None
    bound: str = ""
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bound is met; None without a bound or a value."""
        value = self.ours if self.ratio is None else self.ratio
        if not self.bound or value is None:
            return None
        relation, bound = self.bound.split()
        return value >= float(bound) if relation == ">=" else value <= float(bound)


def compared(part: str, what: str, unit: str, ours: Sequence[float], beside: str, other: Sequence[float]) -> Figure:
    """Return the figure of rounds in which both were measured."""
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, other, strict=True))
    return Figure(part, what, unit, statistics.median(ours), beside, statistics.median(other), ratio)


def in_turns(rounds: int, measures: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Return each measure's values, one per round, in reverse order every second round."""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds):
        for name in list(measures)[:: -1 if number % 2 else 1]:
            taken[name].append(measures[name]())
    return taken


def seconds_of(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one core, for a fair comparison."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def machine() -> dict[str, Any]:
    """Describe the machine of the figures: processor, memory, versions, and its load at the start."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "load": [round(load, 2) for load in os.getloadavg()],
        "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
