"""Calls that interfaces without a contract may refuse by their published documentation, with its source.

Where an interface has a contract (`poolproof.references.contract`), that says which calls are refused. These rows are
permissions: a call that is accepted all the same must give the right result.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class RefusalCondition(Enum):
    """The calls that a row is about."""

    DETERMINISTIC_BACKWARD = auto()
    """A backward while deterministic algorithms are demanded."""
    EMPTY_WINDOW = auto()
    """A forward with a window that has no cell inside the plane."""


ANY_INTERFACE = ""
"""The name of every interface that has no row of its own."""

REFUSALS: Mapping[str, Mapping[RefusalCondition, str]] = {
    "torch-cpu": {},
    # torch.use_deterministic_algorithms, list of operations that throw
    "torch-cuda": {RefusalCondition.DETERMINISTIC_BACKWARD: "torch lists {operator} on cuda as not deterministic"},
    # the claim of the aspect empty_windows: no document says what such a window gives
    ANY_INTERFACE: {RefusalCondition.EMPTY_WINDOW: "windows without a cell are refused"},
}
"""By the interface that a backend implements (`Backend.interface`): the calls that it may refuse, and the reason, which
may name ``{operator}``, the interface's own name."""
