"""All aspects of conformance, block by block; ``--aspect`` and ``-k`` choose among them by name."""

from poolproof.suites.plan.blocks import Block
from poolproof.suites.plugin import BlockTest


def test_conformance(block: Block, judge: BlockTest) -> None:
    judge.block(block)
