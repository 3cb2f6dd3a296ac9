"""The arena: memory that the judge and the hosts of its backends share, in which all tensors lie.

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
from collections import defaultdict
from functools import cache

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.suites.cases.memory import ALIGNMENT

_SMALL = 1 << 16
"""Bytes up to which freed regions are kept by size."""

_CHUNK = 1 << 22
"""Bytes that are divided into small regions at a time."""

_LARGE = 1 << 26
"""Bytes from which a freed region goes back to the system; smaller ones stay, for to fault their pages in takes longer
than to judge what lies there."""

_HEADROOM = 8
"""The arena takes one part of so many of a limited address space."""


class _Lease(weakref.ref[NDArray[np.uint8]]):
    """The region of an array, freed when the array and all its views are gone."""

    __slots__ = ("fenced", "key", "size", "start")
    key: int
    start: int
    size: int
    fenced: int


class Arena:
    """``size`` bytes of shared memory; ``descriptor`` is the file that a host maps."""

    def __init__(self, size: int) -> None:
        self.size, self._owner = size, os.getpid()
        self.descriptor = _file(size)
        self._map = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0))
        self._small: defaultdict[int, list[int]] = defaultdict(list)
        self._chunk = (0, 0)
        self._large: list[tuple[int, int]] = [(0, size)]
        self._leases: dict[int, _Lease] = {}
        self._fences: dict[int, int] = {}
        self._address = np.frombuffer(self._map, np.uint8).ctypes.data

    def allocate(self, nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
        """Allocate bytes of any content; the pages behind them, of ``beyond`` bytes, are to be a fence."""
        fence, size = 0, _rounded(max(nbytes, 1), max(ALIGNMENT, 1 << nbytes.bit_length() >> 3))  # few different sizes
        if beyond:
            inside, fence = _rounded(nbytes, mmap.PAGESIZE), _rounded(beyond + _SMALL, mmap.PAGESIZE)
            size = inside + fence
            start = self._take_large(size)
            at = start + (inside - nbytes) // 16 * 16
        else:
            if size > _SMALL:
                size = _rounded(size, mmap.PAGESIZE)
                start = self._take_large(size)
            else:
                free = self._small[size]
                start = free.pop() if free else self._cut(size)
            at = start
        array: NDArray[np.uint8] = np.ndarray((nbytes,), np.uint8, self._map, at)
        lease = _Lease(array, self._free)
        lease.key, lease.start, lease.size, lease.fenced = id(array), start, size, at if fence else -1
        self._leases[lease.key] = lease
        if fence:
            self._fences[at] = fence
        return array

    def place(self, array: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the place of allocated bytes, and the number of bytes behind them that are to be a fence."""
        at = array.__array_interface__["data"][0] - self._address
        return at, self._fences.get(at, 0)

    def _free(self, lease: _Lease) -> None:
        del self._leases[lease.key]
        self._fences.pop(lease.fenced, None)
        start, size = lease.start, lease.size
        if os.getpid() != self._owner:
            return  # in a fork: the memory is its parent's
        if size <= _SMALL:
            self._small[size].append(start)
            return
        if size >= _LARGE:
            self._map.madvise(mmap.MADV_REMOVE, start, size)
        place = bisect_left(self._large, (start, size))
        if place < len(self._large) and self._large[place][0] == start + size:
            size += self._large.pop(place)[1]
        if place and sum(self._large[place - 1]) == start:
            before, length = self._large.pop(place - 1)
            start, size = before, length + size
        insort(self._large, (start, size))

    def _cut(self, size: int) -> int:
        """Cut a new small region; return its first byte."""
        start, left = self._chunk
        if left < size:
            start, left = self._take_large(_CHUNK), _CHUNK
        self._chunk = start + size, left - size
        return start

    def _take_large(self, size: int) -> int:
        """Take whole pages; return their first byte, MemoryError if there are not so many in a row."""
        for place, (start, length) in enumerate(self._large):
            if length >= size:
                self._large[place : place + 1] = [(start + size, length - size)] if length > size else []
                return start
        raise MemoryError(f"{size:,} bytes in a row are not free in the {self.size:,} bytes shared with backends")


@cache
def shared_arena() -> Arena:
    """Return the arena of this process, one for all its backends."""
    size = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return Arena(size if limit == resource.RLIM_INFINITY else _rounded(min(size, limit // _HEADROOM), mmap.PAGESIZE))


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
        raise BackendUnavailable(
            f"{size:,} bytes of shared memory cannot be had: {error.strerror} (ulimit -f)"
        ) from error
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


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
