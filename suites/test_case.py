"""The single cases, or low-level calls, named by --case."""

from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plugin import Examiner


def test_case(single: SingleBlock, examine: Examiner) -> None:
    examine.single(single)
