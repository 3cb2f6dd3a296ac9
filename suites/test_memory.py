"""Calls leave no device memory behind."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("memory")


def test_memory(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
