"""A backward accepts the indices of the implementation's own forward."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("round_trip")


def test_round_trip(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
