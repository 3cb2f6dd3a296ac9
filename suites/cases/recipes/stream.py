"""Random numbers that depend on a seed and a purpose alone.

They are those of numpy's raw Philox stream: numpy guarantees its output across versions, but not its distributions.
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
    """Independent random numbers for one purpose of one seed; every kind takes the next ones of the stream."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed, self._purpose = seed, purpose
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        self._bits = np.random.Philox(key=np.frombuffer(digest, "<u8", 2))

    def below(self, bounds: ArrayLike, size: Size) -> Int64:
        """Draw integers in [0, bound), where no bound is more than 2**32."""
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
        """Draw close to standard normal: twelve uniforms summed, so that no library function decides a bit."""
        drawn = self.uniform(size)
        for _ in range(11):
            drawn += self.uniform(size)
        return drawn - 6.0

    def beside(self, name: str) -> RandomStream:
        """Open an independent stream for what belongs to the same purpose."""
        return RandomStream(self._seed, f"{self._purpose}/{name}")


_HALF, _DROPPED = np.uint64(32), np.uint64(11)
"""Of the 64 bits of a raw number, those that integers are not made of, and those that float64 has no place for."""

MAX_DRAWN = 1 << 18
"""Elements of the largest tensor of which each is drawn; so many are drawn for a larger one."""

_PIECE = 1 << 16
"""Elements that a larger one has of the drawn ones in their order."""


def draw_bulk(
    size: int, fmt: FloatFormat, stream: RandomStream, draw: Callable[[int, FloatFormat, RandomStream], Float64]
) -> NDArray:
    """Draw ``size`` elements, flat; beyond `MAX_DRAWN` as pieces of a ring of drawn ones that begin at drawn places.

    That tells as much about a kernel: no two planes are alike, and an element read at another place is another one.
    ``draw`` takes a number of elements from the stream.
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
    """Give each NaN a sign and a payload in place: none, the largest (of 32 bits) or any.

    All are quiet: what becomes of a signalling one, where it is copied or compared, is a matter of the machine. None
    has all bits, as memory that nobody has written.
    """
    unknown = np.flatnonzero(np.isnan(elements))
    if size := len(unknown):
        bits, own = elements.view(f"u{elements.itemsize}"), stream.beside("payloads")
        usual = int(np.full(1, np.nan, elements.dtype).view(bits.dtype)[0])
        most = min(usual & -usual, 1 << 32) - 2  # below the bit that makes it a quiet one
        payloads = np.where(own.below(2, size) == 0, own.below(most + 1, size), own.below(2, size) * most)
        signs = own.below(2, size).astype(np.uint64) << np.uint64(8 * elements.itemsize - 1)
        bits[unknown] |= (signs | payloads.view(np.uint64)).astype(bits.dtype)
    return elements
