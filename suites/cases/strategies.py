"""Strategies: how cases are drawn.

Every draw is legal by construction: nothing is filtered, so nothing is silently biased away. Sizes are drawn
from thresholds, not only from ranges: vector and tile widths, plane counts around core and lane counts, and the
limits where kernels switch to another route.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from poolproof.backends.abilities import ALL, Abilities
from poolproof.references.geometry import pooled_size, windowed_axis
from poolproof.references.layouts import DRAWN, TAGS, MemoryLayout, suitable
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed, Windows, per_kind
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws, composite
from poolproof.suites.cases.targets import known_geometries


def _beside(*lengths: int) -> tuple[int, ...]:
    return tuple(length + step for length in lengths for step in (-1, 0, 1))


LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 16, 17, 24, 31, 32, 33, 41, 47, 48, 55, 61, 63, 64, 65, 66)
"""Spatial lengths: every small one, then both sides of 16, 32 and 64, and widths W with a rounded-down 1/W."""

LONG_LENGTHS = tuple(sorted((*_beside(80, 96, 128, 192, 256, 512), 113, 130, 258, 384, 1025, 4097, 65537)))
"""Both sides of multiples of 16, 32 and 64 (tiles) and of 255 and 256 (repeat counters); one axis past 16 bits."""

PLANES = (*range(1, 7), 8, 12, *_beside(16, 20), 24, 25, *_beside(32, 40, 48, 64, 128))
"""N * C around lane counts (16, 32, 64, 128) and core counts (20, 24, 40, 48, 64)."""

EXTREME_PLANES = _beside(65536)
"""N * C around the end of 16 bits."""

WINDOWS = _beside(16, 32, 64, 128, 256)
"""Windows along an axis: both sides of what a vector, a tile row or a counter of 8 bits holds. Two axes of 16 make a
plane of 256."""

LARGE_KERNELS = (11, 13, 14, 15, 16, 17, 24, 31, 32, 33, 127, 128, 255, 256, 257, 1000, 1023, 1024, 1025)
"""Kernels whose area lies about 200 to 260, where a buffer or 8 bits end, and about 1000; and those whose length along
one axis does, or is more than 7, 8 and 10 bits count."""

LONG_STRIDES = _beside(16, 32, 64)
"""Strides around what a field of 8 bits counts in blocks of 8 elements, and around vectors."""

MANY_PLANES = _beside(256, 512, 1024, 2560, 3072, 4096)
"""N * C around multiples of lanes * cores and the limits of the library's templates."""

_AT_ENDS = ("first", "last", "plane_edges", "tile_borders")
INDICES = ("in_window", "forward", "crowded", "shared", "lattice", "lattice", *_AT_ENDS)


@dataclass(frozen=True)
class Profile:
    """What an aspect draws from; every tuple is sampled uniformly, so repeating an entry weighs it.

    ``budgets`` bounds the elements of ``self`` and of grad_output. ``layouts`` names the layouts that may occur (empty:
    all tensors contiguous), each chosen once before one of them comes again, ``tagged`` one with a format tag that all
    tensors have. With ``empty_windows`` the geometry leaves some window without any cell. With ``known_geometries``
    some cases have a geometry of the operator library's own tiling tests. With ``huge`` the plane has one of the `HUGE`
    sizes and few windows. ``abilities`` bounds the calls to those that an implementation has.
    """

    gradients: tuple[str, ...] = ("integers",)
    indices: tuple[str, ...] = INDICES
    values: tuple[str, ...] = ("normal",)
    scales: tuple[int, ...] = (0,)
    budgets: tuple[int, ...] = (64, 256, 1024, 4096)
    lengths: tuple[int, ...] = LENGTHS
    planes: tuple[int, ...] = PLANES
    layouts: tuple[str, ...] = ()
    tagged: str = ""
    empty_batches: bool = True
    empty_windows: bool = False
    known_geometries: bool = False
    huge: bool = False
    deterministic: tuple[bool, ...] = (False,)
    abilities: Abilities = ALL

    def within(self, abilities: Abilities) -> Profile:
        """Restrict the profile to what an implementation can do."""
        return replace(
            self,
            layouts=tuple(layout for layout in self.layouts if abilities.reaches(layout)),
            indices=self.indices if abilities.indices else ("forward",),
            empty_batches=self.empty_batches and abilities.empty_batch,
            abilities=abilities,
        )

    def is_possible_within(self, abilities: Abilities) -> bool:
        """Tell whether an implementation has such windows, and tensors with such a tag."""
        if self.empty_windows and not (abilities.padding and abilities.dilation):
            return False
        return not self.tagged or abilities.reaches(self.tagged)


HUGE = (4099, 4111, 8209)
"""Lengths of which any two make a plane of more than 2**24 cells."""


Layouts = tuple[tuple[str, str], ...]
"""Tensors of a case with the layouts that they have."""


class _WindowedAxis(NamedTuple):
    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int


@composite
def cases(draw: Draws, operator: Operator, dtype: str, index_dtype: str, profile: Profile) -> Case:
    """Draw a case of one operator in one pair of dtypes."""
    budget = draw.choose(profile.budgets)
    leading = _leading_shape(draw, budget, profile)
    remaining = max(budget // max(prod(leading), 1), 1)
    spatial, windows = planes.define(draw, operator, remaining, profile)
    fields = recipes.define(draw, operator, profile) | {"shape": (*leading, *spatial), "attributes": windows}
    case = Case(operator=operator.name, dtype=dtype, index_dtype=index_dtype, **fields)
    return replace(case, **layouts.define(draw, case, profile))


@composite
def planes(draw: Draws, operator: Operator, most: int, profile: Profile) -> tuple[Lengths, Windows]:
    """Draw the lengths of a plane of about ``most`` elements, and its windows."""
    return _GEOMETRIES[operator.windows](draw, operator.spatial_rank, most, profile)


@composite
def recipes(draw: Draws, operator: Operator, profile: Profile) -> dict[str, Any]:
    """Draw the fields of a case that its data are made by: recipes of values, gradients and indices, and a seed."""
    fields: dict[str, Any] = {"values": draw.choose(profile.values)}
    if "grad_output" in operator.inputs:
        fields["gradient"] = draw.choose(profile.gradients)
        fields["indices"] = draw.choose(profile.indices)
        fields["scale"] = draw.choose(profile.scales)
    return fields | {"deterministic": draw.choose(profile.deterministic), "seed": draw.between(0, 2**32 - 1)}


@composite
def layouts(draw: Draws, case: Case, profile: Profile) -> dict[str, Any]:
    """Draw the field of a case that says how its tensors lie in memory; and its shape, of which a tag asks a batch."""
    if profile.tagged:
        has_batch = len(case.shape) == case.api.spatial_rank + 2
        shape = case.shape if has_batch else (1, *case.shape)
        return {"shape": shape, "layouts": _tagged_layouts(draw, replace(case, shape=shape), profile)}
    return {"layouts": _layouts(draw, case, profile)} if profile.layouts else {}


def _leading_shape(draw: Draws, budget: int, profile: Profile) -> tuple[int, ...]:
    """Draw ([N,] C): half the time few planes, so that they can be large, else any count; rarely an empty batch."""
    counts = _up_to(max(budget // 2, 1), profile.planes)
    planes = draw.choose(counts[:4] if draw.flip() else counts)
    if EXTREME_PLANES[-1] <= budget // 2 and draw.between(0, 3) == 3:
        planes = draw.choose(EXTREME_PLANES)
    shape = draw.choose(["channels", "batch", "both", "unbatched", *["both"] * 2 * bool(profile.layouts)])
    if shape == "unbatched" and profile.abilities.unbatched:
        return (planes,)
    if shape in ("channels", "unbatched"):
        return (1, planes)
    if shape == "batch":
        return (planes, 1)
    if profile.empty_batches and draw.between(0, 31) == 31:
        return (0, planes)
    divisors = _divisors(planes)
    batch = draw.choose((profile.layouts and divisors[1:-1]) or divisors)
    return (batch, planes // batch)


def _huge_plane(draw: Draws, rank: int) -> tuple[int, ...]:
    return (*(1,) * (rank - 2), draw.choose(HUGE), draw.choose(HUGE[:2]))


@lru_cache(maxsize=1 << 14)
def _up_to(most: int, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Select those of ``numbers`` that are not larger than ``most``, or 1."""
    return tuple(number for number in numbers if number <= most) or (1,)


@lru_cache(maxsize=1 << 14)
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(divisor for divisor in range(1, number + 1) if number % divisor == 0)


def _adaptive_geometry(draw: Draws, rank: int, remaining: int, profile: Profile) -> tuple[Lengths, Windows]:
    if profile.huge:
        wanted = [draw.between(30, 60) for _ in range(2)]
        return _huge_plane(draw, rank), Adaptive(_possible((*(1,) * (rank - 2), *wanted), profile.abilities))
    sizes, outputs, windows = list[int](), list[int](), 4 * remaining
    for _ in range(rank):
        size = draw.choose(_up_to(remaining, profile.lengths))
        output = min(_adaptive_output(draw, size), max(windows, 1))
        sizes.append(size)
        outputs.append(output)
        remaining, windows = max(remaining // size, 1), max(windows // output, 1)
    return tuple(sizes), Adaptive(_possible(tuple(outputs), profile.abilities))


def _possible(lengths: Lengths, abilities: Abilities) -> Lengths:
    """Take the smallest length for all axes if an implementation has equal ones only."""
    return lengths if abilities.unequal_axes else (min(lengths),) * len(lengths)


def _adaptive_output(draw: Draws, size: int) -> int:
    """Draw an output length that divides the input, does not, equals it, or exceeds it."""
    style = draw.choose(["any", "divisor", "near", "larger", "much_larger"])
    if style == "divisor":
        return draw.choose(_divisors(size))
    if style == "near":
        return max(1, size + draw.between(-1, 1))
    if style == "larger":
        return draw.between(size, 3 * size)
    if style == "much_larger":
        return draw.choose([16, 17, 64, 65, 255, 256, 300, 1000])
    return draw.between(1, size)


def _windowed_geometry(draw: Draws, rank: int, remaining: int, profile: Profile) -> tuple[Lengths, Windows]:
    able = profile.abilities
    if profile.huge:
        kernel, stride = draw.between(2, 7), draw.between(100, 200)
        kernels = _possible((*(1,) * (rank - 2), kernel, kernel), able)
        return _huge_plane(draw, rank), Windowed(kernels, (stride,), (0,), (1,))
    if profile.known_geometries:
        fitting = (known for known in known_geometries(rank) if prod(known.spatial) <= remaining)
        known = [(spatial, windows.passed()) for _, spatial, windows in fitting if able.have(windows.passed())]
        if known and draw.between(0, 3) == 3:
            return draw.choose(known)
    ceil_mode = draw.flip() and able.ceil_mode
    isotropic = draw.flip() or not able.unequal_axes
    axes: list[_WindowedAxis] = []
    empty = draw.between(0, rank - 1) if profile.empty_windows else None
    for number in range(rank):
        room = max(round(remaining ** (1 / (rank - number))), 1) if isotropic else remaining
        size = draw.choose(_up_to(room, profile.lengths))
        if not (isotropic and number):
            pattern = _window_pattern(draw, size, room)
            padding, dilation = pattern.padding * able.padding, pattern.dilation if able.dilation else 1
            pattern = pattern._replace(padding=padding, dilation=dilation)
        legal = _legal_axis(pattern.size or size, pattern, ceil_mode)
        axes.append(_with_an_empty_window(draw) if number == empty else legal)
        remaining = max(remaining // axes[-1].size, 1)
    if empty is not None and not able.unequal_axes:
        axes = [axes[empty]] * rank
    sizes, kernels, strides, paddings, dilations = zip(*axes, strict=True)
    windows = Windowed(kernels, strides, paddings, _possible(dilations, able), ceil_mode)
    return sizes, shortened(windows) if draw.flip() else windows


_GEOMETRIES = per_kind("strategy", {Windowed: _windowed_geometry, Adaptive: _adaptive_geometry})
"""How the lengths of a plane and its windows are drawn together."""

_SMALL_STYLES = ("unit", "tiling", "sparse", *["overlapping"] * 3)
_STYLES = (*_SMALL_STYLES, "dilated", "dilated", "whole", "beyond", "large", "far_apart", "aimed", "aimed")
"""Relations of kernel, stride and length; repeated ones are drawn more often."""


def _window_pattern(draw: Draws, size: int, room: int) -> _WindowedAxis:
    """Draw kernel, stride, padding and dilation of one style, and the length where the style wants one, else 0.

    Where there is little ``room`` the window stays small, so that several axes do not outgrow the budget together. The
    number of draws is the same for every style: Hypothesis shrinks from one to another.
    """
    style = draw.choose(_STYLES if room > 4 else _SMALL_STYLES)
    small = draw.between(2, min(7, max(room, 2)))
    extra = draw.between(0, 5)
    spread = draw.between(2, 4)
    pick = draw.between(0, 89)
    large = LARGE_KERNELS[pick % len(LARGE_KERNELS)]
    kernel, stride, dilation = {
        "unit": (1, 1 + extra % 3, 1),
        "tiling": (small, small, 1),
        "sparse": (small - 1, small + extra, 1),
        "overlapping": (small, 1 + extra % small, 1),
        "dilated": (small, 1 + (extra + pick) % (small + spread), spread),
        "whole": (size, max(1, size // (1 + extra)), 1),
        "beyond": (size + extra, max(1, (size + spread) // (1 + extra % 4)), 1),
        "large": (large if large <= room else small, 1 + extra * spread, 1),
        "far_apart": (small, LONG_STRIDES[pick % len(LONG_STRIDES)], 1),
        "aimed": (small, 1 + extra % small, 1),
    }[style]
    padding = draw.choose([0, kernel // 2, (kernel // 2 + 1) // 2])
    length = _aimed_length(pick, room, kernel, stride, padding) if style == "aimed" else 0
    return _WindowedAxis(length, kernel, stride, padding, dilation)


def _aimed_length(pick: int, room: int, kernel: int, stride: int, padding: int) -> int:
    """Choose a length that gives one of `WINDOWS`, of those that there is room for; 0 where there is none."""
    lengths = [(windows - 1) * stride + kernel - 2 * padding for windows in WINDOWS]
    possible = [length for length in lengths if length <= room]
    return possible[pick % len(possible)] if possible else 0


def _legal_axis(size: int, pattern: _WindowedAxis, ceil_mode: bool) -> _WindowedAxis:
    """Fit the pattern on an axis with room for one window; drop the dilation where a window would miss the input."""
    kernel, stride, padding = pattern.kernel, pattern.stride, pattern.padding
    for dilation in dict.fromkeys((pattern.dilation, 1)):
        length = size
        if pooled_size(length, kernel, stride, padding, dilation, ceil_mode) < 1:
            length = max(size, dilation * (kernel - 1) + 1 - 2 * padding)
        axis = _WindowedAxis(length, kernel, stride, padding, dilation)
        if dilation == 1 or not windowed_axis(length, kernel, stride, padding, dilation, ceil_mode).has_empty_window:
            break  # undilated windows always meet their input
    return axis


def _with_an_empty_window(draw: Draws) -> _WindowedAxis:
    """Draw a legal axis with one window that steps over the whole input: one tap before it and one behind."""
    size = draw.between(1, 6)
    return _WindowedAxis(size, kernel=2, stride=draw.between(1, 3), padding=1, dilation=size + 1)


def shortened(windows: Windowed) -> Windowed:
    """Write the windows by lists of one value or none where that is possible."""
    names = [attribute.name for attribute in windows.attributes() if not attribute.is_flag]
    lists = {name: getattr(windows, name) for name in names}
    single = {name: values[:1] if len(set(values)) == 1 else values for name, values in lists.items()}
    if windows.stride == windows.kernel_size:
        single["stride"] = ()
    return replace(windows, **single)


def _layouts(draw: Draws, case: Case, profile: Profile) -> Layouts:
    """Draw layouts: one tensor strided alone, as most real defects need it, or all of them at once."""
    tensors = case.api.strided
    chosen = (draw.choose(tensors),) if draw.flip() else tensors
    drawn = {name: _layout(draw, case, name, profile.layouts, name) for name in chosen}
    return tuple(sorted(own for own in drawn.items() if own[1] != "contiguous"))


def _tagged_layouts(draw: Draws, case: Case, profile: Profile) -> Layouts:
    """Draw layouts under one tag: all tensors packed half the time, else one of them not."""
    packed = dict.fromkeys(sorted(case.api.tensors), profile.tagged)
    if draw.flip():
        name = draw.choose(case.api.strided)
        tag = TAGS[profile.tagged]
        alike = tuple(other for other in TAGS if TAGS[other] == tag and profile.abilities.reaches(other))
        packed[name] = _layout(draw, case, name, alike, f"tagged {name}")
    return tuple(packed.items())


def _layout(draw: Draws, case: Case, tensor: str, names: tuple[str, ...], group: str) -> str:
    """Draw one of the layouts that a tensor can have, and an offset, each as often as others of its group."""
    possible = suitable(names, case.tensor_shape(tensor), case.api.spatial_rank, case.sharing(tensor))
    layout = draw.balanced_choice(group, possible)
    return str(MemoryLayout(layout, draw.balanced_choice(layout, _OFFSETS)))


_OFFSETS = (0, 1, 3, 17)

ALL_LAYOUTS = (*DRAWN, "channels_last", "channels_last", "odd_units")
"""Every layout, and once more those that have kernels of their own."""
