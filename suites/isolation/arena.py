"""The arena: memory that the judge and the hosts of its backends share, in which tensors lie while calls are made.

One sealed anonymous file backs it, as large as the machine's memory; pages that are never written take no memory. Only
the judge allocates. Freed regions are reused; large ones go back to the system until then.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import tempfile
import weakref
from bisect import bisect_left, insort
from collections import deque
from functools import cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.suites.cases.memory import whole_pages

_LARGE = 1 << 28
"""Bytes from which a freed region goes back to the system; smaller ones stay, for to fault their pages in takes longer
than to judge what lies there."""


class Arena:
    """``size`` bytes of shared memory; ``descriptor`` is the file that a host maps."""

    def __init__(self, size: int) -> None:
        self.size, self._owner = size, os.getpid()
        self.descriptor = _file(size)
        self._map = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0))
        self._regions: list[tuple[int, int]] = [(0, size)]
        self._let_go = deque[tuple[int, int, int]]()
        self._lock = Lock()
        self._fences: dict[int, int] = {}
        self._address = np.frombuffer(self._map, np.uint8).ctypes.data

    def allocate(self, nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
        """Allocate bytes of any content; the pages behind them, of ``beyond`` bytes, are to be a fence."""
        inside = whole_pages(max(nbytes, 1))
        fence = whole_pages(beyond + (1 << 16)) if beyond else 0  # longer than it has to be
        size = inside + fence
        with self._lock:
            self._merge()
            start = self._take(size)
            at = start + (inside - nbytes) // 16 * 16 if fence else start
            if fence:
                self._fences[at] = fence
        array: NDArray[np.uint8] = np.ndarray((nbytes,), np.uint8, self._map, at)
        weakref.finalize(array, self._free, start, size, at).atexit = False
        return array

    def place(self, array: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the place of allocated bytes, -1 for others, and how many bytes behind them are to be a fence."""
        owner: object = array.base
        if owner is not self._map:
            return -1, 0
        at = array.__array_interface__["data"][0] - self._address
        return at, self._fences.get(at, 0)

    def _free(self, start: int, size: int, at: int) -> None:
        """Free a region: its array and all views of that are gone.

        The garbage collector calls this between any two operations of this class, too: what is under way ends first.
        """
        if os.getpid() != self._owner:
            return  # in a fork: the memory is its parent's
        self._let_go.append((start, size, at))
        if self._lock.acquire(blocking=False):
            try:
                self._merge()
            finally:
                self._lock.release()

    def _merge(self) -> None:
        """Make free regions of what was let go."""
        while self._let_go:
            start, size, at = self._let_go.popleft()
            self._fences.pop(at, None)
            if size >= _LARGE:
                self._map.madvise(mmap.MADV_REMOVE, start, size)
            place = bisect_left(self._regions, (start, size))
            if place < len(self._regions) and self._regions[place][0] == start + size:
                size += self._regions.pop(place)[1]
            if place and sum(self._regions[place - 1]) == start:
                before, length = self._regions.pop(place - 1)
                start, size = before, length + size
            insort(self._regions, (start, size))

    def _take(self, size: int) -> int:
        """Take whole pages; return their first byte, MemoryError if there are not so many in a row."""
        for place, (start, length) in enumerate(self._regions):
            if length >= size:
                self._regions[place : place + 1] = [(start + size, length - size)] if length > size else []
                return start
        raise MemoryError(f"{size:,} bytes in a row are not free in the {self.size:,} bytes shared with backends")


@cache
def shared_arena() -> Arena:
    """Return the arena of this process, one for all backends: an eighth of the address space where that is limited."""
    size = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return Arena(size if limit == resource.RLIM_INFINITY else whole_pages(min(size, limit // 8)))


os.register_at_fork(after_in_child=shared_arena.cache_clear)


def allocate(nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
    """Allocate in the arena of this process, as `Arena.allocate`."""
    return shared_arena().allocate(nbytes, beyond)


def _file(size: int) -> int:
    """Make an anonymous file that cannot be resized; `BackendUnavailable` where files may not become so large."""
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)  # binds memory that has a file behind it, too
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        return _sealed(size)
    except OSError as error:
        what = f"{size:,} bytes of shared memory cannot be had"
        raise BackendUnavailable(f"{what}: {error.strerror} (ulimit -f)") from error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))


def _sealed(size: int) -> int:
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            file.truncate(size)
            return os.dup(file.fileno())
    descriptor = os.memfd_create("poolproof", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
