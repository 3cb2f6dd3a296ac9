"""What a session asks; ``--aspect`` and ``-k`` choose among the blocks by name."""

from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plugin import BlockTest


def test_case(single: SingleBlock, judge: BlockTest) -> None:
    """Judge a single case, or low-level call, named by --case."""
    judge.single(single)


def test_conformance(block: Block, judge: BlockTest) -> None:
    judge.block(block)


def test_not_supported(unsupported: Subject, judge: BlockTest) -> None:
    """Skip operators and dtypes that a backend does not support, with the backend's own reason."""
    judge.unsupported(unsupported)


def test_rest(time_slice: int, judge: BlockTest) -> None:  # noqa: ARG001
    """Continue all blocks of a ``--budget``, whose first cases are judged by now, slice by slice."""
    judge.time_slice()
