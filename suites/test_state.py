"""Earlier calls, other streams, reused executors and a busy device change nothing."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("state")


def test_state(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
