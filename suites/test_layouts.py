"""Strides, gaps and offsets of any tensor change nothing."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("layouts")


def test_layouts(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
