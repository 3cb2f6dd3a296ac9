"""A time budget: the deadline of a session, and the plan cut into parts that are judged in turns until then.

The first round judges the first cases of every block, later rounds some more of each. One process judges all parts of a
block, in order. So the first cases of every block have been judged, whenever the time is up.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.text import duration
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.blocks import Block

_FIRST_CASES = 4
"""Cases of each block in the first round: few, so that a short budget reaches every block."""

_LATER_CASES = 25
"""Cases of a block in each later round, about a tenth of a second of cheap cases."""

KEPT_BLOCKS = 256
"""Most blocks with drawn cases that a process keeps, some 100 MB, so that no round draws them again."""

_REPORT_SHARE = 0.1
"""Share of the budget for the report, which takes longer with more rows."""

_LEAST_FOR_REPORT = 3.0
"""Least seconds of computing for the report: imports and pages of a small run take up to 2.5 s."""

_MOST_FOR_REPORT = 60.0
"""Most seconds for the report, which are enough for any run."""

_MOST_SEEDS = 1000
"""Most further seeds of one session: each is a test."""

_CASES_A_SECOND = 1000
"""More cases than one process judges in a second, so that no session runs out of further seeds."""

_LONGEST_START = 120.0
"""Most seconds that a session takes to start: an older process did other things before."""

_WEEK = 7 * 86_400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_time(text: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 1.5h, up to a week; raise `BadInput` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", text.strip())
    seconds = match and float(match[1]) * _UNITS[match[2]]
    if not seconds or not 1.0 <= seconds <= _WEEK:
        wanted = "a number and a unit (s, m or h), such as 90s or 10m, up to a week"
        raise BadInput(f"--budget {text}: a budget is {wanted}")
    return seconds


def starting_seconds() -> float:
    """Return the seconds since this process started; 0 if it did other things before."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    return age if 0.0 <= age <= _LONGEST_START else 0.0


def slowness() -> float:
    """Return how many seconds this process has needed for one of computing: other processes may use the cores, too."""
    return max(starting_seconds() / time.process_time(), 1.0)


@dataclass(frozen=True)
class Budget:
    """The ``seconds`` of a session that ``began`` at a monotonic time: clocks may be set during runs.

    If it ``goes_beyond`` the plan, the session continues with further seeds when the plan is done. A second of
    computing takes ``slowness`` seconds.
    """

    seconds: float
    began: float
    goes_beyond: bool = False
    slowness: float = 1.0

    @property
    def until(self) -> float:
        """Monotonic time after which no case begins; the rest of the budget is for the report."""
        least = min(_LEAST_FOR_REPORT * self.slowness, self.seconds / 2)
        report = min(max(_REPORT_SHARE * self.seconds, least), _MOST_FOR_REPORT)
        return self.began + self.seconds - report

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    @property
    def reason(self) -> str:
        """The reason to skip the rest of the plan."""
        return f"budget of {duration(self.seconds)} used up"

    def further_seeds(self, seed: int, cases: int, workers: int) -> range:
        """Return the seeds after ``seed`` for which ``workers`` may have time, with ``cases`` each."""
        most = int(self.seconds * workers * _CASES_A_SECOND / max(cases, 1)) + workers if self.goes_beyond else 0
        return range(seed + 1, seed + 1 + min(most, _MOST_SEEDS))


class BlockPart(NamedTuple):
    """The cases of a block from ``start`` to ``stop``: one test of a session with a budget."""

    block: Block
    start: int
    stop: int

    @property
    def id(self) -> str:
        return f"{self.block.id}@{self.start}"

    def questions(self, draw: Callable[[Block], Sequence[Question]]) -> Sequence[Question]:
        """Return its cases; ``draw`` returns all cases of a block."""
        return draw(self.block)[self.start : self.stop] if self.start else self.block.prefix(self.stop)


def parts(blocks: Sequence[Block], recorded: Mapping[str, int]) -> Iterator[BlockPart]:
    """Cut blocks into parts, round by round, the cheapest blocks first.

    ``recorded`` counts the rows of a block that an interrupted session has begun: they are of its first cases.
    """
    counts = {block: block.count for block in blocks}
    left = sorted(blocks, key=lambda block: (min(_FIRST_CASES, counts[block]) * usual_cost(block.aspect.id), block.id))
    start, stop = 0, _FIRST_CASES
    while left := [block for block in left if counts[block] > start]:
        some = (BlockPart(block, start, min(stop, counts[block])) for block in left)
        yield from (part for part in some if recorded.get(part.block.id, 0) < part.stop)
        start, stop = stop, stop + _LATER_CASES
