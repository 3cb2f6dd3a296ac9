"""The loop of a process that judges portions of a plan within a time budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from poolproof.suites.plan.blocks import Block
from poolproof.suites.run.allotment import Allotment, Budget, Portion
from poolproof.suites.run.runner import BlockResult, Runner


@dataclass(frozen=True)
class BudgetRunner:
    """Judges the portions of ``allotment`` by ``runner``, and records how long they took."""

    budget: Budget
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
        result, end = BlockResult(), time.monotonic() + self.budget.slice_seconds
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
