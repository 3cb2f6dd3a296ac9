"""How windows are laid out over a plane, as objects that answer for themselves: the attributes of one call.

An object holds the attributes exactly as the caller passes them and knows what follows from them: whether they are
legal, the windows along each axis, which others lie near. It must not know which operators there are, how data is
drawn, or what an interface calls things. A further kind is a class here and a member of `Windows`; whoever has to
choose between the kinds does so by `match` with ``assert_never`` or by `per_kind`, and is named until it has chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import ClassVar, Self, TypeVar, get_args, get_type_hints

from poolproof.references.geometry import Axis, adaptive_axis, expand, windowed_axis
from poolproof.references.kept import kept_property

Lengths = tuple[int, ...]
"""An attribute list, or lengths along the spatial axes."""

SMALLEST = 2
"""Length of every axis in the smallest plane that is asked for: a window of one cell has a route, and a mask, apart."""


_MOST_LENGTH = (1 << 63) - 1
"""What an interface can be handed, and an array of integers hold."""


@dataclass(frozen=True)
class Attribute:
    """The name of an attribute, and whether it is a flag; all others are lists of integers."""

    name: str
    is_flag: bool


class Kind(ABC):
    """What every kind of windows answers.

    ``can_miss_input`` says whether a window may have no cell inside its plane, ``told_to_backward`` whether a backward
    takes the attributes too, for the shapes do not tell them.
    """

    can_miss_input: ClassVar[bool]
    told_to_backward: ClassVar[bool]

    def __str__(self) -> str:
        """The attributes that are not at their default, for a person."""
        given = {field: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        spelled = {field.name: value for field, value in given.items() if value != field.default}
        return ", ".join(f"{name} {value if value is True else list(value)}" for name, value in spelled.items())

    @classmethod
    def attributes(cls) -> tuple[Attribute, ...]:
        """The attributes in the order in which every API takes them."""
        return _attributes(cls)

    @classmethod
    def smallest(cls, spatial_rank: int) -> Self:
        """One window over a plane of `SMALLEST` cells along each axis."""
        return cls.tiling((SMALLEST,) * spatial_rank, SMALLEST)

    @classmethod
    @abstractmethod
    def tiling(cls, spatial_shape: Lengths, cells: int) -> Self:
        """Windows of ``cells`` cells along each axis, side by side, where ``cells`` divides the axis or exceeds it."""

    @abstractmethod
    def check(self, spatial_rank: int, api: str) -> None:
        """ValueError says which attribute of a call of ``api`` is illegal whatever the plane."""

    @abstractmethod
    def axes(self, spatial_shape: Lengths) -> tuple[Axis, ...]:
        """The windows along each axis of a plane. ValueError where there are none."""

    @abstractmethod
    def passed(self) -> Self:
        """The attributes for an interface in which only stride may be left empty."""

    @abstractmethod
    def other(self) -> Self:
        """Other windows for the same plane, which need not be legal."""

    @abstractmethod
    def resized(self, spatial_rank: int) -> Iterator[Self]:
        """Windows one cell larger or smaller along one axis, as far apart as before."""

    @property
    @abstractmethod
    def sizes(self) -> Lengths:
        """The one list that every call needs."""

    @property
    def is_dilated(self) -> bool:
        return False

    @property
    def is_padded(self) -> bool:
        return False

    @property
    def rounds_up(self) -> bool:
        """Whether a window that does not fit may be added at the end."""
        return False

    def has_own_stride(self, spatial_rank: int) -> bool:  # noqa: ARG002
        """Whether a stride says that windows lie nearer or farther apart than side by side."""
        return False


@dataclass(frozen=True)
class Windowed(Kind):
    """Windows of one size at equal distances. Lists hold one value, or one per axis; all but the first may be empty.

    An empty ``stride`` means stride = kernel_size.
    """

    kernel_size: Lengths
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    ceil_mode: bool = False

    can_miss_input = True
    told_to_backward = True

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
        if any(given > most for given, most in zip(padding, halves, strict=True)):
            raise ValueError(f"padding {list(self.padding)} exceeds half of kernel_size, {halves}")

    def axes(self, spatial_shape: Lengths) -> tuple[Axis, ...]:
        rank = len(spatial_shape)
        kernel = expand(self.kernel_size, rank)
        stride = expand(self.stride, rank, kernel)
        padding, dilation = expand(self.padding, rank, (0,)), expand(self.dilation, rank, (1,))
        lengths = zip(spatial_shape, kernel, stride, padding, dilation, strict=True)
        return tuple(windowed_axis(*axis, self.ceil_mode) for axis in lengths)

    def passed(self) -> Self:
        return self._passed

    @kept_property
    def _passed(self) -> Self:
        if self.padding and self.dilation:
            return self
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
class Adaptive(Kind):
    """So many windows along each axis, spread evenly over the plane; what their sizes are follows."""

    output_size: Lengths

    can_miss_input = False
    told_to_backward = False

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
        """None: their sizes cannot be chosen."""
        yield from ()

    @property
    def sizes(self) -> Lengths:
        return self.output_size


Windows = Windowed | Adaptive
"""Every kind there is."""

KINDS: tuple[type[Windows], ...] = get_args(Windows)

Choice = TypeVar("Choice")


def per_kind(what: str, choices: Mapping[type[Windows], Choice]) -> Mapping[type[Windows], Choice]:
    """``choices``, complete: TypeError names the kind of windows that has no ``what``."""
    for kind in KINDS:
        if kind not in choices:
            raise TypeError(f"{kind.__name__} windows have no {what}")
    return choices


@cache
def _attributes(kind: type[Kind]) -> tuple[Attribute, ...]:
    hints = get_type_hints(kind)
    return tuple(Attribute(field.name, hints[field.name] is bool) for field in fields(kind))  # type: ignore[arg-type]
