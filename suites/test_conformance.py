"""All aspects of conformance, block by block; ``--aspect`` and ``-k`` choose among them by name."""

from poolproof.suites.plan.blocks import Block
from poolproof.suites.plugin import Examiner


def test_conformance(block: Block, examine: Examiner) -> None:
    examine.block(block)
