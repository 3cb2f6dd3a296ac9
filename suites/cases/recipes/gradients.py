"""Recipes for grad_output, each aimed at one way in which a scatter-add goes wrong.

Every recipe returns values that the case's dtype represents exactly. Recipes know where each gradient lands
(`Landing`), so that they can size integers by the case's own multiplicity or arrange what meets in one cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import FLOAT32, FLOAT64, Float64, FloatFormat
from poolproof.references.geometry import Axis, Int64
from poolproof.suites.cases.recipes import described
from poolproof.suites.cases.recipes.spreads import parse_spread
from poolproof.suites.cases.recipes.stream import RandomStream, draw_bulk

_AT_ONCE = 1 << 16
"""Most cells to count the gradients of together, unless a plane has more."""


@dataclass(frozen=True, eq=False)
class Landing:
    """Where the gradients go: that of window w of plane p to cell ``indices[p, w]`` of the plane's ``plane_size``.

    ``axes`` are the windows that the gradients belong to, in row-major order within each plane. ``values`` are those
    of self in the cells, for the recipes that look at them. Flat, gradients and cells are counted through all planes.
    """

    indices: Int64
    plane_size: int
    axes: tuple[Axis, ...] = ()
    values: NDArray | None = None

    @property
    def gradients(self) -> int:
        """How many there are."""
        return self.indices.size

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.indices) * self.plane_size

    @cached_property
    def cells(self) -> Int64:
        """The cell of each gradient, flat."""
        return (self.indices + np.arange(len(self.indices))[:, None] * self.plane_size).ravel()

    @cached_property
    def multiplicity(self) -> Int64:
        """How many gradients share gradient i's cell, itself included."""
        return self._counts[self.cells]

    @cached_property
    def largest_multiplicity(self) -> int:
        """Gradients of the fullest cell, 1 where there are none; counted in some planes at a time."""
        most, step = 1, max(1, _AT_ONCE // max(self.plane_size, 1))
        for first in range(0, len(self.indices), step):
            planes = np.maximum(self.indices[first : first + step], 0)
            planes += np.arange(len(planes))[:, None] * self.plane_size
            most = max(most, int(np.bincount(planes.ravel()).max(initial=1)))
        return most

    @cached_property
    def _counts(self) -> Int64:
        """How many gradients each cell gets."""
        return np.bincount(self.cells, minlength=self.size)

    def cells_of_at_least(self, gradients: int) -> Int64:
        """Find the cells, ascending, that so many gradients share, or more."""
        return np.flatnonzero(self._counts >= gradients)

    @cached_property
    def rank(self) -> Int64:
        """Position of gradient i among those of its cell, in memory order, from 0."""
        order = np.argsort(self.cells, kind="stable")
        first = np.cumsum(self._counts) - self._counts
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - first[self.cells[order]]
        return rank

    @property
    def place(self) -> Int64:
        """As `rank`, counted from another gradient from cell to cell: no order of additions always meets it first."""
        return (self.rank - self.cells) % self.multiplicity

    @property
    def plane_windows(self) -> int:
        """How many gradients each plane has."""
        return self.indices.shape[1]

    @cached_property
    def plane(self) -> Int64:
        """Number of gradient i's plane."""
        return np.arange(self.gradients) // self.plane_windows

    @cached_property
    def window(self) -> Int64:
        """Number of gradient i's window within its plane."""
        return np.arange(self.gradients) % self.plane_windows

    @property
    def residues(self) -> int:
        return prod(axis.overlap for axis in self.axes)

    def residue(self) -> Int64:
        """Assign a plane's windows numbers below `residues`, different ones to those that can reach a common cell."""
        residues = np.ix_(*(axis.residues for axis in self.axes))
        return np.ravel_multi_index(residues, [axis.overlap for axis in self.axes]).ravel()


Recipe = Callable[[Landing, FloatFormat, RandomStream], NDArray]
"""Gradients for a landing, flat, in float64 or in the format's own dtype."""


def _each(draw: Callable[[Landing, int, FloatFormat, RandomStream], Float64]) -> Recipe:
    """Make a recipe of ``draw``, which draws any number of gradients, each by itself."""
    return described(
        draw.__doc__ or "",
        lambda landing, fmt, stream: draw_bulk(landing.indices.size, fmt, stream, partial(draw, landing)),
    )


def integers(landing: Landing, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw non-zero integers with sums within 2**precision in any cell: exact in every order and model."""
    bound = max(1, fmt.largest_exact_integer // landing.largest_multiplicity)
    return (1.0 + stream.below(min(bound, 2**31), size)) * stream.signs(size)


def one_hot(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw zeros but for one gradient: whatever else appears came from the wrong place."""
    gradient = np.zeros(landing.gradients)
    if gradient.size:
        value = 1.0 + stream.one_below(fmt.largest_exact_integer // 2)
        gradient[stream.one_below(gradient.size)] = value
    return gradient


def wide(landing: Landing, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw exponents over most of the format's range, so that the order of additions matters most."""
    top = min(fmt.max_exponent - 1, 200) - landing.largest_multiplicity.bit_length()
    bottom = max(fmt.min_exponent, -200)
    exponent = bottom + stream.below(max(top - bottom, 1), size)
    return fmt.round(np.ldexp(1.0 + stream.uniform(size), exponent) * stream.signs(size))


def big_among_ones(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Put one 2**precision among ones in each cell: a float32 sum keeps the ones, a native one may lose them."""
    big = np.where(landing.cells % 2 == 0, 1.0, -1.0) * fmt.largest_exact_integer
    return np.where(landing.place == 0, big, 1.0)


def cancellation(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Put a one among large values that cancel in pairs: an accumulator that is too short loses the one.

    The large value is 2**(precision + 1) for float16 and bfloat16, where only a wider accumulator survives, and for
    float32 as large as leaves every order of a float32 sum exact.
    """
    pairs = np.maximum(landing.multiplicity // 2, 1)
    if fmt in (FLOAT32, FLOAT64):
        big = np.exp2(fmt.precision - 1 - np.ceil(np.log2(pairs)))
    else:
        big = np.full(landing.gradients, 2.0 * fmt.largest_exact_integer)
    place = landing.place
    gradient = np.where(place % 2 == 1, big, -big)
    unpaired = (landing.multiplicity % 2 == 0) & (place == landing.multiplicity - 1)
    gradient = np.where(unpaired, 1.0, gradient)
    return np.where(place == 0, 1.0, gradient)


def rounding_probe(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Make pairs with a sum a quarter, a half, just beside a half or three quarters between two outputs.

    In each cell the first gradient carries ``precision`` bits and the second is that fraction of its last bit; any
    further one is zero. Tells rounding to even from truncation and from rounding halves away.
    """
    size = landing.gradients
    tails = np.array([0.5, 0.25, 0.75, 0.5 + 2.0 ** -(fmt.precision - 1), 0.5 - 2.0**-fmt.precision])
    sign = np.where((landing.cells // 64) % 2 == 0, 1.0, -1.0)
    leading = 2.0 ** (fmt.precision - 1) + landing.cells % 64
    tail = tails[landing.cells % len(tails)] * np.where(stream.below(2, size) == 0, 1.0, -1.0)
    return sign * np.select([landing.rank == 0, landing.rank == 1], [leading, tail], 0.0)


def carries(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Make pairs as `rounding_probe` does, at every mantissa and binade of the format.

    In every second cell with a pair, the mantissa is all ones and the tail has its sign: from half a unit on, the sum
    carries into its exponent. Elsewhere mantissas go up from the least one. The first cell has any of these, in any
    binade. Only a tail may be subnormal, and no sum is too large.
    """
    pairs = landing.cells_of_at_least(min(landing.largest_multiplicity, 2))
    number, is_full = np.divmod(np.searchsorted(pairs, landing.cells) + 2 * stream.one_below(2**20), 2)
    half, lowest = 2 ** (fmt.precision - 1), max(fmt.min_exponent - fmt.precision + 3, -199)
    binades = min(fmt.max_exponent, 200) - fmt.precision - lowest + 1
    leading = np.where(is_full, 2 * half - 1, half + number % half)
    tail = np.array([0.5, 0.25, 0.75, 0.0])[number % 4]  # the number of binades is odd: each gets each tail
    tail = np.where(is_full, tail, tail * stream.signs(landing.gradients))
    sign = np.where(number // 32 % 2 == 0, 1.0, -1.0)
    terms = sign * np.select([landing.rank == 0, landing.rank == 1], [leading, tail], 0.0)
    return np.ldexp(terms, lowest + 7 * number % binades)


def subnormal(landing: Landing, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw subnormals and the smallest normals: exact sums, zero for a kernel that flushes."""
    steps = 1.0 + stream.below(2 ** min(fmt.precision, 30), size)
    return steps * stream.signs(size) * fmt.smallest_subnormal


def near_overflow(landing: Landing, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw values of the largest binade with both signs: sums overflow in some orders, or barely do not.

    In float64, where an exact sum beyond the format has no place, the binade is a lower one.
    """
    top = min(fmt.max_exponent, 900)
    value = np.minimum(fmt.round(np.ldexp(1.0 + stream.uniform(size), top)), np.ldexp(fmt.max, top - fmt.max_exponent))
    small = np.ldexp(1.0 + stream.below(32, size), max(top - fmt.precision - 2, 0))
    return np.where(stream.below(3, size) == 0, small, value) * stream.signs(size)


def special(landing: Landing, size: int, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Draw integers, and in one place of six NaN, infinities, signed zeros, the largest or the smallest value."""
    placed = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, fmt.max, -fmt.max, fmt.smallest_subnormal])
    if fmt is FLOAT64:
        placed[5:7] = 2.0**900, -(2.0**900)
    plain = integers(landing, size, fmt, stream)
    return np.where(stream.below(6, size) == 0, placed[stream.below(len(placed), size)], plain)


def colour_ids(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> Float64:
    """Give windows that cannot meet their number, and others zero, plane by plane: a wrong value names its window.

    Where a plane has more windows than the format has integers, the planes carry the number's digits in turn.
    """
    base, residues = fmt.largest_exact_integer, landing.residues
    digits = 1
    while base**digits < landing.plane_windows:
        digits += 1
    planes = np.arange(len(landing.indices))[:, None]
    is_shown = landing.residue() == (planes + stream.one_below(residues)) % residues
    numbers = np.arange(landing.plane_windows) // base ** (planes // residues % digits) % base
    return np.where(is_shown, numbers + 1.0, 0.0).ravel()


def _weights(landing: Landing, fmt: FloatFormat, stream: RandomStream, bits: int) -> Float64:
    """Give windows that can meet different powers of 2**bits: the digits of a sum name the windows that arrived.

    As many windows as fit into the precision, the others in further planes.
    """
    digits = fmt.precision // bits
    groups = -(-landing.residues // digits)
    planes = np.arange(len(landing.indices))[:, None]
    digit = landing.residue() - (planes + stream.one_below(groups)) % groups * digits
    return np.ldexp(np.where((digit >= 0) & (digit < digits), 1.0, 0.0), bits * digit).ravel()


def pointed(landing: Landing, fmt: FloatFormat, stream: RandomStream) -> NDArray:
    """Take the value of self that each index points at: with the indices of a forward, that forward's output."""
    assert landing.values is not None
    planes = landing.values.reshape(len(landing.indices), landing.plane_size)
    return np.take_along_axis(planes, landing.indices, axis=1).ravel()


GRADIENTS: dict[str, Recipe] = {
    "integers": _each(integers),
    "one_hot": one_hot,
    "ones": described("Ones.", lambda landing, fmt, stream: np.ones(landing.gradients)),
    "uniform": described(
        "Draw from [-5, 5), as the operator library's own tests do.",
        _each(lambda _, size, fmt, stream: fmt.round(10.0 * stream.uniform(size) - 5.0)),
    ),
    "positive": described(
        "Draw from [1, 2): nothing cancels, so sums grow and stall in a narrow accumulator.",
        _each(lambda _, size, fmt, stream: fmt.round(1.0 + stream.uniform(size))),
    ),
    "wide": _each(wide),
    "big_among_ones": big_among_ones,
    "cancellation": cancellation,
    "rounding_probe": rounding_probe,
    "carries": carries,
    "subnormal": _each(subnormal),
    "near_overflow": _each(near_overflow),
    "special": _each(special),
    "signed_zeros": described("Zeros of both signs.", _each(lambda _, size, fmt, stream: 0.0 * stream.signs(size))),
    "colour_ids": colour_ids,
    "binary_weights": described(
        "Powers of two, different ones in windows that can meet: a wrong sum names the windows that were lost.",
        lambda landing, fmt, stream: _weights(landing, fmt, stream, bits=1),
    ),
    "base_four_weights": described(
        "Powers of four likewise: a wrong sum also tells how often a window came, up to three times.",
        lambda landing, fmt, stream: _weights(landing, fmt, stream, bits=2),
    ),
    "backpropagated": described(
        "Normal values in twelve binades from 2**-4 down, as far from a mean loss; the last are subnormal in float16.",
        _each(lambda _, size, fmt, stream: fmt.round(np.ldexp(stream.normal(size), -4 - stream.below(12, size)))),
    ),
    "pointed": pointed,  # as tools of others fill gradients; nothing here draws it
}
"""The recipes by name; the docstring of each describes it."""


def gradient_recipe(name: str) -> Recipe:
    """Find the recipe of a name, or of a spelling with numbers; KeyError if there is none."""
    spread = parse_spread(name)
    return _each(lambda _, size, fmt, stream: spread.draw(size, fmt, stream)) if spread else GRADIENTS[name]
