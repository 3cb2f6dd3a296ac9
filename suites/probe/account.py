"""Accounts of a probe: observations with evidence, the model they amount to, and where a declaration disagrees."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Observation:
    """One trait that was looked at: what was found, and the evidence in a sentence."""

    trait: str
    found: str
    evidence: str = ""


@dataclass(frozen=True)
class Account:
    """All about one operator in one dtype and memory format.

    ``model`` is the narrowest accumulation model, of a forward the rule, that admits every output seen, as
    `AccumulationModel` and `ForwardRule` spell them; empty where there is none. ``declared`` is what the backend says.
    ``disagreements`` are the sentences that follow from comparing them.
    """

    operator: str
    dtype: str
    memory_format: str
    observations: tuple[Observation, ...]
    model: str = ""
    declared: str = ""
    disagreements: tuple[str, ...] = field(default=())

    def found(self, trait: str) -> str:
        """Return what was found of a trait; empty where it was not looked at."""
        return next((seen.found for seen in self.observations if seen.trait == trait), "")

    def to_record(self) -> dict[str, Any]:
        return asdict(self)
