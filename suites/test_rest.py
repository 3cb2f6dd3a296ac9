"""The rest of a ``--budget`` once the first cases of every block are judged: all blocks continue, slice by slice."""

from poolproof.suites.plugin import BlockTest


def test_rest(time_slice: int, judge: BlockTest) -> None:  # noqa: ARG001
    judge.time_slice()
