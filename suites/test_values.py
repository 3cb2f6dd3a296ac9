"""Exact data: every gradient arrives where its index says, every maximum is found."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("values")


def test_values(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
