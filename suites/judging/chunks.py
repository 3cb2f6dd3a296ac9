"""Passes over whole tensors, one chunk at a time, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolproof.suites.cases.memory import as_bits

_CHUNK_ELEMENTS = 1 << 16
"""Elements of a chunk."""


def array_chunks(*arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield corresponding flat chunks of arrays of one shape, in memory order."""
    parts = np.nditer(arrays, ("external_loop", "buffered", "zerosize_ok"), order="K", buffersize=_CHUNK_ELEMENTS)
    for part in parts:
        yield part if len(arrays) > 1 else (part,)  # type: ignore[misc]  # numpy's stubs know tuples only


Test = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]
"""Compares corresponding elements of two arrays."""


def anywhere(test: Test, first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Tell whether ``test`` is true anywhere in two arrays of one shape; it is called per chunk."""
    if first.size <= _CHUNK_ELEMENTS:
        return bool(np.count_nonzero(test(first, second)))
    return any(np.count_nonzero(test(*parts)) for parts in array_chunks(first, second))


def are_same_bits(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Tell whether two arrays of one shape and dtype have the same bits, in logical order."""
    if first.size <= _CHUNK_ELEMENTS:
        return first.tobytes() == second.tobytes()
    return not anywhere(np.not_equal, as_bits(first), as_bits(second))


def where(test: Test, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of ``test`` on two arrays of one shape; it is called per chunk."""
    if first.size <= _CHUNK_ELEMENTS:
        return test(first, second)
    mask = np.empty(first.shape, bool)
    access: list[list[Literal["readonly", "writeonly"]]] = [["readonly"], ["readonly"], ["writeonly"]]
    with np.nditer(
        (first, second, mask), ("external_loop", "buffered"), access, order="K", buffersize=_CHUNK_ELEMENTS
    ) as parts:
        for one, other, mask_chunk in parts:
            mask_chunk[...] = test(one, other)
    return mask
