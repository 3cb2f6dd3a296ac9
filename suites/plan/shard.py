"""Shards: parts of a plan for independent sessions, each of which takes about the same time.

A session's part follows from the plan, the backends and the numbers of its shard alone. `poolproof merge` makes one
run of the parts.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass

from poolproof.reports.rows.verdicts import BadInput

MOST_SHARDS = 10_000


class ShardError(BadInput):
    """A shard that does not exist; the text says which do."""


@dataclass(frozen=True)
class Shard:
    """The ``number``-th of ``of`` parts of a plan, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a text such as ``2/4``; `ShardError` for anything else."""
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(*map(int, found.groups())) if found else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise ShardError(f"--shard {text}: a shard is I/N, the I-th of N parts, from 1/N to N/N: 2/4")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def names(self, costs: Mapping[str, float]) -> frozenset[str]:
        """Choose this shard's names, by the costs of all; `ShardError` if some shard would get none."""
        if len(costs) < self.of:
            raise ShardError(f"--shard {self}: the options leave {len(costs):,} parts to deal out: take fewer shards")
        return balance(costs, self.of)[self.number - 1]


def balance(costs: Mapping[str, float], parts: int) -> list[frozenset[str]]:
    """Divide names into parts of about the same cost: the costly first, each to the cheapest part so far.

    No part costs more than 4/3 of the optimum's largest (Graham, 1969: longest processing time first).
    """
    groups: list[set[str]] = [set() for _ in range(parts)]
    loads = [(0.0, part) for part in range(parts)]
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        load, part = heapq.heappop(loads)
        groups[part].add(name)
        heapq.heappush(loads, (load + costs[name], part))
    return [frozenset(names) for names in groups]
