"""Random numbers that depend only on a seed and a purpose.

They come from numpy's raw Philox stream, which numpy guarantees across versions; its distributions are not guaranteed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64

Size = int | tuple[int, ...]


class RandomStream:
    """Independent random numbers for one purpose of one seed; all methods take the next numbers of one stream."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed, self._purpose = seed, purpose
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        self._bits = np.random.Philox(key=np.frombuffer(digest, "<u8", 2))

    def below(self, bounds: ArrayLike, size: Size) -> Int64:
        """Draw integers in [0, bound); no bound may exceed 2**32."""
        words = self._bits.random_raw(size) >> _HALF
        words *= np.asarray(bounds, np.uint64)
        return (words >> _HALF).view(np.int64)

    def one_below(self, bound: int) -> int:
        """Draw one integer in [0, bound)."""
        return int(self.below(bound, 1)[0])

    def uniform(self, size: int) -> Float64:
        """Draw multiples of 2**-53 in [0, 1)."""
        return (self._bits.random_raw(size) >> _DROPPED) * 2.0**-53

    def signs(self, size: int) -> Float64:
        """Draw -1.0 and 1.0."""
        return 1.0 - 2.0 * self.below(2, size)

    def normal(self, size: int) -> Float64:
        """Draw nearly standard normal numbers: sums of twelve uniforms, so that no library function decides a bit."""
        drawn = self.uniform(size)
        for _ in range(11):
            drawn += self.uniform(size)
        return drawn - 6.0

    def beside(self, name: str) -> RandomStream:
        """Open an independent stream for another part of the same purpose."""
        return RandomStream(self._seed, f"{self._purpose}/{name}")


_HALF, _DROPPED = np.uint64(32), np.uint64(11)
"""Bits of a 64-bit raw number that integers do not use, and that float64 cannot hold."""

MAX_DRAWN = 1 << 18
"""Elements of the largest tensor with each element drawn; for a larger one, this many are drawn."""

_PIECE = 1 << 16
"""Consecutive drawn elements in a larger tensor."""


def draw_bulk(
    size: int, fmt: FloatFormat, stream: RandomStream, draw: Callable[[int, FloatFormat, RandomStream], Float64]
) -> NDArray:
    """Draw ``size`` elements, flat; beyond `MAX_DRAWN`, join pieces of drawn elements that begin at random places.

    This tests a kernel as well: all planes differ, and an element of another place has another value. ``draw`` takes
    exactly the requested number of elements from the stream.
    """
    if size <= MAX_DRAWN:
        return _with_payloads(draw(size, fmt, stream).astype(fmt.dtype), stream)
    table = _with_payloads(draw(MAX_DRAWN, fmt, stream).astype(fmt.dtype), stream)
    ring, elements = np.concatenate((table, table[:_PIECE])), np.empty(size, fmt.dtype)
    firsts = range(0, size, _PIECE)
    for first, place in zip(firsts, stream.beside("pieces").below(MAX_DRAWN, len(firsts)).tolist(), strict=True):
        piece = elements[first : first + _PIECE]
        piece[:] = ring[place : place + len(piece)]
    return elements


def _with_payloads(elements: NDArray, stream: RandomStream) -> NDArray:
    """Give each NaN, in place, a sign and a payload: none, the largest (of 32 bits) or any.

    All are quiet, because machines differ in what they do to a signalling NaN. None has all bits set, as unwritten
    memory.
    """
    unknown = np.flatnonzero(np.isnan(elements))
    if size := len(unknown):
        bits, own = elements.view(f"u{elements.itemsize}"), stream.beside("payloads")
        usual = int(np.full(1, np.nan, elements.dtype).view(bits.dtype)[0])
        most = min(usual & -usual, 1 << 32) - 2  # below the bit that makes it quiet
        payloads = np.where(own.below(2, size) == 0, own.below(most + 1, size), own.below(2, size) * most)
        signs = own.below(2, size).astype(np.uint64) << np.uint64(8 * elements.itemsize - 1)
        bits[unknown] |= (signs | payloads.view(np.uint64)).astype(bits.dtype)
    return elements
