"""A process that judges its portions of a plan while there is time, and tells how long they took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from poolproof.suites.running.allotment import Allotment, Budget, Portion
from poolproof.suites.running.plans import Block
from poolproof.suites.running.runner import Runner, Tally


@dataclass(frozen=True)
class Spender:
    """Judges what ``allotment`` gives it, by ``runner``."""

    budget: Budget
    allotment: Allotment
    runner: Runner
    loaded: set[str] = field(default_factory=set)
    """The backends that this process judged something on: what comes first takes the time of loading, too."""

    def begin(self, block: Block) -> Tally:
        """Judge the first cases of a block, and whatever an interrupted session had taken of it."""
        tally = Tally()
        for portion in self.allotment.first(block):
            tally.add_all(self._judge(portion))
        return tally

    def go_on(self) -> Tally:
        """Judge one portion after the other for a turn."""
        tally, end = Tally(), time.monotonic() + self.budget.turn
        while time.monotonic() < end and (portion := self.allotment.next()):
            tally.add_all(self._judge(portion))
        return tally

    def _judge(self, portion: Portion) -> Tally:
        started = time.monotonic()
        tally = self.runner.judge(*portion)
        is_loaded = portion.block.subject.backend in self.loaded
        seconds = time.monotonic() - started if is_loaded else 0.0
        self.allotment.took(portion, tally.rows, seconds)
        self.loaded.add(portion.block.subject.backend)
        return tally
