"""The single cases, or low-level calls, named by --case."""

from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plugin import BlockTest


def test_case(single: SingleBlock, judge: BlockTest) -> None:
    judge.single(single)
