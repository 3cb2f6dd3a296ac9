"""Passes over whole tensors, a chunk at a time, so that what is made of a chunk stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolproof.suites.cases.memory import as_bits

_CHUNK_ELEMENTS = 1 << 16
"""Elements that are gone through at a time."""


def array_chunks(*arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield corresponding chunks, flat, of arrays of one shape, in the order in which they lie in memory."""
    parts = np.nditer(arrays, ("external_loop", "buffered", "zerosize_ok"), order="K", buffersize=_CHUNK_ELEMENTS)
    for part in parts:
        yield part if len(arrays) > 1 else (part,)  # type: ignore[misc]  # numpy's stubs know tuples only


Test = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]
"""What holds corresponding elements of two arrays against each other."""


def anywhere(test: Test, first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Tell whether ``test`` finds something in two arrays of one shape, which it is given chunk by chunk."""
    if first.size <= _CHUNK_ELEMENTS:
        return bool(np.count_nonzero(test(first, second)))
    return any(np.count_nonzero(test(*parts)) for parts in array_chunks(first, second))


def are_same_bits(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Tell whether two arrays of one shape and dtype hold the same bits, in logical order."""
    if first.size <= _CHUNK_ELEMENTS:
        return first.tobytes() == second.tobytes()
    return not anywhere(np.not_equal, as_bits(first), as_bits(second))


def where(test: Test, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark where ``test`` finds something in two arrays of one shape, which it is given chunk by chunk."""
    if first.size <= _CHUNK_ELEMENTS:
        return test(first, second)
    found = np.empty(first.shape, bool)
    access: list[list[Literal["readonly", "writeonly"]]] = [["readonly"], ["readonly"], ["writeonly"]]
    with np.nditer(
        (first, second, found), ("external_loop", "buffered"), access, order="K", buffersize=_CHUNK_ELEMENTS
    ) as parts:
        for one, other, found_chunk in parts:
            found_chunk[...] = test(one, other)
    return found
