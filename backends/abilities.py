"""Abilities: which calls of an operator an implementation has at all.

A framework that pools without padding is not wrong where padding is asked for; it does not do that. What a backend
declares here the strategies draw around, so that a run's cases are calls that it has; a case that is named all the same
is counted as not supported, with the reason. Who stands under a contract declares nothing: that says what it must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from poolproof.references.operators import Operator
from poolproof.references.windows import Windows


@dataclass(frozen=True)
class Abilities:
    """What the calls of one operator may be.

    padding, dilation, ceil_mode
        Windows with padding, with taps that lie apart, and of which the last may hang over the end.
    unbatched, empty_batch
        Tensors without a batch axis, and with one of length 0.
    layouts
        Names of the layouts (`poolproof.suites.cases.layouts`) that reach the implementation: none where an adapter
        hands over contiguous copies, so that nothing would be learned of strides. None for all of them.
    indices
        A backward takes indices that another forward could have made. Without, it finds them itself, by its forward
        rule; where that says any of the tied, it is asked which it took, and has to take them again in every call.
    """

    padding: bool = True
    dilation: bool = True
    ceil_mode: bool = True
    unbatched: bool = True
    empty_batch: bool = True
    layouts: tuple[str, ...] | None = None
    indices: bool = True

    def have(self, windows: Windows) -> bool:
        """Whether there are calls with those windows."""
        return self._without(_asked_by(windows)) is None

    def lacking(self, operator: Operator, shape: tuple[int, ...], windows: Windows) -> str | None:
        """Why a call with that shape of self and those windows is none of them; None if it is."""
        if self is ALL:
            return None
        batch = {"unbatched": len(shape) == operator.spatial_rank + 1, "empty_batch": shape[0] == 0}
        return self._without(_asked_by(windows) | batch)

    def _without(self, asked: Mapping[str, bool]) -> str | None:
        return next((_WITHOUT[name] for name, wanted in asked.items() if wanted and not getattr(self, name)), None)

    def __str__(self) -> str:
        """What it is without: "no padding, no dilation, layouts: none"."""
        flags = [f"no {name}" for name, value in self.to_record().items() if value is False]
        layouts = [] if self.layouts is None else [f"layouts: {', '.join(self.layouts) or 'none'}"]
        return ", ".join((*flags, *layouts)) or "all"

    def reaches(self, layout: str) -> bool:
        """Whether tensors of that layout reach the implementation as they lie."""
        return self.layouts is None or layout in self.layouts

    def to_record(self) -> dict[str, Any]:
        """What differs from `ALL`, for JSON."""
        return {name: value for name, value in asdict(self).items() if value != getattr(ALL, name)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Abilities:
        """From what `to_record` gave; ValueError or TypeError for anything else."""
        unknown = sorted(set(record) - {each.name for each in fields(cls)})
        if unknown:
            raise ValueError(f"abilities know no {unknown[0]!r}")
        layouts = record.get("layouts")
        return cls(**{**record, "layouts": None if layouts is None else tuple(map(str, layouts))})


def _asked_by(windows: Windows) -> dict[str, bool]:
    return {"padding": windows.is_padded, "dilation": windows.is_dilated, "ceil_mode": windows.rounds_up}


_WITHOUT = {
    "padding": "the implementation has no padding",
    "dilation": "the implementation has no dilation",
    "ceil_mode": "the implementation has no ceil_mode",
    "unbatched": "the implementation takes no tensor without a batch axis",
    "empty_batch": "the implementation takes no empty batch",
}

ALL = Abilities()
