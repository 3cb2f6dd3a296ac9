"""Large planes and many planes behave like small ones."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("scale")


def test_scale(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
