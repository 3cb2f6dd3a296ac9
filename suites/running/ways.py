"""Ways to spend a time on a plan: which block is next, and how many of its cases.

A way knows what all processes of the run have taken and learned, and nothing of how that is shared among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from poolproof.reports.rows.costs import usual_cost
from poolproof.suites.running.journal import Journal
from poolproof.suites.running.plans import Block, root_of

_PORTIONS = 8
"""Of the cases of a block that the time left is enough for, one part in so many is taken at once: blocks advance evenly
until the end."""

_VISITS = 500
"""How many portions the time left is cut into where blocks are drawn by what is new in them."""

_SHORTEST, _LONGEST = 0.06, 10.0
"""Seconds of such a portion: below it, drawing the cases before it would cost more than it is worth; above it, others
wait too long for what they show."""

_FEW, _LITTLE = 4, 5.0
"""Cases that a block is asked first, where one costs no more than so many of the aspect ``values``."""

_UNKNOWN = 0.1
"""Seconds of a case of which nobody knows: slow, so that few are asked at once."""


class Way(Protocol):
    """How a time is spent."""

    @property
    def told(self) -> str:
        """How the last line of a run tells where its time went; empty where it tells the share of all blocks."""

    @property
    def learns(self) -> bool:
        """Whether it wants to know what cases show."""

    @property
    def goes_beyond(self) -> bool:
        """Whether a block that is asked to its end goes on with cases that the plan does not have."""

    def ordered(self, blocks: Sequence[Block]) -> list[Block]:
        """Blocks in the order in which they are asked for the first time."""

    def first(self, block: Block) -> int:
        """How many cases a block is asked then."""

    def choose(self, open_ones: Sequence[Block], known: Journal, left: float) -> tuple[Block, int]:
        """One of the blocks that have cases left, and how many of these, where processes have so many seconds left
        together.
        """


@dataclass(frozen=True)
class Evenly:
    """All blocks are asked the same part of their cases, whatever a case of each costs."""

    told: str = ""
    learns: bool = False
    goes_beyond: bool = False

    def ordered(self, blocks: Sequence[Block]) -> list[Block]:
        return sorted(blocks, key=lambda block: block.aspect.id)

    def first(self, block: Block) -> int:
        return block.least

    def choose(self, open_ones: Sequence[Block], known: Journal, left: float) -> tuple[Block, int]:
        block = min(open_ones, key=lambda block: known.taken.get(block.id, 0) / block.count)
        needed = sum(known.paces.get(root_of(each.id), 0.0) * _rest(each, known) for each in open_ones)
        possible = min(left / needed, 1.0) if needed else 0.0
        rest = _rest(block, known)
        return block, min(max(block.grain, int(possible * rest / _PORTIONS)), rest)


@dataclass(frozen=True)
class WhereMostIsNew:
    """Time goes to blocks in proportion to the share of what they show that nobody saw before, so that more is asked of
    what costs little. The first cases of all blocks come before, those that cost least at first.
    """

    told: str = "where most is new"
    learns: bool = True
    goes_beyond: bool = True

    def ordered(self, blocks: Sequence[Block]) -> list[Block]:
        return sorted(blocks, key=lambda block: (self.first(block) * usual_cost(block.aspect.id), block.aspect.id))

    def first(self, block: Block) -> int:
        """The first that is drawn is the simplest, and shows least."""
        few = block.grain == 1 and usual_cost(block.aspect.id) <= _LITTLE
        return max(block.least, min(_FEW if few else 1, block.count))

    def choose(self, open_ones: Sequence[Block], known: Journal, left: float) -> tuple[Block, int]:
        block = min(open_ones, key=lambda block: _time_had(block, known))
        rest = _rest(block, known)
        if block.grain > 1:
            return block, rest  # all of them have to be made to ask one
        seconds = min(max(left / _VISITS, _SHORTEST), _LONGEST)
        return block, min(max(int(seconds / _pace(block, known)), 1), rest)


EVENLY, WHERE_MOST_IS_NEW = Evenly(), WhereMostIsNew()


def _rest(block: Block, known: Journal) -> int:
    return block.count - known.taken.get(block.id, 0)


def _time_had(block: Block, known: Journal) -> float:
    """Seconds that a block had, for what it is worth: who is behind the others is next."""
    root = root_of(block.id)
    return known.spent[root] / known.sightings.unseen(root)


def _pace(block: Block, known: Journal) -> float:
    """Seconds of a case."""
    return known.paces.get(root_of(block.id), _UNKNOWN)
