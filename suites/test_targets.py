"""Calls at the limits of known kernels."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("targets")


def test_targets(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
