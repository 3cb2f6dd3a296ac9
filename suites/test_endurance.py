"""Thousands of calls leave nothing behind."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("endurance")


def test_endurance(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
