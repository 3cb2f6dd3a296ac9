"""Blocks that only have cases, and processes that judge them by a clock of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from poolproof.suites.plan.blocks import Block, extension_id, root_of
from poolproof.suites.run.time_budget import Allotment, Budget, Portion


@dataclass(frozen=True)
class Made:
    """A block that only has cases, and the seconds that each takes; one that is ``endless`` goes on where it ends."""

    id: str
    count: int
    seconds: float
    min_cases: int = 1
    min_batch: int = 1
    endless: bool = False
    index: int = 0

    @property
    def subject(self) -> SimpleNamespace:
        return SimpleNamespace(backend="made")

    @property
    def aspect(self) -> SimpleNamespace:
        return SimpleNamespace(id="values")

    def extension(self) -> Made | None:
        root, index = root_of(self.id), self.index + 1
        return replace(self, id=extension_id(root, index), index=index) if self.endless else None


class Clock:
    """Processes that take turns: each has a time of its own, and whose is least goes on."""

    def __init__(self, folder: Path, made: list[Made], seconds: float, workers: int, extends_plan: bool = False):
        self.times = [0.0] * workers
        self.now = 0.0
        self.portions: list[Portion] = []
        given = cast(list[Block], made)
        self.allotments = [
            Allotment(folder, given, Budget(seconds, 0.0, extends_plan), workers, lambda: self.now) for _ in self.times
        ]
        for number, block in enumerate(given):
            for portion in self.allotments[number % workers].first_portions(block):
                self._judge(number % workers, portion)

    def spend(self) -> None:
        idle: set[int] = set()
        while len(idle) < len(self.times):
            worker = min(set(range(len(self.times))) - idle, key=self.times.__getitem__)
            self.now = self.times[worker]
            portion = self.allotments[worker].next_portion()
            if portion is None:
                idle.add(worker)
            else:
                self._judge(worker, portion)

    def _judge(self, worker: int, portion: Portion) -> None:
        cases, block = portion.stop - portion.start, cast(Made, portion.block)
        seconds = cases * block.seconds
        self.times[worker] += seconds
        self.now = self.times[worker]
        self.allotments[worker].record_time(portion, cases, seconds)
        self.portions.append(portion)

    def taken(self) -> Counter[str]:
        return Counter({name: max(p.stop for p in self.portions if p.block.id == name) for name in self._names()})

    def _names(self) -> set[str]:
        return {portion.block.id for portion in self.portions}
