"""What the published pages print as examples."""

from collections.abc import Callable

import pytest

from poolproof.suites.running.plans import Block

pytestmark = pytest.mark.aspect("examples")


def test_examples(block: Block, examine: Callable[[Block], None]) -> None:
    examine(block)
