"""The contract: every clause of every API, alone, in pairs and at its boundary."""

from collections.abc import Callable

import pytest

from poolproof.suites.judging.contract import ContractBlock

pytestmark = pytest.mark.aspect("contract")


def test_contract(block: ContractBlock, examine: Callable[[ContractBlock], None]) -> None:
    examine(block)
