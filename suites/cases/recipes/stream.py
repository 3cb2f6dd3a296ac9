"""Random numbers that depend on a seed and a purpose alone.

Only the raw Philox stream is used, whose output numpy guarantees across versions; its distributions are not. What is
drawn for many elements can be made in parts (`Stream.parts`), with the same numbers for each element.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from math import prod

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64

PART = 1 << 16
"""Elements that are made at a time: what they take stays in the cache."""

_SHORT = 1 << 12
"""Elements of which several draws may be made at once."""

_BLOCK = 4
"""Raw numbers that Philox makes at once."""


class Stream:
    """Independent random numbers for one purpose of one seed."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed, self._purpose = seed, purpose
        self._key = _Key(np.frombuffer(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:16], np.uint64))

    def below(self, bounds: int | NDArray[np.integer], size: int) -> Int64:
        """Integers in [0, bound), each bound at most 2**32."""
        return self.below_each(bounds, (size,))

    def below_each(self, bounds: int | NDArray[np.integer], shape: tuple[int, ...]) -> Int64:
        """The same of any shape, to which the bounds are broadcast."""
        raw = self._raw(prod(shape)).reshape(shape)
        raw >>= np.uint64(32)
        raw *= np.asarray(bounds, np.uint64)
        raw >>= np.uint64(32)
        return raw.view(np.int64)

    def uniform(self, size: int) -> Float64:
        """Multiples of 2**-53 in [0, 1)."""
        raw = self._raw(size)
        raw >>= np.uint64(11)
        return np.multiply(raw, 2.0**-53)

    def signs(self, size: int) -> Float64:
        """-1.0 and 1.0."""
        return 1.0 - 2.0 * self.below(2, size)

    def normal(self, size: int) -> Float64:
        """Close to standard normal: twelve uniforms summed, so that no library function decides a bit."""
        total, *others = self._uniforms(12, size)
        for uniform in others:
            total += uniform
        total -= 6.0
        return total

    def _uniforms(self, draws: int, size: int) -> Iterable[Float64]:
        """`uniform` so often, by one draw where that is short: what a draw costs is mostly the calls that make it."""
        if size > _SHORT:
            return _one_by_one(self, draws, size)
        return self.uniform(draws * size).reshape(draws, size)

    def from_middle(self, size: int) -> Float64:
        """How far behind the middle of all elements each of them lies."""
        return np.arange(size) - size / 2.0

    def parts(self, size: int, unit: int = 1) -> Iterator[tuple[slice, Stream]]:
        """``size`` elements in parts of whole ``unit``s, each with the stream that its elements are drawn from.

        Only for elements of which each takes one number in every draw, and as the last thing that is drawn.
        """
        step = max(PART // unit, 1) * unit
        if size <= step:
            yield slice(0, size), self
            return
        for first in range(0, size, step):
            yield slice(first, min(first + step, size)), _Part(self._key, first, size)

    def beside(self, name: str) -> Stream:
        """Independent numbers for what belongs to the same purpose."""
        return Stream(self._seed, f"{self._purpose}/{name}")

    def _raw(self, size: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(size)

    @cached_property
    def _bits(self) -> np.random.Philox:
        """Made when something is drawn, which many recipes do not."""
        return self._key.generator()


class _Part(Stream):
    """What the elements from ``first`` on get of each draw of a stream for ``whole`` elements."""

    def __init__(self, key: _Key, first: int, whole: int) -> None:
        self._key = key
        self._first = first
        self._whole = whole
        self._drawn = 0

    def from_middle(self, size: int) -> Float64:
        return np.arange(self._first, self._first + size) - self._whole / 2.0

    def _uniforms(self, draws: int, size: int) -> Iterable[Float64]:
        return _one_by_one(self, draws, size)

    def _raw(self, size: int) -> NDArray[np.uint64]:
        bits = self._key.generator()
        blocks, before = divmod(self._drawn + self._first, _BLOCK)
        bits.advance(blocks)
        self._drawn += self._whole
        return bits.random_raw(before + size)[before:]


def _one_by_one(stream: Stream, draws: int, size: int) -> Iterator[Float64]:
    return (stream.uniform(size) for _ in range(draws))


class _Key(ISeedSequence):
    """Philox's key as it is; given as ``key`` it has numpy ask the system for entropy first, which takes longer."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        assert (n_words, dtype) == (2, np.uint64)
        return self._words

    def generator(self) -> np.random.Philox:
        """Philox with this key, at its beginning."""
        return np.random.Philox(self)  # type: ignore[arg-type]  # numpy's stubs do not know what numpy takes
