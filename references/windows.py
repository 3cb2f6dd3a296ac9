"""Kinds of windows over a plane, as objects with the attributes of one call.

An object holds the attributes exactly as the caller passes them. It knows whether they are legal, the windows along
each axis, and similar windows. It knows no operator, no data and no interface's names. To add a kind, write a class
here and add it to `Windows`. Code chooses between kinds by `match` with ``assert_never`` or by `per_kind`, which both
name the places that lack a kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeVar, Union, get_args, get_type_hints

from poolproof.references.geometry import Axis, adaptive_axis, expand, windowed_axis

if TYPE_CHECKING:
    from typing import Self

Lengths = tuple[int, ...]
"""An attribute list, or lengths along the spatial axes."""

SMALLEST = 2
"""Length of every axis in the smallest plane of a call. Windows of one cell have a route, and a mask, of their own."""


_MOST_LENGTH = (1 << 63) - 1
"""The greatest int64."""


@dataclass(frozen=True)
class Attribute:
    """The name of an attribute. It is a flag or a list of integers."""

    name: str
    is_flag: bool


class WindowKind(ABC):
    """One kind of windows.

    Attributes:
        can_miss_input: A window may have no cell inside its plane.
        backward_takes_attributes: A backward takes the attributes, because they do not follow from the shapes.
    """

    can_miss_input: ClassVar[bool]
    backward_takes_attributes: ClassVar[bool]

    def __str__(self) -> str:
        """Spell the attributes that differ from their defaults, for a person."""
        values = {field: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        changed = {field.name: value for field, value in values.items() if value != field.default}
        return ", ".join(f"{name} {value if value is True else list(value)}" for name, value in changed.items())

    @classmethod
    @cache
    def attributes(cls) -> tuple[Attribute, ...]:
        """List the attributes in API order."""
        hints = get_type_hints(cls)
        return tuple(Attribute(field.name, hints[field.name] is bool) for field in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def smallest(cls, spatial_rank: int) -> Self:
        """Lay one window over a plane of `SMALLEST` cells along each axis."""
        return cls.tiling((SMALLEST,) * spatial_rank, SMALLEST)

    @classmethod
    @abstractmethod
    def tiling(cls, spatial_shape: Lengths, cells: int) -> Self:
        """Lay windows of ``cells`` cells along each axis side by side; ``cells`` divides the axis or exceeds it."""

    @abstractmethod
    def check(self, spatial_rank: int, api: str) -> None:
        """Raise ValueError, with the attribute's name, if a call of ``api`` would be illegal on every plane."""

    @abstractmethod
    def axes(self, spatial_shape: Lengths) -> tuple[Axis, ...]:
        """Return the windows along each axis of a plane; raise ValueError if there are none."""

    @abstractmethod
    def passed(self) -> Self:
        """Fill in the attributes for an interface where only stride may be empty."""

    @abstractmethod
    def other(self) -> Self:
        """Return different windows for the same plane, which may be illegal."""

    @abstractmethod
    def resized(self, spatial_rank: int) -> Iterator[Self]:
        """Yield windows one cell larger or smaller along one axis, at the same stride."""

    @property
    @abstractmethod
    def sizes(self) -> Lengths:
        """The only list that every call needs."""

    @property
    def is_dilated(self) -> bool:
        return False

    @property
    def is_padded(self) -> bool:
        return False

    @property
    def rounds_up(self) -> bool:
        """Whether a last window that does not fit completely may be added."""
        return False

    @property
    def differs_by_axis(self) -> bool:
        """Whether one of its lists holds different values."""
        return any(len(set(getattr(self, each.name))) > 1 for each in self.attributes() if not each.is_flag)

    def has_own_stride(self, spatial_rank: int) -> bool:  # noqa: ARG002
        """Check whether the stride differs from the window's size."""
        return False


@dataclass(frozen=True)
class Windowed(WindowKind):
    """Windows of one size at equal distances; an empty ``stride`` means stride = kernel_size.

    Lists hold one value, or one per axis. All but ``kernel_size`` may be empty.
    """

    kernel_size: Lengths
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    ceil_mode: bool = False

    can_miss_input = True
    backward_takes_attributes = True

    @classmethod
    def tiling(cls, spatial_shape: Lengths, cells: int) -> Self:  # noqa: ARG003
        return cls(kernel_size=(cells,))

    def check(self, spatial_rank: int, api: str) -> None:
        for name, least in (("kernel_size", 1), ("stride", 1), ("padding", 0), ("dilation", 1)):
            values = getattr(self, name)
            lengths = sorted({1, spatial_rank} if name == "kernel_size" else {0, 1, spatial_rank})
            if len(values) not in lengths:
                raise ValueError(f"{name} of {api} has length {' or '.join(map(str, lengths))}")
            if min(values, default=least) < least:
                raise ValueError(f"{name} must be at least {least}")
            if max(values, default=least) > _MOST_LENGTH:
                raise ValueError(f"{name} is beyond every address")
        halves = [length // 2 for length in expand(self.kernel_size, spatial_rank)]
        padding = expand(self.padding, spatial_rank, (0,))
        if any(given > most for given, most in zip(padding, halves)):
            raise ValueError(f"padding {list(self.padding)} exceeds half of kernel_size, {halves}")

    def axes(self, spatial_shape: Lengths) -> tuple[Axis, ...]:
        rank = len(spatial_shape)
        kernel = expand(self.kernel_size, rank)
        stride = expand(self.stride, rank, kernel)
        padding, dilation = expand(self.padding, rank, (0,)), expand(self.dilation, rank, (1,))
        lengths = zip(spatial_shape, kernel, stride, padding, dilation)
        return tuple(windowed_axis(*axis, self.ceil_mode) for axis in lengths)

    def passed(self) -> Self:
        return replace(self, padding=self.padding or (0,), dilation=self.dilation or (1,))

    def other(self) -> Self:
        return replace(self, stride=(1,), padding=(), dilation=(), ceil_mode=not self.ceil_mode)

    def resized(self, spatial_rank: int) -> Iterator[Self]:
        kernel = expand(self.kernel_size, spatial_rank)
        stride = expand(self.stride, spatial_rank, kernel)
        for number, length in enumerate(kernel):
            for changed in (length - 1, length + 1):
                yield replace(self, kernel_size=(*kernel[:number], changed, *kernel[number + 1 :]), stride=stride)

    @property
    def sizes(self) -> Lengths:
        return self.kernel_size

    @property
    def is_dilated(self) -> bool:
        return max(self.dilation, default=1) > 1

    @property
    def is_padded(self) -> bool:
        return max(self.padding, default=0) > 0

    @property
    def rounds_up(self) -> bool:
        return self.ceil_mode

    def has_own_stride(self, spatial_rank: int) -> bool:
        kernel = expand(self.kernel_size, spatial_rank)
        return expand(self.stride, spatial_rank, kernel) != kernel


@dataclass(frozen=True)
class Adaptive(WindowKind):
    """A number of windows along each axis, spread evenly over the plane, which determines their sizes."""

    output_size: Lengths

    can_miss_input = False
    backward_takes_attributes = False

    @classmethod
    def tiling(cls, spatial_shape: Lengths, cells: int) -> Self:
        return cls(output_size=tuple(max(length // cells, 1) for length in spatial_shape))

    def check(self, spatial_rank: int, api: str) -> None:
        if len(self.output_size) != spatial_rank:
            raise ValueError(f"{api} needs an output_size of length {spatial_rank}")

    def axes(self, spatial_shape: Lengths) -> tuple[Axis, ...]:
        return tuple(map(adaptive_axis, spatial_shape, self.output_size))

    def passed(self) -> Self:
        return self

    def other(self) -> Self:
        return replace(self, output_size=self.output_size[::-1])

    def resized(self, spatial_rank: int) -> Iterator[Self]:  # noqa: ARG002
        """Yield none: an adaptive call cannot choose sizes."""
        yield from ()

    @property
    def sizes(self) -> Lengths:
        return self.output_size


Windows = Union[Windowed, Adaptive]

KINDS: tuple[type[Windows], ...] = get_args(Windows)

Choice = TypeVar("Choice")


def per_kind(what: str, choices: Mapping[type[Windows], Choice]) -> Mapping[type[Windows], Choice]:
    """Return ``choices`` if complete; otherwise raise TypeError with the kind of windows that has no ``what``."""
    for kind in KINDS:
        if kind not in choices:
            raise TypeError(f"{kind.__name__} windows have no {what}")
    return choices
