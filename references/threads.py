"""Work on the chunks of a large tensor, in as many threads as this process has processors.

Compiled loops and numpy let other threads run, so that what is a pass over one chunk after the other in one thread
takes a share of the time in several. Results come in the order of the chunks, so that they depend on no thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Chunk = TypeVar("_Chunk")
_Result = TypeVar("_Result")

_MOST_THREADS, _MOST_CELLS = 4, 1 << 17
"""Each thread holds what is worked out of a chunk; of one with more cells that is memory which counts."""

_FEWEST_CHUNKS = 8
"""Of fewer chunks threads spare less than it takes to begin them, where another process has the other processor."""


def threaded_map(work: Callable[[_Chunk], _Result], chunks: Iterable[_Chunk], cells: int) -> list[_Result]:
    """Return ``work`` of each chunk, in their order; large or few ones are worked on where they are asked for.

    Chunks are of planes of so many ``cells``. What ``work`` raises of any is raised.
    """
    asked = list(chunks)
    if len(asked) < _FEWEST_CHUNKS or cells > _MOST_CELLS or len(os.sched_getaffinity(0)) < 2:
        return list(map(work, asked))
    with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), _MOST_THREADS)) as pool:
        return list(pool.map(work, asked))
