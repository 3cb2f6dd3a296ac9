"""A time budget and its allotment: which process judges which cases of which block, and how far each block got.

Every block has its first cases judged; then the block that has had the least time is next. What has no first cases when
the time is up is missing. The processes of a run share a journal in its folder: an idle process takes a `Portion` by
appending a line, so that none is taken twice, and a resumed run continues from there. What was taken is expected to be
judged, whatever becomes of the process. A portion begins where the block's last one ended, so one number per block says
which of its cases were taken.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple

from poolproof.reports.rows.costs import usual_cost
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.plan.blocks import Block, extend, root_of
from poolproof.suites.run.runner import BlockResult, Runner

FILE = "asked.jsonl"
"""The journal."""

_FIRST_CASES, _CHEAP = 4, 5.0
"""Cases of a block that are judged first while there is time, if one costs at most so many of the aspect ``values``."""

_PORTIONS = 500
"""Portions that the remaining time is cut into."""

_SHORTEST, _LONGEST = 0.06, 10.0
"""Seconds of a portion: a shorter one is not worth drawing the cases before it; during a longer one the other blocks
wait too long."""

_UNKNOWN_PACE = 0.1
"""Assumed seconds per case where none was measured: slow, so that few are taken at once."""

_LONGEST_START, _LEAST = 30.0, 10.0
"""Seconds that a session takes to start, at most; and for which first cases are asked, however short the budget is."""

_WEEK = 7 * 86_400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_time(text: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 1.5h, up to a week; `BadInput` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", text.strip())
    seconds = match and float(match[1]) * _UNITS[match[2]]
    if not seconds or not 1.0 <= seconds <= _WEEK:
        wanted = "a number and a unit (s, m or h), such as 90s or 10m, up to a week"
        raise BadInput(f"--budget {text}: a budget is {wanted}")
    return seconds


def starting_seconds() -> float:
    """Return how long this process has been starting; 0 for one that began long ago, and did other things before."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    return age if 0.0 <= age <= _LONGEST_START else 0.0


@dataclass(frozen=True)
class Budget:
    """The ``seconds`` that a session may last, which ``began`` at a monotonic time: clocks are set during runs.

    If it ``extends_plan``, a block whose cases are all judged goes on with cases that no plan has.
    """

    seconds: float
    began: float
    extends_plan: bool = False

    @property
    def until(self) -> float:
        """Time after which no portion is taken; a tenth, up to a minute, is left for the last ones and the report."""
        return self.began + self.seconds - min(60.0, 0.1 * self.seconds)

    @property
    def slice_seconds(self) -> float:
        """Seconds that a slice lasts: one test, in which a process judges portions."""
        return min(self.seconds / 20, 120.0)

    @property
    def slices(self) -> int:
        """Slices for each process: many, so that they spread over the workers and show progress; 1.2 budgets long."""
        return ceil(1.2 * self.seconds / self.slice_seconds)


class Journal:
    """The state that processes share, as it was when this one last had it `locked`.

    A line holds a block's id with how many of its cases are ``taken``, or with the seconds per case that some took;
    0 if unknown. Times are by the planned block that one extends (`root_of`).
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._read = 0
        self.taken: dict[str, int] = {}
        self.extended: Counter[str] = Counter()
        """Cases taken of all extensions of a block."""
        self.paces: dict[str, float] = {}
        """Seconds per case of the last portion."""
        self.spent: Counter[str] = Counter()
        """Seconds in all."""

    @contextmanager
    def locked(self) -> Iterator[Callable[..., object]]:
        """Lock and read the journal; yield what appends an entry. `CannotWrite` if the file system has no locks."""
        with writing(self._path), self._path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._read)
            text = file.read()
            if text and not text.endswith(b"\n"):
                file.write(b"\n")  # its writer died
            self._read = file.tell()
            for line in text.splitlines():
                self._learn(line)
            yield lambda **entry: file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return  # cut short by the death of its writer: that portion was never judged
        name, root = entry["block"], root_of(entry["block"])
        if "taken" in entry:
            if name != root:
                self.extended[root] += entry["taken"] - self.taken.get(name, 0)
            self.taken[name] = entry["taken"]
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
    `next_portion` takes from the block that has had the least time. ``loaded`` are the backends that this process has
    judged on: the first portion's time includes loading.
    """

    folder: Path
    blocks: Sequence[Block]
    budget: Budget
    workers: int
    clock: Callable[[], float] = time.monotonic
    loaded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._journal = Journal(self.folder)
        self._roots = {block.id for block in self.blocks}
        self._began = inf

    def judge_first(self, block: Block, runner: Runner) -> BlockResult:
        """Judge the first cases of a block, and whatever an interrupted session had taken of it."""
        return self._judge(self.first_portions(block), runner)

    def judge_slice(self, runner: Runner) -> BlockResult:
        """Judge one portion after the other for one time slice."""
        end = time.monotonic() + self.budget.slice_seconds
        return self._judge(iter(lambda: self.next_portion() if time.monotonic() < end else None, None), runner)

    def _judge(self, portions: Iterable[Portion], runner: Runner) -> BlockResult:
        total = BlockResult()
        for portion in portions:
            started, backend = time.monotonic(), portion.block.backend
            result = runner.judge(*portion)
            seconds = time.monotonic() - started if backend in self.loaded else 0.0
            self.record_time(portion, result.rows, seconds)
            self.loaded.add(backend)
            total.merge(result)
        return total

    def first_portions(self, block: Block) -> list[Portion]:
        """Take a block's first cases, with all that was ever taken of it and its extensions; none when time is up."""
        now = self.clock()
        self._began = min(self._began, now)
        left = self.budget.until - now
        if max(left, self._began + _LEAST - now) <= 0.0:
            return []
        with self._journal.locked() as append:
            fewest = _first_count(block) if left > self.budget.seconds / 2 else block.min_cases
            stop = max(fewest, self._journal.taken.get(block.id, 0))
            append(block=block.id, taken=stop)
            extensions = extend(block, self._journal.extended[block.id])
            return [Portion(block, 0, stop), *(Portion(more, 0, more.count) for more in extensions)]

    def next_portion(self) -> Portion | None:
        """Take the next portion; None if the time or the plan is spent."""
        with self._journal.locked() as append:
            left, paces, taken = self.budget.until - self.clock(), self._journal.paces, self._journal.taken
            if self.budget.extends_plan:
                self.blocks = [self._current(block) for block in self.blocks]
            open_ones = [block for block in self.blocks if self._is_open(block, left)]
            if left <= 0.0 or not open_ones:
                return None
            block = min(open_ones, key=lambda block: self._journal.spent[root_of(block.id)])
            seconds = min(max(left * self.workers / _PORTIONS, _SHORTEST), _LONGEST)
            cases = max(int(seconds / paces.get(root_of(block.id), _UNKNOWN_PACE)), block.min_batch)
            start = taken.get(block.id, 0)
            stop = min(start + cases, block.count)
            append(block=block.id, taken=stop)
        return Portion(block, start, stop)

    def record_time(self, portion: Portion, cases: int, seconds: float) -> None:
        """Record how long so many cases of a portion took together, 0 if unknown."""
        if cases:
            with self._journal.locked() as append:
                append(block=portion.block.id, seconds=round(seconds / cases, 6), cases=cases)

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


def take_whole(folder: Path, whole: Iterable[Block]) -> None:
    """Take all cases of blocks that a run began without a journal."""
    journal = Journal(folder)
    with journal.locked() as append:
        for block in whole:
            if block.id not in journal.taken:
                append(block=block.id, taken=block.count)


def extension_counts(folder: Path, blocks: Sequence[Block]) -> dict[str, int]:
    """Count the cases that were taken of the extensions of blocks, by the blocks' ids."""
    journal = Journal(folder)
    with journal.locked():
        return {block.id: count for block in blocks if (count := journal.extended[block.id])}


def remove_journal(folder: Path) -> None:
    """Make the whole plan expected of a run again."""
    with writing(folder / FILE):
        (folder / FILE).unlink(missing_ok=True)


def partial_counts(folder: Path, blocks: Sequence[Block]) -> dict[str, tuple[int, int]]:
    """Return (cases taken, or the minimum; cases in all) of those blocks that were not taken whole."""
    journal = Journal(folder)
    with journal.locked():
        parts = {block.id: (max(block.min_cases, journal.taken.get(block.id, 0)), block.count) for block in blocks}
    return {name: (part, count) for name, (part, count) in parts.items() if part < count}
