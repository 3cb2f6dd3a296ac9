"""Work on the chunks of a large tensor, in as many threads as this process has processors.

Compiled loops and numpy let other threads run, so that what is a pass over one chunk after the other in one thread
takes a share of the time in several. Results come in the order of the chunks, so that they depend on no thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

_Chunk = TypeVar("_Chunk")
_Result = TypeVar("_Result")

_MOST_THREADS, _MOST_CELLS = 8, 1 << 17
"""Each thread holds what is worked out of a chunk; of one with more cells that is memory which counts."""

_FEWEST_CHUNKS = 8
"""Of fewer chunks threads spare less than it takes to begin them, where another process has the other processor."""


def threaded_map(work: Callable[[_Chunk], _Result], chunks: Iterable[_Chunk], cells: int) -> Iterator[_Result]:
    """Yield ``work`` of each chunk, in their order; large or few ones are worked on where they are asked for.

    Chunks are of planes of so many ``cells``. Few are made ahead of what is taken. What ``work`` raises is raised where
    its result is due.
    """
    ahead, threads = iter(chunks), min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    first = list(islice(ahead, _FEWEST_CHUNKS)) if cells <= _MOST_CELLS else []
    if len(first) < _FEWEST_CHUNKS or threads < 2:
        yield from map(work, chain(first, ahead))
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[_Result]] = deque()
        for chunk in chain(first, ahead):
            begun.append(pool.submit(work, chunk))
            if len(begun) > threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
