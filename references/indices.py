"""Encodings of indices in tensors, as objects.

An index is the flat number of a maximum's cell in the unpadded plane of one (n, c). An encoding knows shapes, dtypes
and bytes. It does not know which index is right.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from poolproof.references.geometry import Int64

Shape = tuple[int, ...]


class Indices:
    """Indices as one integer per window, of one of ``dtypes``; the tensor may be strided if it ``has_layout``."""

    dtypes: tuple[str, ...] = ("int32", "int64")
    has_layout = True

    def tensor_shape(self, leading: Shape, windows: Shape, taps: int) -> Shape:  # noqa: ARG002
        """Return the tensor's shape; ``leading`` is ([N,] C), ``taps`` counts the cells of one window."""
        return (*leading, *windows)

    def encode(self, indices: Int64, tensor: NDArray) -> None:
        """Store one index per window in a tensor of `tensor_shape`."""
        tensor[...] = indices.reshape(tensor.shape)

    def decode(self, tensor: NDArray, pooled_shape: Shape) -> Int64:
        """Read the indices from a tensor; return them in the pooled shape."""
        return tensor.astype(np.int64).reshape(pooled_shape)

    def known(self, tensor: NDArray, pooled_shape: Shape, taps: int) -> NDArray:  # noqa: ARG002
        """Select the elements with a published meaning, from a tensor or from flags of its elements."""
        return tensor

    def are_bits(self, taps: int) -> bool:  # noqa: ARG002
        """Check whether windows of ``taps`` cells store bits in an unpublished order instead of indices."""
        return False


class IndexMask(Indices):
    """An int8 buffer sized for a bit per tap and window, whose first bytes hold the indices as int32."""

    dtypes = ("int8",)
    has_layout = False

    def tensor_shape(self, leading: Shape, windows: Shape, taps: int) -> Shape:
        """Return one row per tap, with room for a bit per window, in blocks of 32 bytes (the API pages)."""
        return (*leading, taps, (-(-prod(windows) // 16) + 1) * 32)

    def encode(self, indices: Int64, tensor: NDArray) -> None:
        packed = indices.astype(np.int32).ravel().view(np.int8)
        tensor[...] = 0
        tensor.reshape(-1)[: packed.size] = packed

    def decode(self, tensor: NDArray, pooled_shape: Shape) -> Int64:
        stored = np.ascontiguousarray(tensor).ravel()[: 4 * prod(pooled_shape)]
        return stored.view(np.int32).reshape(pooled_shape).astype(np.int64)

    def known(self, tensor: NDArray, pooled_shape: Shape, taps: int) -> NDArray:
        return tensor.ravel()[: 0 if self.are_bits(taps) else 4 * prod(pooled_shape)]

    def are_bits(self, taps: int) -> bool:
        return taps == 1


FLAT, MASK = Indices(), IndexMask()

INDEX_DTYPES = (*FLAT.dtypes, *MASK.dtypes)
