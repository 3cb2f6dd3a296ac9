"""How a time is spent on a plan: who judges which cases of which block, and how far each block was asked.

Every block is asked its first cases; then the block that had least time is next. The processes of a run share a journal
in its folder: who is free takes a `Portion` by a line in it, so that none is taken twice, and an interrupted run goes
on from there. What was taken is owed, whatever becomes of who took it. Portions begin where a block's last one ended,
so that a number for each block says which of its cases were asked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple

from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.running.journal import Journal
from poolproof.suites.running.plans import Block, root_of

FILE = "asked.jsonl"
"""The journal."""

_TURN, _LONGEST_TURN = 1 / 20, 120.0
"""The part of a time that a turn lasts, and the most seconds."""

_SPARE = 1.2
"""By how much all turns together last longer than the time."""

_CLOSING, _MOST_CLOSING = 2.0, 0.05
"""Seconds left for what is said about a run at its end, and the most of a budget that this may be."""

_FEW, _LITTLE = 4, 5.0
"""Cases that a block is asked first while there is time, where one costs no more than so many of the aspect ``values``:
the first that is drawn is the simplest, and shows least."""

_PORTIONS = 500
"""How many portions the time left is cut into."""

_SHORTEST, _LONGEST = 0.06, 10.0
"""Seconds of such a portion: below it, drawing the cases before it would cost more than it is worth; above it, the
other blocks wait too long."""

_UNKNOWN = 0.1
"""Seconds of a case of which nobody knows: slow, so that few are asked at once."""

_WEEK = 7 * 86_400.0
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class NoTime(BadInput):
    """A text that is no time to spend."""


def parse_time(text: str) -> float:
    """Seconds of a time such as 90s, 10m or 1.5h; `NoTime` for anything else, for nothing, and for more than a week."""
    match = _TIME.fullmatch(text.strip())
    seconds = match and float(match[1]) * _UNITS[match[2]]
    if not seconds or not 1.0 <= seconds <= _WEEK:
        raise NoTime(f"--budget {text}: a budget is a number and a unit (s, m or h), such as 90s or 10m, up to a week")
    return seconds


def seconds_of(minutes: float) -> float:
    """Seconds of that many minutes; `NoTime` for nothing, and for more than a week."""
    if not 1.0 <= minutes * 60.0 <= _WEEK:
        raise NoTime(f"--minutes {minutes:g}: a number of minutes is needed, from 0.02 to {_WEEK / 60.0:,.0f}, a week")
    return minutes * 60.0


@dataclass(frozen=True)
class Budget:
    """``seconds`` that a session may last that ``began`` at a Unix time.

    Where it ``goes_beyond`` the plan, a block that is asked to its end goes on with cases that no plan has.
    """

    seconds: float
    began: float
    goes_beyond: bool = False

    @property
    def until(self) -> float:
        """The Unix time after which no portion is taken."""
        return self.began + self.seconds - min(_CLOSING, self.seconds * _MOST_CLOSING)

    @property
    def turn(self) -> float:
        """Seconds that a turn lasts, a test in which a process spends what is left."""
        return min(self.seconds * _TURN, _LONGEST_TURN)

    @property
    def turns(self) -> int:
        """Tests for each process in which the rest is spent: each ends after a part of the time, so that they are
        spread over workers, and progress is told.
        """
        return ceil(_SPARE * self.seconds / self.turn)


class Portion(NamedTuple):
    """The cases of a block from ``start`` to ``stop``, in the order of `Block.first`."""

    block: Block
    start: int
    stop: int


def cheapest_first(blocks: Sequence[Block]) -> list[Block]:
    """The order in which blocks are asked their first cases."""
    return sorted(blocks, key=lambda block: (_few(block) * usual_cost(block.aspect.id), block.aspect.id))


def _few(block: Block) -> int:
    few = _FEW if usual_cost(block.aspect.id) <= _LITTLE else 1
    return max(block.least, min(few, block.count))


class Allotment:
    """Gives one of ``workers`` processes its portions of ``blocks``, until the budget is spent.

    ``folder`` is that of the run, ``clock`` tells the time that the budget is of. A few cases of all blocks are asked
    first (`first`), then some of the block that had least time (`next`).
    """

    def __init__(
        self,
        folder: Path,
        blocks: Sequence[Block],
        budget: Budget,
        workers: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = Journal(folder / FILE)
        self._roots = {block.id for block in blocks}
        self._blocks = list(blocks)
        self._budget = budget
        self._workers = workers
        self._clock = clock

    def first(self, block: Block) -> list[Portion]:
        """What is asked of a block first, whatever the time, and all that was ever taken of it, and beyond it."""
        with self._journal.locked():
            has_time = self._clock() < self._budget.until
            stop = max(_few(block) if has_time else block.least, self._journal.taken.get(block.id, 0))
            self._journal.take(block.id, stop)
            taken = self._journal.taken
            return [Portion(block, 0, stop), *(Portion(more, 0, more.count) for more in _beyond(block, taken))]

    def next(self) -> Portion | None:
        """The next portion; None where the time or the plan is spent."""
        with self._journal.locked():
            left = self._budget.until - self._clock()
            if self._budget.goes_beyond:
                self._blocks = [self._going_on(block) for block in self._blocks]
            open_ones = [block for block in self._blocks if self._is_open(block, left)]
            if left <= 0.0 or not open_ones:
                return None
            block = min(open_ones, key=lambda block: self._journal.spent[root_of(block.id)])
            start = self._journal.taken.get(block.id, 0)
            stop = min(start + self._cases(block, left), block.count)
            self._journal.take(block.id, stop)
        return Portion(block, start, stop)

    def took(self, portion: Portion, cases: int, seconds: float) -> None:
        """Learn how long the cases of a portion took, those that were judged now."""
        if cases:
            with self._journal.locked():
                self._journal.note(portion.block.id, cases, seconds)

    def _cases(self, block: Block, left: float) -> int:
        """How many cases of a block are a portion."""
        seconds = min(max(left * self._workers / _PORTIONS, _SHORTEST), _LONGEST)
        return max(int(seconds / self._journal.paces.get(root_of(block.id), _UNKNOWN)), block.grain)

    def _going_on(self, block: Block) -> Block:
        """The block, or what goes on where it ends and has cases left."""
        while self._journal.taken.get(block.id, 0) >= block.count and (more := block.beyond()) is not None:
            block = more
        return block

    def _is_open(self, block: Block, left: float) -> bool:
        """Whether a begun block has cases left, of which one fits into the time that is."""
        taken = self._journal.taken.get(block.id, 0)
        is_begun = taken > 0 or block.id not in self._roots
        return is_begun and taken < block.count and self._journal.paces.get(root_of(block.id), 0.0) <= left


def _beyond(block: Block, taken: Mapping[str, int]) -> Iterator[Block]:
    """What was taken of the blocks that go on where one ends, each as a block of so many cases."""
    more = block.beyond()
    while more is not None and (part := taken.get(more.id, 0)):
        yield more.of(part)
        more = more.beyond()


def begin(folder: Path, whole: Iterable[Block]) -> None:
    """Have blocks asked to their end, of which a run judged something that no journal tells of."""
    journal = Journal(folder / FILE)
    with journal.locked():
        for block in whole:
            if block.id not in journal.taken:
                journal.take(block.id, block.count)


def beyond(folder: Path, blocks: Sequence[Block]) -> dict[str, int]:
    """How many cases were asked beyond those of ``blocks`` that go on, by their ids."""
    journal = Journal(folder / FILE)
    with journal.locked():
        taken = journal.taken
    counts = {block.id: sum(more.count for more in _beyond(block, taken)) for block in blocks}
    return {name: count for name, count in counts.items() if count}


def going_on(block: Block, cases: int) -> Iterator[Block]:
    """The blocks that hold so many ``cases`` beyond one."""
    while cases > 0 and (more := block.beyond()) is not None:
        block = more
        yield more.of(min(cases, more.count))
        cases -= more.count


def forget(folder: Path) -> None:
    """Let a run owe its whole plan."""
    with writing(folder / FILE):
        (folder / FILE).unlink(missing_ok=True)


def asked(folder: Path, blocks: Sequence[Block]) -> dict[str, tuple[int, int]]:
    """(how many cases were asked, or had to be, how many it has) of those of ``blocks`` that were not asked whole."""
    journal = Journal(folder / FILE)
    with journal.locked():
        taken = journal.taken
    parts = {block.id: (max(block.least, taken.get(block.id, 0)), block.count) for block in blocks}
    return {name: (part, count) for name, (part, count) in parts.items() if part < count}
