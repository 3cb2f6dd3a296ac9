"""What interfaces without a contract may turn down, by their published documentation: rows, each with its source.

Where an interface has a contract (`poolproof.references.contract`), that says which calls are refused. These rows are
permissions: a call that is accepted all the same must come out right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Condition(Enum):
    """What a call must be like for a row to speak of it."""

    DETERMINISTIC_BACKWARD = auto()
    """A backward, asked for while deterministic algorithms are demanded."""
    EMPTY_WINDOW = auto()
    """A forward with a window that has no cell inside the plane."""


@dataclass(frozen=True)
class PublishedRefusal:
    """A kind of call that an interface may refuse; ``reason`` may name ``{operator}``, the interface's own name."""

    condition: Condition
    reason: str
    source: str


def _not_deterministic(device: str) -> PublishedRefusal:
    return PublishedRefusal(
        Condition.DETERMINISTIC_BACKWARD,
        f"torch lists {{operator}} on {device} as not deterministic",
        "torch.use_deterministic_algorithms, list of operations that throw",
    )


ANY_INTERFACE = ""
"""The name under which an interface stands that no row names."""

REFUSALS: dict[str, tuple[PublishedRefusal, ...]] = {
    "torch-cpu": (),
    "torch-cuda": (_not_deterministic("cuda"),),
    "torch-npu": (_not_deterministic("npu"),),
    ANY_INTERFACE: (
        PublishedRefusal(
            Condition.EMPTY_WINDOW,
            "windows without a cell are refused",
            "the claim of the aspect empty_windows: no document says what such a window gives",
        ),
    ),
}
"""Permissions by the interface that a backend implements (`Backend.interface`)."""
