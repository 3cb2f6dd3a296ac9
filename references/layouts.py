"""Memory layouts: how programs spread a tensor's elements over its storage.

A layout is a name, optionally with a storage offset in elements: ``channels_last``, ``sliced+17``. Axes have the
letters n c d h w. A tensor without batch has no n, and a 2-D one has no d.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import prod
from operator import mul
from typing import NamedTuple

import numpy as np

from poolproof.references.formats import FORMATS
from poolproof.references.indices import INDEX_DTYPES

Shape = tuple[int, ...]
Strides = tuple[int, ...]

_SPELLING = re.compile(r"(?P<name>[a-z_]+\d*)(?:\+(?P<offset>\d+))?")
AXES = "ncdhw"
PLANES = "nc"
"""The axes that count planes. The others count the cells, or windows, of one plane."""


class Placement(NamedTuple):
    """Strides in elements, and the number of storage elements before the tensor's first."""

    strides: Strides
    start: int = 0


Place = Callable[[Shape, str], Placement]
"""(shape, letters of the axes) -> placement of the tensor."""


def _as_it_is(letters: str) -> str:
    return letters


@dataclass(frozen=True)
class Arrangement:
    """A way to lay out a tensor.

    Attributes:
        about: One sentence for the reference.
        axes: Axes that the tensor must have.
        shared: Axes along which elements share memory. Only inputs may do this.
        marked: It suits every tensor with ``axes``, even if it only differs from contiguous in strides of axes of
            length 1,
            or not at all.
        order: Order of the axes of a packed tensor, under the layout's tag.
    """

    about: str
    place: Place
    axes: str = ""
    shared: str = ""
    marked: bool = False
    order: Callable[[str], str] = _as_it_is

    def suits(self, shape: Shape, letters: str) -> bool:
        """Tell whether a tensor can have this layout, and is then not contiguous."""
        if not set(self.axes) <= set(letters):
            return False
        if self.marked:
            return True
        strides, packed = (place(shape, letters).strides for place in (self.place, _nested(self.order)))
        return any(size > 1 and own != dense for size, own, dense in zip(shape, strides, packed, strict=True))


class MemoryLayout(NamedTuple):
    """A named arrangement of axes and gaps, with an offset in addition to its own."""

    name: str
    offset: int = 0

    @classmethod
    def parse(cls, text: str) -> MemoryLayout:
        match = _SPELLING.fullmatch(text)
        if match is None or match["name"] not in LAYOUTS:
            raise ValueError(f"unknown layout {text!r}: NAME or NAME+OFFSET with NAME one of {', '.join(LAYOUTS)}")
        return cls(match["name"], int(match["offset"] or 0))

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name

    @property
    def tag(self) -> str:
        """The format tag that says how to read the axes; empty for the usual one."""
        return TAGS.get(self.name, "")

    @property
    def repeats_elements(self) -> bool:
        """Whether several elements share memory. Only inputs may do this."""
        return bool(LAYOUTS[self.name].shared)

    def shares_along(self, axes: str) -> bool:
        """Tell whether elements share memory along ``axes`` only."""
        return set(LAYOUTS[self.name].shared) <= set(axes)

    def suits(self, shape: Shape, spatial_rank: int) -> bool:
        """Tell whether the layout suits a tensor of ``shape`` ([N,] C, *spatial)."""
        return LAYOUTS[self.name].suits(shape, _letters(shape, spatial_rank))

    def place(self, shape: Shape, spatial_rank: int) -> Placement:
        """Place the elements of a tensor of ``shape`` ([N,] C, *spatial) in its storage."""
        placed = LAYOUTS[self.name].place(shape, _letters(shape, spatial_rank))
        return Placement(placed.strides, placed.start + self.offset)


def suitable(names: tuple[str, ...], shape: Shape, spatial_rank: int, sharing: str) -> list[str]:
    """Select the layouts that suit a tensor which may share memory along the axes ``sharing``."""
    return _suitable(names, tuple(min(size, 2) for size in shape), spatial_rank, sharing)


@cache
def _suitable(names: tuple[str, ...], shape: Shape, spatial_rank: int, sharing: str) -> list[str]:
    """Select by lengths 0, 1 and 2: a layout only depends on which axes have several elements."""
    layouts = map(MemoryLayout, names)
    return [layout.name for layout in layouts if layout.shares_along(sharing) and layout.suits(shape, spatial_rank)]


def extent(shape: Shape, strides: Strides) -> int:
    """Count the storage elements from the first to the last one that the view touches."""
    if 0 in shape:
        return 0
    return 1 + sum(map(mul, shape, strides)) - sum(strides)


def _letters(shape: Shape, spatial_rank: int) -> str:
    return (PLANES + AXES[-spatial_rank:])[-len(shape) :]


def _nested(
    order: Callable[[str], str] = _as_it_is,
    *,
    cut: str = "",
    step: int = 1,
    before: int = 0,
    behind: int = 0,
    repeated: str = "",
    units: int = 0,
) -> Place:
    """Return a `Place` that nests axes without gaps; ``order`` gives their letters, outermost first.

    Along the axis ``cut`` it takes every ``step``-th element, and skips ``before`` elements first and ``behind`` last.
    Along the axes ``repeated`` it stores one element, with stride 0. If ``units`` is not 0, axes of length 1 have that
    stride.
    """

    def place(shape: Shape, letters: str) -> Placement:
        lengths = dict(zip(letters, shape, strict=True)) | dict.fromkeys(repeated, 1)
        if cut in lengths:
            lengths[cut] = before + step * lengths[cut] + behind
        strides, whole = {}, 1
        for axis in reversed(order(letters)):
            strides[axis] = whole
            whole *= lengths[axis] or 1
        start = before * strides.get(cut, whole)
        strides |= {axis: units for axis, size in zip(letters, shape, strict=True) if units and size == 1}
        factors = {cut: step} | dict.fromkeys(repeated, 0)
        return Placement(tuple(strides[axis] * factors.get(axis, 1) for axis in letters), start)

    return place


def _overlapping(axis: str) -> Arrangement:
    """Arrange patches of a contiguous tensor, each one step further along the next axis."""

    def place(shape: Shape, letters: str) -> Placement:
        outer = letters.index(axis)
        stored = list(shape)
        stored[outer], stored[outer + 1] = 1, shape[outer] + shape[outer + 1] - 1
        strides = list(_nested()(tuple(stored), letters).strides)
        strides[outer] = strides[outer + 1]
        return Placement(tuple(strides))

    following = AXES[AXES.index(axis) + 1].upper()
    about = f"Patches along {axis.upper()}, each one step further along {following}, as `unfold` makes them."
    return Arrangement(about, place, axis, shared=PLANES if axis == "n" else AXES[AXES.index(axis) :])


def _channels_last(letters: str) -> str:
    return letters.replace("c", "") + "c"


def _rotated(letters: str) -> str:
    return letters[: letters.index("c")] + letters[-1] + letters[letters.index("c") : -1]


def _exchanging(first: str, second: str) -> Callable[[str], str]:
    table = str.maketrans(first + second, second + first)
    return lambda letters: letters.translate(table)


_ORDINALS = {2: "second", 3: "third"}

LAYOUTS: dict[str, Arrangement] = {
    "contiguous": Arrangement("Row-major without gaps.", _nested(), marked=True),
    "channels_last": Arrangement("C innermost, without a format tag.", _nested(_channels_last), marked=True),
    "nhwc": Arrangement("C innermost, with the format tag NHWC or NDHWC.", _nested(_channels_last), marked=True),
    "transposed": Arrangement("H and W exchanged.", _nested(_exchanging("h", "w")), marked=True),
    "reversed": Arrangement("All axes in reverse order (column-major).", _nested(lambda axes: axes[::-1]), marked=True),
    "sliced": Arrangement("Every second element of a row.", _nested(cut="w", step=2), "w", marked=True),
    "padded_rows": Arrangement("Three unused elements after each row.", _nested(cut="w", behind=3), "w", marked=True),
    "odd_units": Arrangement("Contiguous; axes of length 1 have stride 7.", _nested(units=7), marked=True),
    "contiguous_slice": Arrangement(
        "The storage has one more item of the batch before the tensor.", _nested(cut="n", before=1), marked=True
    ),
    "channels_last_slice": Arrangement(
        "The same with C innermost.", _nested(_channels_last, cut="n", before=1), marked=True
    ),
    "batch_last": Arrangement("N innermost.", _nested(lambda letters: letters.replace("n", "") + "n"), "n"),
    "rotated": Arrangement("The last axis outermost in each item of the batch.", _nested(_rotated)),
    **{
        f"transposed_{first}{second}": Arrangement(
            f"{first.upper()} and {second.upper()} exchanged.", _nested(_exchanging(first, second)), first + second
        )
        for first, second in combinations(AXES, 2)
        if first + second != "hw"
    },
    **{
        f"stepped_{axis}{step}": Arrangement(
            f"Every {_ORDINALS[step]} element along {axis.upper()}.", _nested(cut=axis, step=step), axis
        )
        for step in (2, 3)
        for axis in AXES
        if (axis, step) != ("w", 2)
    },
    **{
        f"narrowed_{axis}": Arrangement(
            f"Along {axis.upper()}, the storage has one more element before the tensor and two behind it.",
            _nested(cut=axis, before=1, behind=2),
            axis,
        )
        for axis in AXES
        if axis != "n"
    },
    **{
        f"expanded_{axis}": Arrangement(
            f"One element, repeated along {axis.upper()} with stride 0.", _nested(repeated=axis), axis, shared=axis
        )
        for axis in AXES
    },
    "expanded_nc": Arrangement("One plane for all.", _nested(repeated=PLANES), PLANES, shared=PLANES),
    "expanded_all": Arrangement(
        "One element for all, as in the gradient of a sum.", _nested(repeated=AXES), shared=AXES
    ),
    **{f"overlapping_{axis}": _overlapping(axis) for axis in AXES if axis != "w"},
    **{
        f"nhwc_stepped_{axis}2": Arrangement(
            f"As nhwc, every second element along {axis.upper()}.",
            _nested(_channels_last, cut=axis, step=2),
            axis,
            order=_channels_last,
        )
        for axis in "nchwd"
    },
    **{
        f"apart_{axis}{bits}": Arrangement(
            f"More than 2^{bits} unused places behind the tensor's own along {axis.upper()}.",
            _nested(cut=axis, behind=(1 << bits) + 3),
            axis,
        )
        for axis in "hw"
        for bits in (8, 12, 16, 20)
    },
    "nhwc_narrowed_c": Arrangement(
        "As nhwc; along C, the storage has one more element before the tensor and two behind it.",
        _nested(_channels_last, cut="c", before=1, behind=2),
        "c",
        order=_channels_last,
    ),
    "nhwc_transposed": Arrangement("The format tag of nhwc on a row-major tensor.", _nested(), marked=True),
    "nhwc_odd_units": Arrangement(
        "As nhwc; axes of length 1 have stride 7.", _nested(_channels_last, units=7), marked=True
    ),
    "nhwc_expanded_c": Arrangement(
        "As nhwc; one element, repeated along C with stride 0.",
        _nested(_channels_last, repeated="c"),
        "c",
        shared="c",
        order=_channels_last,
    ),
}
"""The layouts by name. Their order decides which ones a seed draws."""

TAGS = {name: "NHWC" for name in LAYOUTS if name.partition("_")[0] == "nhwc"}
"""Layouts with a format tag, which all tensors of a call share."""

DRAWN = tuple(name for name in LAYOUTS if name not in TAGS and not name.startswith("apart_"))
"""Layouts for drawn cases. Each tensor may have its own."""

CONTIGUOUS = MemoryLayout("contiguous")


class Form(NamedTuple):
    """Storage of a tensor; strides and places count elements unless their names say bytes.

    Attributes:
        start: Place of the tensor's first element in the storage.
        extent: Elements of the storage.
        is_dense: Every element of the storage is one element of the tensor.
        bits: The unsigned integer dtype of an element's size.
        nbytes: Bytes of the storage.
    """

    shape: Shape
    dtype: np.dtype
    strides: Strides
    start: int
    extent: int
    is_dense: bool
    tag: str
    bits: np.dtype
    nbytes: int
    start_byte: int
    byte_strides: Strides


@lru_cache(maxsize=256)
def storage_form(shape: Shape, dtype: str, layout: MemoryLayout, spatial_rank: int) -> Form:
    """Place a tensor in its storage. Cached, because the runs and neighbours of a case share layouts."""
    numpy_dtype = _DTYPES[dtype]
    size = numpy_dtype.itemsize
    placed = layout.place(shape, spatial_rank)
    elements = placed.start + extent(shape, placed.strides)
    return Form(
        shape,
        numpy_dtype,
        placed.strides,
        placed.start,
        elements,
        is_dense=elements == prod(shape) and not layout.repeats_elements,
        tag=layout.tag.replace("H", "DH") if spatial_rank == 3 else layout.tag,
        bits=BITS[size],
        nbytes=elements * size,
        start_byte=placed.start * size,
        byte_strides=tuple([size * stride for stride in placed.strides]),
    )


_DTYPES = {name: fmt.dtype for name, fmt in FORMATS.items()} | {name: np.dtype(name) for name in INDEX_DTYPES}

BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Bytes of an element -> unsigned integer dtype."""
