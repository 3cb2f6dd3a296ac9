"""How a budget of time is spent on a plan: which cases of which block are next, and how far each block was asked.

This is the one place that decides it. The processes of a run share a journal in its folder: who is free takes a
`Portion` by a line in it, so that none is taken twice, and an interrupted run goes on from there. What was taken is
owed, whatever becomes of who took it. Portions begin where a block's last one ended, so that a number for each block
says which of its cases were asked.
"""

from __future__ import annotations

import fcntl
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import NamedTuple

from poolproof.reports.rows.surroundings import writing
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.running.plans import Block

FILE = "asked.jsonl"
"""The journal: lines of a block's id with how many of its cases are taken, or with the seconds that one took."""

TURNS = 24
"""Tests for each worker in which the rest of a budget is spent: each ends after a part of the time, so that they are
spread over workers, and progress is told."""

_TURN = 1 / 20
"""The part of a budget that a turn lasts."""

_PORTIONS = 8
"""Of the cases of a block that the time left is enough for, one part in so many is taken at once: blocks advance evenly
until the end."""

_CLOSING, _MOST_CLOSING = 2.0, 0.05
"""Seconds left for what is said about a run at its end, and the most of a budget that this may be."""

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


@dataclass(frozen=True)
class Budget:
    """``seconds`` that a session may last that ``began`` at a Unix time."""

    seconds: float
    began: float

    @property
    def until(self) -> float:
        """The Unix time after which no portion is taken."""
        return self.began + self.seconds - min(_CLOSING, self.seconds * _MOST_CLOSING)

    @property
    def turn(self) -> float:
        """Seconds that a turn lasts."""
        return self.seconds * _TURN


class Portion(NamedTuple):
    """The cases of a block from ``start`` to ``stop``, in the order of `Block.first`."""

    block: Block
    start: int
    stop: int


class Allotment:
    """Gives one of ``workers`` processes its portions of ``blocks``, until the budget is spent.

    ``folder`` is that of the run. The smallest part of all blocks is asked first (`first`), then whatever block was
    asked least of (`next`).
    """

    def __init__(self, folder: Path, blocks: Sequence[Block], budget: Budget, workers: int) -> None:
        self._journal = _Journal(folder / FILE)
        self._counts = {block.id: block.count for block in blocks}
        self._blocks = blocks
        self._budget = budget
        self._workers = workers

    def first(self, block: Block) -> Portion:
        """What even the smallest budget asks of a block, and all that was ever taken of it."""
        with self._journal.locked():
            stop = max(block.least, self._journal.taken.get(block.id, 0))
            self._journal.take(block.id, stop)
        return Portion(block, 0, stop)

    def next(self) -> Portion | None:
        """The next portion; None where the time or the plan is spent."""
        with self._journal.locked():
            left = self._budget.until - time.time()
            open_ones = [block for block in self._blocks if self._is_open(block, left)]
            if left <= 0.0 or not open_ones:
                return None
            block = min(open_ones, key=lambda block: self._journal.taken[block.id] / self._counts[block.id])
            start, rest = self._journal.taken[block.id], self._rest(block)
            needed = sum(self._journal.paces.get(each.id, 0.0) * self._rest(each) for each in open_ones)
            possible = min(left * self._workers / needed, 1.0) if needed else 0.0
            stop = start + min(max(block.grain, int(possible * rest / _PORTIONS)), rest)
            self._journal.take(block.id, stop)
        return Portion(block, start, stop)

    def took(self, portion: Portion, cases: int, seconds: float) -> None:
        """Learn how long the cases of a portion took, those that were judged now."""
        if cases:
            with self._journal.locked():
                self._journal.note_pace(portion.block.id, seconds / cases)

    def _rest(self, block: Block) -> int:
        return self._counts[block.id] - self._journal.taken[block.id]

    def _is_open(self, block: Block, left: float) -> bool:
        """Whether a begun block has cases left, of which one fits into the time that is."""
        taken = self._journal.taken.get(block.id, 0)
        return 0 < taken < self._counts[block.id] and self._journal.paces.get(block.id, 0.0) <= left


def begin(folder: Path, whole: Iterable[Block]) -> None:
    """Have blocks asked to their end, of which a run judged something that no journal tells of."""
    journal = _Journal(folder / FILE)
    with journal.locked():
        for block in whole:
            if block.id not in journal.taken:
                journal.take(block.id, block.count)


def forget(folder: Path) -> None:
    """Let a run owe its whole plan."""
    with writing(folder / FILE):
        (folder / FILE).unlink(missing_ok=True)


def asked(folder: Path, blocks: Sequence[Block]) -> dict[str, tuple[int, int]]:
    """(how many cases were asked, or had to be, how many it has) of those of ``blocks`` that were not asked whole."""
    journal = _Journal(folder / FILE)
    with journal.locked():
        taken = journal.taken
    parts = {block.id: (max(block.least, taken.get(block.id, 0)), block.count) for block in blocks}
    return {name: (part, count) for name, (part, count) in parts.items() if part < count}


class _Journal:
    """What all processes have taken, and learned of the time that it takes; read and written while `locked`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._end: BufferedRandom | None = None
        self.taken: dict[str, int] = {}
        self.paces: dict[str, float] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the others out, and know what they wrote; `CannotWrite` where the file system knows no locks."""
        with writing(self._path), self._path.open("a+b") as self._end:
            fcntl.flock(self._end, fcntl.LOCK_EX)
            self._catch_up(self._end)
            yield

    def take(self, block: str, stop: int) -> None:
        self._append({"block": block, "taken": stop})

    def note_pace(self, block: str, seconds: float) -> None:
        self._append({"block": block, "seconds": round(seconds, 6)})

    def _catch_up(self, end: BufferedRandom) -> None:
        end.seek(self._read)
        text = end.read()
        if text and not text.endswith(b"\n"):
            end.write(b"\n")  # whose writer died
        self._read = end.tell()
        for line in text.splitlines():
            self._learn(line)

    def _append(self, entry: Mapping[str, str | int | float]) -> None:
        assert self._end is not None
        line = json.dumps(entry).encode() + b"\n"
        self._end.write(line)
        self._end.flush()
        self._read += len(line)
        self._learn(line)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return  # cut short by the death of its writer: nobody was given that portion
        if "taken" in entry:
            self.taken[entry["block"]] = entry["taken"]
        else:
            self.paces[entry["block"]] = entry["seconds"]
