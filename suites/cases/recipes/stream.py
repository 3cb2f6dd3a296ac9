"""Random numbers that depend on a seed and a purpose alone.

They are those of numpy's raw Philox stream, whose output numpy guarantees across versions; its distributions are not.
Many elements can be drawn in chunks (`RandomStream.chunks`), with the same numbers for each element.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64
from poolproof.suites.cases.recipes.loops import fill_below, fill_normal, fill_uniform

CHUNK_ELEMENTS = 1 << 16
"""Elements that are made at a time: what they take stays in the cache."""

Position = tuple[int, int, int]
"""A key's two words and the number of the first raw number of a draw, as `loops` takes them."""


class RandomStream:
    """Independent random numbers for one purpose of one seed."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed, self._purpose = seed, purpose
        self._drawn = 0

    @cached_property
    def _key(self) -> tuple[int, int]:
        low, high = struct.unpack_from("=qq", hashlib.sha256(f"{self._seed}/{self._purpose}".encode()).digest())
        return low, high

    def below(self, bound: int, size: int) -> Int64:
        """Draw integers in [0, bound), which is at most 2**32."""
        drawn = np.empty(size, np.int64)
        fill_below(*self.draw(size), bound, drawn)
        return drawn

    def one_below(self, bound: int) -> int:
        """Draw one integer in [0, bound)."""
        return int(self.below(bound, 1)[0])

    def uniform(self, size: int) -> Float64:
        """Draw multiples of 2**-53 in [0, 1)."""
        drawn = np.empty(size)
        fill_uniform(*self.draw(size), drawn)
        return drawn

    def signs(self, size: int) -> Float64:
        """Draw -1.0 and 1.0."""
        return 1.0 - 2.0 * self.below(2, size)

    def normal(self, size: int) -> Float64:
        """Draw close to standard normal: twelve uniforms summed, so that no library function decides a bit."""
        drawn, before = np.empty(size), self._drawn
        first = self.draw(size)
        distance = self._drawn - before
        self._drawn += 11 * distance
        fill_normal(*first, distance, drawn)
        return drawn

    def draw(self, size: int) -> Position:
        """Reserve the raw numbers of the next draw, one for each element, and return where they begin."""
        first = self._drawn
        self._drawn += size
        return *self._key, first

    def from_middle(self, size: int) -> Float64:
        """Return how far behind the middle of all elements each of them lies."""
        return np.arange(size) - size / 2.0

    def chunks(self, size: int, unit: int = 1) -> Iterator[tuple[slice, RandomStream]]:
        """Cut ``size`` elements into chunks of whole ``unit``s, each with the stream that its elements are drawn from.

        Only for elements of which each takes one number in every draw, and as the last thing that is drawn.
        """
        step = max(CHUNK_ELEMENTS // unit, 1) * unit
        if size <= step:
            yield slice(0, size), self
            return
        for first in range(0, size, step):
            yield slice(first, min(first + step, size)), _StreamChunk(self._seed, self._purpose, first, size)

    def beside(self, name: str) -> RandomStream:
        """Open an independent stream for what belongs to the same purpose."""
        return RandomStream(self._seed, f"{self._purpose}/{name}")


class _StreamChunk(RandomStream):
    """The share of the elements from ``first`` on in each draw of a stream for ``whole`` elements."""

    def __init__(self, seed: int, purpose: str, first: int, whole: int) -> None:
        super().__init__(seed, purpose)
        self._first = first
        self._whole = whole

    def from_middle(self, size: int) -> Float64:
        return np.arange(self._first, self._first + size) - self._whole / 2.0

    def draw(self, size: int) -> Position:  # noqa: ARG002  (a part of the draw for the whole)
        first = self._drawn + self._first
        self._drawn += self._whole
        return *self._key, first


Draw = Callable[[int, RandomStream], Float64]
"""(how many, stream) -> elements, of which each takes one number in every draw (`RandomStream.chunks`)."""

MAX_DRAWN = 1 << 20
"""Elements of the largest tensor of which each is drawn."""

TABLE = 1 << 18
"""Elements that are drawn for a larger one."""


def draw_all(size: int, dtype: np.dtype, stream: RandomStream, draw: Draw) -> NDArray:
    """Draw ``size`` elements, flat, each by itself."""
    elements = np.empty(size, dtype)
    for chunk, own in stream.chunks(size):
        elements[chunk] = draw(chunk.stop - chunk.start, own)
    return elements


def draw_bulk(size: int, dtype: np.dtype, stream: RandomStream, draw: Draw) -> NDArray:
    """Draw ``size`` elements, flat; beyond `MAX_DRAWN` as pieces of a ring of drawn ones that begin at drawn places.

    That tells as much about a kernel: no two planes are alike, and an element read at another place is another one.
    """
    if size <= MAX_DRAWN:
        return draw_all(size, dtype, stream, draw)
    table = draw_all(TABLE, dtype, stream, draw)
    ring, elements = np.concatenate((table, table[:CHUNK_ELEMENTS])), np.empty(size, dtype)
    firsts = range(0, size, CHUNK_ELEMENTS)
    for first, place in zip(firsts, stream.beside("pieces").below(TABLE, len(firsts)).tolist(), strict=True):
        piece = elements[first : first + CHUNK_ELEMENTS]
        piece[:] = ring[place : place + len(piece)]
    return elements
