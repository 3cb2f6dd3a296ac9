"""Calls that interfaces without a contract may refuse, with the published source of each permission.

For an interface with a contract, `poolproof.references.contract` says which calls are refused. Rows here are
permissions: if a call is accepted nevertheless, its result must be right. A backend of an interface without documents
here gives its own (`Backend.may_refuse`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class RefusalCondition(Enum):
    """The calls that a row covers."""

    DETERMINISTIC_BACKWARD = auto()
    """A backward in deterministic mode."""
    EMPTY_WINDOW = auto()
    """A forward with a window that has no cell inside the plane."""


DECLARED = "as its adapter declares: "
"""Start of the reason of a refusal that only the adapter of the backend documents."""

ANY_INTERFACE = ""
"""Stands for every interface without a row of its own."""

REFUSALS: Mapping[str, Mapping[RefusalCondition, str]] = {
    "torch-cpu": {},
    # torch.use_deterministic_algorithms, list of operations that throw
    "torch-cuda": {RefusalCondition.DETERMINISTIC_BACKWARD: "torch lists {operator} on cuda as not deterministic"},
    # claim of the aspect empty_windows: no document defines the result of such a window
    ANY_INTERFACE: {RefusalCondition.EMPTY_WINDOW: "windows without a cell are refused"},
}
"""Interface (`Backend.interface`) -> calls that it may refuse -> reason, with ``{operator}`` for its own name."""
