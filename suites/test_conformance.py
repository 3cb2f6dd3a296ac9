"""The tests of a session; ``--aspect`` and ``-k`` choose among the blocks by name."""

from poolproof.suites.plan.blocks import Block
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plugin import BlockTest
from poolproof.suites.run.time_budget import BlockPart


def test_case(single: SingleBlock, judge: BlockTest) -> None:
    """Judge a single case, or low-level call, named by --case."""
    judge.single(single)


def test_conformance(block: Block | BlockPart, judge: BlockTest) -> None:
    """Judge a block, or a part of it if the session has a ``--budget``."""
    judge.block(block)


def test_not_supported(unsupported: Subject, judge: BlockTest) -> None:
    """Skip operators and dtypes that a backend does not support, with the backend's own reason."""
    judge.unsupported(unsupported)


def test_further_seed(further_seed: int, judge: BlockTest) -> None:
    """Judge the drawn cases of a further seed, after the plan and within a ``--budget TIME+``."""
    judge.further_seed(further_seed)
