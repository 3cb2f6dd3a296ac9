"""Abilities: which calls of an operator an implementation has at all.

A framework that pools without padding is not wrong about calls with padding; it has none. Strategies draw only calls
that a backend has by its declaration; a given case of another kind counts as not supported, with the reason. A backend
with a contract declares nothing: the contract says what it must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from poolproof.references.operators import Operator
from poolproof.references.windows import Windows


@dataclass(frozen=True)
class Abilities:
    """The calls that an implementation has of one operator.

    padding, dilation, ceil_mode
        Windows with padding, with dilation, and with a last window that extends past the end.
    unequal_axes
        Windows whose kernel, stride, padding, dilation or output_size differs between axes. False: square windows only.
    unbatched, empty_batch
        Tensors without a batch axis, and with one of length 0.
    layouts
        Names of the layouts (`poolproof.references.layouts`) that reach the implementation: none where an adapter
        hands over contiguous copies, so that strides are not tested. None for all of them.
    indices
        A backward takes any legal indices. Otherwise it finds them itself, by its forward rule; where that takes any of
        the tied, the indices are inferred from a first call, and every further call has to take them again.
    """

    padding: bool = True
    dilation: bool = True
    ceil_mode: bool = True
    unbatched: bool = True
    empty_batch: bool = True
    layouts: tuple[str, ...] | None = None
    indices: bool = True
    unequal_axes: bool = True

    def have(self, windows: Windows) -> bool:
        return self._without(_needed_by(windows)) is None

    def lacking(self, operator: Operator, shape: tuple[int, ...], windows: Windows) -> str | None:
        """Return the reason why there is no call with that shape of self and those windows; None if there is."""
        if self is ALL:
            return None
        batch = {"unbatched": len(shape) == operator.spatial_rank + 1, "empty_batch": shape[0] == 0}
        return self._without(_needed_by(windows) | batch)

    def _without(self, needed: Mapping[str, bool]) -> str | None:
        return next((_WITHOUT[name] for name, needs in needed.items() if needs and not getattr(self, name)), None)

    def __str__(self) -> str:
        """Spell what is missing: "no padding, no dilation, layouts: none"."""
        flags = [f"no {name}" for name, value in self.to_record().items() if value is False]
        layouts = [] if self.layouts is None else [f"layouts: {', '.join(self.layouts) or 'none'}"]
        return ", ".join((*flags, *layouts)) or "all"

    def reaches(self, layout: str) -> bool:
        """Check whether tensors of that layout reach the implementation uncopied."""
        return self.layouts is None or layout in self.layouts

    def to_record(self) -> dict[str, Any]:
        """Record what differs from `ALL`, for JSON."""
        return {name: value for name, value in asdict(self).items() if value != getattr(ALL, name)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Abilities:
        """Read what `to_record` wrote; ValueError or TypeError for anything else."""
        unknown = sorted(set(record) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"abilities know no {unknown[0]!r}")
        layouts = record.get("layouts")
        return cls(**{**record, "layouts": None if layouts is None else tuple(map(str, layouts))})


def _needed_by(windows: Windows) -> dict[str, bool]:
    needed = {"padding": windows.is_padded, "dilation": windows.is_dilated, "ceil_mode": windows.rounds_up}
    return needed | {"unequal_axes": windows.differs_by_axis}


_WITHOUT = {
    "padding": "the implementation has no padding",
    "dilation": "the implementation has no dilation",
    "ceil_mode": "the implementation has no ceil_mode",
    "unequal_axes": "the implementation has no windows that differ between axes",
    "unbatched": "the implementation takes no tensor without a batch axis",
    "empty_batch": "the implementation takes no empty batch",
}

ALL = Abilities()
