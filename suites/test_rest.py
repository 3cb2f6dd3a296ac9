"""What is left of a ``--budget`` when every block was asked its first cases: all blocks go on, turn by turn."""

from collections.abc import Callable


def test_rest(turn: int, spend: Callable[[], None]) -> None:  # noqa: ARG001
    spend()
