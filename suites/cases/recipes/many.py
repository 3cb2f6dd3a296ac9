"""Elements of a tensor that are drawn each by itself: in parts, and in large tensors from a table of drawn ones.

To draw every element of a tensor of 10**7 takes longer than to pool it, and tells no more about a kernel than pieces
of a table do that begin at drawn places: no two planes are alike, and an element read at another place is another one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.suites.cases.recipes.stream import PART, Stream

MOST_DRAWN = 1 << 20
"""Elements of the largest tensor of which each is drawn."""

TABLE = 1 << 18
"""Elements that are drawn for a larger one."""

Draw = Callable[[int, Stream], Float64]
"""(how many, stream) -> elements, of which each takes one number in every draw (`Stream.parts`)."""


def drawn_each(size: int, dtype: np.dtype, stream: Stream, draw: Draw) -> NDArray:
    """``size`` drawn elements, flat."""
    elements = np.empty(size, dtype)
    for part, own in stream.parts(size):
        elements[part] = draw(part.stop - part.start, own)
    return elements


def drawn_many(size: int, dtype: np.dtype, stream: Stream, draw: Draw) -> NDArray:
    """The same; beyond `MOST_DRAWN` they are pieces of a table, in which the first element follows the last."""
    if size <= MOST_DRAWN:
        return drawn_each(size, dtype, stream, draw)
    table = drawn_each(TABLE, dtype, stream, draw)
    return _pieces(np.concatenate((table, table[:PART])), size, stream.beside("pieces"))


def _pieces(ring: NDArray, size: int, stream: Stream) -> NDArray:
    """Pieces of `PART` elements, each beginning at a drawn place of the table that ``ring`` repeats."""
    elements = np.empty(size, ring.dtype)
    firsts = range(0, size, PART)
    for first, place in zip(firsts, stream.below(TABLE, len(firsts)).tolist(), strict=True):
        piece = elements[first : first + PART]
        piece[:] = ring[place : place + len(piece)]
    return elements
