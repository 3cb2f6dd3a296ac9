"""The same call gives the same bits, as often as it is made."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("determinism")


def test_determinism(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
