"""Inexact data: every sum stays within what the declared accumulation model can produce."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("precision")


def test_precision(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
