"""Windows that miss the plane are refused, or harmless."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("empty_windows")


def test_empty_windows(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
