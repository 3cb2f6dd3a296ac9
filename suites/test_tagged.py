"""Tensors under a format tag that says channels last."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("tagged")


def test_tagged(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
