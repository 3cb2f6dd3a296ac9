"""A scheduler of xdist for sessions with a budget: each worker judges its own blocks, and their parts in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.selection import balance, tested_block


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Distributes blocks by cost to one lane per worker, and other tests by the characters of their names."""

    def __init__(self, config: pytest.Config, log: Any, blocks: Iterable[Block]) -> None:
        super().__init__(config, log)
        costs = {block.id.encode("unicode_escape").decode(): block.cost for block in blocks}
        self._lanes = {name: lane for lane, names in enumerate(balance(costs, self.numnodes)) for name in names}

    def _split_scope(self, nodeid: str) -> str:
        """Return the lane of a test."""
        fallback = sum(map(ord, nodeid)) % self.numnodes
        return str(self._lanes.get(tested_block(nodeid), fallback))
