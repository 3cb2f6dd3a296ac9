"""NaN, infinities, subnormals and signed zeros go where they belong and nowhere else."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("special_values")


def test_special_values(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
