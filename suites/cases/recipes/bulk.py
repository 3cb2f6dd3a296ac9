"""Draws of many elements, each by itself, with a table in place of fresh numbers for large tensors.

Of a large tensor, pieces of a table that begin at drawn places tell as much about a kernel: no two planes are alike,
and an element read at another place is another one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.suites.cases.recipes.stream import CHUNK_ELEMENTS, RandomStream

MAX_DRAWN = 1 << 20
"""Elements of the largest tensor of which each is drawn."""

TABLE = 1 << 18
"""Elements that are drawn for a larger one."""

Draw = Callable[[int, RandomStream], Float64]
"""(how many, stream) -> elements, of which each takes one number in every draw (`RandomStream.chunks`)."""


def draw_all(size: int, dtype: np.dtype, stream: RandomStream, draw: Draw) -> NDArray:
    """Draw ``size`` elements, flat."""
    elements = np.empty(size, dtype)
    for chunk, own in stream.chunks(size):
        elements[chunk] = draw(chunk.stop - chunk.start, own)
    return elements


def draw_bulk(size: int, dtype: np.dtype, stream: RandomStream, draw: Draw) -> NDArray:
    """Draw ``size`` elements, flat; beyond `MAX_DRAWN` as pieces of a ring of drawn ones."""
    if size <= MAX_DRAWN:
        return draw_all(size, dtype, stream, draw)
    table = draw_all(TABLE, dtype, stream, draw)
    return _pieces(np.concatenate((table, table[:CHUNK_ELEMENTS])), size, stream.beside("pieces"))


def _pieces(ring: NDArray, size: int, stream: RandomStream) -> NDArray:
    """Take pieces of `CHUNK_ELEMENTS`, each beginning at a drawn place of the table that ``ring`` repeats."""
    elements = np.empty(size, ring.dtype)
    firsts = range(0, size, CHUNK_ELEMENTS)
    for first, place in zip(firsts, stream.below(TABLE, len(firsts)).tolist(), strict=True):
        piece = elements[first : first + CHUNK_ELEMENTS]
        piece[:] = ring[place : place + len(piece)]
    return elements
