"""Random numbers that depend on a seed and a purpose alone.

Only the raw Philox stream is used, whose output numpy guarantees across versions; its distributions are not.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.geometry import Int64


class Stream:
    """Independent random numbers for one purpose of one seed."""

    def __init__(self, seed: int, purpose: str) -> None:
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        self._bits = np.random.Philox(key=np.frombuffer(digest[:16], np.uint64))

    def below(self, bounds: int | NDArray[np.integer], size: int) -> Int64:
        """Integers in [0, bound), each bound at most 2**32."""
        high = self._bits.random_raw(size) >> np.uint64(32)
        return ((high * np.asarray(bounds, np.uint64)) >> np.uint64(32)).astype(np.int64)

    def uniform(self, size: int) -> Float64:
        """Multiples of 2**-53 in [0, 1)."""
        return (self._bits.random_raw(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def signs(self, size: int) -> Float64:
        """-1.0 and 1.0."""
        return 1.0 - 2.0 * self.below(2, size)

    def normal(self, size: int) -> Float64:
        """Close to standard normal: twelve uniforms summed, so that no library function decides a bit."""
        return sum((self.uniform(size) for _ in range(12)), np.zeros(size)) - 6.0
