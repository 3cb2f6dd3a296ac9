"""Calls that interfaces without a contract may refuse by their published documentation, with its source.

Where an interface has a contract (`poolproof.references.contract`), that says which calls are refused. These rows are
permissions: a call that is accepted all the same must give the right result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class RefusalCondition(Enum):
    """The calls that a row is about."""

    DETERMINISTIC_BACKWARD = auto()
    """A backward while deterministic algorithms are demanded."""
    EMPTY_WINDOW = auto()
    """A forward with a window that has no cell inside the plane."""


@dataclass(frozen=True)
class PublishedRefusal:
    """A kind of call that an interface may refuse; ``reason`` may name ``{operator}``, the interface's own name."""

    condition: RefusalCondition
    reason: str
    source: str


def _not_deterministic(device: str) -> PublishedRefusal:
    return PublishedRefusal(
        RefusalCondition.DETERMINISTIC_BACKWARD,
        f"torch lists {{operator}} on {device} as not deterministic",
        "torch.use_deterministic_algorithms, list of operations that throw",
    )


ANY_INTERFACE = ""
"""The name of every interface that has no row of its own."""

REFUSALS: dict[str, tuple[PublishedRefusal, ...]] = {
    "torch-cpu": (),
    "torch-cuda": (_not_deterministic("cuda"),),
    "torch-npu": (_not_deterministic("npu"),),
    ANY_INTERFACE: (
        PublishedRefusal(
            RefusalCondition.EMPTY_WINDOW,
            "windows without a cell are refused",
            "the claim of the aspect empty_windows: no document says what such a window gives",
        ),
    ),
}
"""Permissions by the interface that a backend implements (`Backend.interface`)."""
