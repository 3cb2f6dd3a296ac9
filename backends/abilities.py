"""Abilities: which calls of an operator an implementation supports.

A framework that pools without padding is not wrong about calls with padding; it has none. Strategies draw only calls
that a backend declares. A given case outside of them counts as not supported, with the reason. A backend with a
contract declares nothing: the contract says what it must support.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from poolproof.references.operators import Operator
from poolproof.references.windows import Windows


@dataclass(frozen=True)
class Abilities:
    """The calls of one operator that an implementation supports.

    Attributes:
        padding, dilation: Windows with padding, and with dilation.
        ceil_mode: A last window that extends past the end.
        unbatched, empty_batch: Tensors without a batch axis, and with one of length 0.
        layouts: Names of the layouts (`poolproof.references.layouts`) that reach the implementation; None for all. It
            is empty if the adapter passes contiguous copies, so that strides are not tested.
        indices: A backward accepts any legal indices. Otherwise it finds them itself, by its forward rule. If that rule
            allows any tied maximum, a first call shows the indices, and every further call must use the same ones.
        unequal_axes: Kernel, stride, padding, dilation or output_size may differ between axes.
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
        """Return why there is no call with that shape of self and those windows; None if there is."""
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
        """Check whether tensors of that layout reach the implementation without a copy."""
        return self.layouts is None or layout in self.layouts

    def to_record(self) -> dict[str, Any]:
        """Return what differs from `ALL`, for JSON."""
        return {name: value for name, value in asdict(self).items() if value != getattr(ALL, name)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Abilities:
        """Read what `to_record` wrote; raise ValueError or TypeError for anything else."""
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
