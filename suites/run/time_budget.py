"""A time budget and its allotment: which process judges which cases of which block, and how far each block got.

Every block has its first cases judged; then the block that has had the least time is next. The processes of a run share
a journal in its folder: an idle process takes a `Portion` by appending a line, so that none is taken twice, and a
resumed run continues from there. What was taken is expected to be judged, whatever becomes of the process. A portion
begins where the block's last one ended, so one number per block says which of its cases were taken.
"""

from __future__ import annotations

import fcntl
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedRandom
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.plan.blocks import Block, root_of
from poolproof.suites.run.runner import BlockResult, Runner

FILE = "asked.jsonl"
"""The journal."""

_SLICE, _LONGEST_SLICE = 1 / 20, 120.0
"""The part of the budget that a time slice lasts, and the most seconds."""

_SPARE = 1.2
"""Length of all slices together, in budgets."""

_CLOSING, _MOST_CLOSING = 2.0, 0.05
"""Seconds reserved for the report at the end of a run, and the largest part of a budget that this may be."""

_FIRST_CASES, _CHEAP = 4, 5.0
"""Cases of a block that are judged first while there is time, if one costs at most so many of the aspect ``values``:
the first case drawn is the simplest, and shows least."""

_PORTIONS = 500
"""Portions that the remaining time is cut into."""

_SHORTEST, _LONGEST = 0.06, 10.0
"""Seconds of a portion: a shorter one is not worth drawing the cases before it; during a longer one the other blocks
wait too long."""

_UNKNOWN_PACE = 0.1
"""Assumed seconds per case where none was measured: slow, so that few are taken at once."""

_WEEK = 7 * 86_400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class InvalidTime(BadInput):
    """A text that is not a usable duration."""


def parse_time(text: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 1.5h, up to a week; `InvalidTime` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", text.strip())
    seconds = match and float(match[1]) * _UNITS[match[2]]
    if not seconds or not 1.0 <= seconds <= _WEEK:
        raise InvalidTime(
            f"--budget {text}: a budget is a number and a unit (s, m or h), such as 90s or 10m, up to a week"
        )
    return seconds


def parse_minutes(minutes: float) -> float:
    """Return the seconds of so many minutes, up to a week; `InvalidTime` for anything else."""
    if not 1.0 <= minutes * 60.0 <= _WEEK:
        raise InvalidTime(
            f"--minutes {minutes:g}: a number of minutes is needed, from 0.02 to {_WEEK / 60.0:,.0f}, a week"
        )
    return minutes * 60.0


@dataclass(frozen=True)
class Budget:
    """The ``seconds`` that a session may last, which ``began`` at a Unix time.

    If it ``extends_plan``, a block whose cases are all judged goes on with cases that no plan has.
    """

    seconds: float
    began: float
    extends_plan: bool = False

    @property
    def until(self) -> float:
        """Unix time after which no portion is taken."""
        return self.began + self.seconds - min(_CLOSING, self.seconds * _MOST_CLOSING)

    @property
    def slice_seconds(self) -> float:
        """Seconds that a slice lasts: one test, in which a process judges portions."""
        return min(self.seconds * _SLICE, _LONGEST_SLICE)

    @property
    def slices(self) -> int:
        """Slices for each process: many, so that they spread over the workers and show progress."""
        return ceil(_SPARE * self.seconds / self.slice_seconds)


class Journal:
    """The state that processes share; read and written while `locked`.

    A line holds a block's id with how many of its cases are taken, or with the seconds that some took. ``taken`` is by
    block; times are by the planned block that one extends (`root_of`).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._end: BufferedRandom | None = None
        self.taken: dict[str, int] = {}
        self.paces: dict[str, float] = {}
        """Seconds per case of the last portion."""
        self.spent: Counter[str] = Counter()
        """Seconds in all."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the journal and read what others wrote; `CannotWrite` if the file system has no locks."""
        with writing(self._path), self._path.open("a+b") as self._end:
            fcntl.flock(self._end, fcntl.LOCK_EX)
            self._catch_up(self._end)
            yield

    def take(self, block: str, stop: int) -> None:
        self._append({"block": block, "taken": stop})

    def record_time(self, block: str, cases: int, seconds: float) -> None:
        """Record the seconds that so many cases took together, 0 if unknown."""
        self._append({"block": block, "seconds": round(seconds / cases, 6), "cases": cases})

    def _catch_up(self, end: BufferedRandom) -> None:
        end.seek(self._read)
        text = end.read()
        if text and not text.endswith(b"\n"):
            end.write(b"\n")  # its writer died
        self._read = end.tell()
        for line in text.splitlines():
            self._learn(line)

    def _append(self, entry: Mapping[str, Any]) -> None:
        assert self._end is not None
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        self._end.write(line)
        self._end.flush()
        self._read += len(line)
        self._learn(line)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return  # cut short by the death of its writer: that portion was never judged
        root = root_of(entry["block"])
        if "taken" in entry:
            self.taken[entry["block"]] = entry["taken"]
            return
        if entry["seconds"]:
            self.paces[root] = entry["seconds"]
        self.spent[root] += entry["seconds"] * entry["cases"]


class Portion(NamedTuple):
    """The cases of a block from ``start`` to ``stop``, in the order of `Block.prefix`."""

    block: Block
    start: int
    stop: int


def cheapest_first(blocks: Sequence[Block]) -> list[Block]:
    """Sort blocks by the cost of their first cases."""
    return sorted(blocks, key=lambda block: (_first_count(block) * usual_cost(block.aspect.id), block.aspect.id))


def _first_count(block: Block) -> int:
    few = _FIRST_CASES if usual_cost(block.aspect.id) <= _CHEAP else 1
    return max(block.min_cases, min(few, block.count))


@dataclass(eq=False)
class Allotment:
    """Portions of ``blocks`` for one of ``workers`` processes, until the budget is spent.

    ``folder`` is that of the run; the budget is counted by ``clock``. Every block gives its `first_portions`; then
    `next_portion` takes from the block that has had the least time.
    """

    folder: Path
    blocks: Sequence[Block]
    budget: Budget
    workers: int
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._journal = Journal(self.folder / FILE)
        self._roots = {block.id for block in self.blocks}

    def first_portions(self, block: Block) -> list[Portion]:
        """Take a block's first cases, whatever the time, with all that was ever taken of it and of its extensions."""
        with self._journal.locked():
            has_time = self.clock() < self.budget.until
            stop = max(_first_count(block) if has_time else block.min_cases, self._journal.taken.get(block.id, 0))
            self._journal.take(block.id, stop)
            extensions = _taken_extensions(block, self._journal.taken)
            return [Portion(block, 0, stop), *(Portion(more, 0, more.count) for more in extensions)]

    def next_portion(self) -> Portion | None:
        """Take the next portion; None if the time or the plan is spent."""
        with self._journal.locked():
            left = self.budget.until - self.clock()
            if self.budget.extends_plan:
                self.blocks = [self._current(block) for block in self.blocks]
            open_ones = [block for block in self.blocks if self._is_open(block, left)]
            if left <= 0.0 or not open_ones:
                return None
            block = min(open_ones, key=lambda block: self._journal.spent[root_of(block.id)])
            start = self._journal.taken.get(block.id, 0)
            stop = min(start + self._cases(block, left), block.count)
            self._journal.take(block.id, stop)
        return Portion(block, start, stop)

    def record_time(self, portion: Portion, cases: int, seconds: float) -> None:
        """Record how long so many cases of a portion took."""
        if cases:
            with self._journal.locked():
                self._journal.record_time(portion.block.id, cases, seconds)

    def _cases(self, block: Block, left: float) -> int:
        """Count the cases of a portion."""
        seconds = min(max(left * self.workers / _PORTIONS, _SHORTEST), _LONGEST)
        return max(int(seconds / self._journal.paces.get(root_of(block.id), _UNKNOWN_PACE)), block.min_batch)

    def _current(self, block: Block) -> Block:
        """Return the block, or its first extension with cases left."""
        while self._journal.taken.get(block.id, 0) >= block.count and (more := block.extension()) is not None:
            block = more
        return block

    def _is_open(self, block: Block, left: float) -> bool:
        """Tell whether a begun block has cases left, and there is time for one."""
        taken = self._journal.taken.get(block.id, 0)
        is_begun = taken > 0 or block.id not in self._roots
        return is_begun and taken < block.count and self._journal.paces.get(root_of(block.id), 0.0) <= left


@dataclass(frozen=True)
class BudgetRunner:
    """Judges the portions of ``allotment`` by ``runner``, and records how long they took."""

    allotment: Allotment
    runner: Runner
    loaded: set[str] = field(default_factory=set)
    """The backends that this process has judged on: the first portion's time includes loading."""

    def judge_first(self, block: Block) -> BlockResult:
        """Judge the first cases of a block, and whatever an interrupted session had taken of it."""
        result = BlockResult()
        for portion in self.allotment.first_portions(block):
            result.merge(self._judge(portion))
        return result

    def judge_slice(self) -> BlockResult:
        """Judge one portion after the other for one time slice."""
        result, end = BlockResult(), time.monotonic() + self.allotment.budget.slice_seconds
        while time.monotonic() < end and (portion := self.allotment.next_portion()):
            result.merge(self._judge(portion))
        return result

    def _judge(self, portion: Portion) -> BlockResult:
        started = time.monotonic()
        result = self.runner.judge(*portion)
        is_loaded = portion.block.subject.backend in self.loaded
        seconds = time.monotonic() - started if is_loaded else 0.0
        self.allotment.record_time(portion, result.rows, seconds)
        self.loaded.add(portion.block.subject.backend)
        return result


def _taken(folder: Path) -> dict[str, int]:
    journal = Journal(folder / FILE)
    with journal.locked():
        return journal.taken


def _taken_extensions(block: Block, taken: Mapping[str, int]) -> Iterator[Block]:
    """Yield the extensions of a block, each with as many cases as were taken of it."""
    more = block.extension()
    while more is not None and (part := taken.get(more.id, 0)):
        yield replace(more, count=part)
        more = more.extension()


def take_whole(folder: Path, whole: Iterable[Block]) -> None:
    """Take all cases of blocks that a run began without a journal."""
    journal = Journal(folder / FILE)
    with journal.locked():
        for block in whole:
            if block.id not in journal.taken:
                journal.take(block.id, block.count)


def extension_counts(folder: Path, blocks: Sequence[Block]) -> dict[str, int]:
    """Count the cases that were taken of the extensions of blocks, by the blocks' ids."""
    taken = _taken(folder)
    counts = {block.id: sum(more.count for more in _taken_extensions(block, taken)) for block in blocks}
    return {name: count for name, count in counts.items() if count}


def remove_journal(folder: Path) -> None:
    """Make the whole plan expected of a run again."""
    with writing(folder / FILE):
        (folder / FILE).unlink(missing_ok=True)


def partial_counts(folder: Path, blocks: Sequence[Block]) -> dict[str, tuple[int, int]]:
    """Return (cases taken, or the minimum; cases in all) of those blocks that were not taken whole."""
    taken = _taken(folder)
    parts = {block.id: (max(block.min_cases, taken.get(block.id, 0)), block.count) for block in blocks}
    return {name: (part, count) for name, (part, count) in parts.items() if part < count}
