"""The rest of a ``--budget`` once the first cases of every block are judged: all blocks continue, slice by slice."""

from collections.abc import Callable


def test_rest(time_slice: int, examine_slice: Callable[[], None]) -> None:  # noqa: ARG001
    examine_slice()
