"""All aspects of conformance, block by block; ``--aspect`` and ``-k`` choose among them by name."""

from collections.abc import Callable

from poolproof.suites.plan.blocks import Block


def test_conformance(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
