"""Work on the chunks of a large tensor, in several threads.

Compiled loops and numpy release the interpreter lock, so threads share the time of a pass. Results come in the order of
the chunks, and therefore depend on no thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Chunk = TypeVar("_Chunk")
_Result = TypeVar("_Result")

_MOST_THREADS = 4
"""Each thread holds temporary arrays of one chunk."""

_MOST_CELLS = 1 << 17
"""Cells per chunk above which the temporary arrays of several threads take too much memory."""

_FEWEST_CHUNKS = 8
"""With fewer chunks, starting threads takes longer than it saves on a busy machine."""


def threaded_map(work: Callable[[_Chunk], _Result], chunks: Iterable[_Chunk], cells: int) -> list[_Result]:
    """Return ``work`` of each chunk, in order, and raise what it raises.

    Few chunks, and chunks of planes with many ``cells``, run in the calling thread.
    """
    listed = list(chunks)
    if len(listed) < _FEWEST_CHUNKS or cells > _MOST_CELLS or len(os.sched_getaffinity(0)) < 2:
        return list(map(work, listed))
    with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), _MOST_THREADS)) as pool:
        return list(pool.map(work, listed))
