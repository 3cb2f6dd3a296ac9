"""Shards: a plan dealt out to sessions that know nothing of each other, so that each takes about the same time.

Which part a session has follows from the plan, the backends and the numbers of its shard alone. `poolproof merge`
makes one run of the parts again.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass

from poolproof.reports.rows.verdicts import BadInput

MOST_SHARDS = 10_000


class ShardError(BadInput):
    """A shard that there is not; the text says which there are."""


@dataclass(frozen=True)
class Shard:
    """The ``number``-th of ``of`` parts of a plan, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From ``2/4``; `ShardError` for what is none."""
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(*map(int, found.groups())) if found else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise ShardError(f"--shard {text}: a shard is I/N, the I-th of N parts, from 1/N to N/N: 2/4")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def names(self, costs: Mapping[str, float]) -> frozenset[str]:
        """Which of all names are this shard's, where each costs so much; `ShardError` where some shard gets none."""
        if len(costs) < self.of:
            raise ShardError(f"--shard {self}: the options leave {len(costs):,} parts to deal out: take fewer shards")
        return deal(costs, self.of)[self.number - 1]


def deal(costs: Mapping[str, float], hands: int) -> list[frozenset[str]]:
    """Names dealt to some hands, the costly first, each to the one that has least so far.

    No hand gets more than 4/3 of what the best deal would give it (Graham, 1969: longest processing time first).
    """
    dealt: list[set[str]] = [set() for _ in range(hands)]
    loads = [(0.0, hand) for hand in range(hands)]
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        load, hand = heapq.heappop(loads)
        dealt[hand].add(name)
        heapq.heappush(loads, (load + costs[name], hand))
    return [frozenset(names) for names in dealt]
