"""The arena: memory that the judge and the hosts of its backends share, in which tensors lie while calls are made.

One sealed anonymous file backs it, as large as the machine's memory; pages that are never written take no memory. Only
the judge allocates.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import tempfile
import weakref
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import BackendUnavailable
from poolproof.suites.cases.memory import whole_pages

_LARGE = 1 << 28
"""Bytes of a dead region from which its pages go back to the system. Smaller ones keep theirs, because faulting them
in again takes longer than judging what lies there."""


class _Region(NamedTuple):
    """The pages of one array, ``fence`` bytes behind it included, and a reference that does not keep it alive."""

    start: int
    end: int
    fence: int
    array: weakref.ref[NDArray[np.uint8]]


class Arena:
    """``size`` bytes of shared memory, given out as a stack; ``descriptor`` is the file that a host maps.

    A region lives as long as its array or a view of it. A new region begins behind the last living one, so memory that
    anybody can still read is never given out again. The arrays of a case die together, so the next case begins where
    this one began.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = _file(size)
        self._map = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0))
        self._address = np.frombuffer(self._map, np.uint8).ctypes.data
        self._regions: dict[int, _Region] = {}

    def allocate(self, nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
        """Allocate bytes of any content; the pages behind them, of ``beyond`` bytes, are to be a fence."""
        self.reclaim()
        inside = whole_pages(max(nbytes, 1))
        fence = whole_pages(beyond + (1 << 16)) if beyond else 0  # longer than it has to be
        start = self._top
        end = start + inside + fence
        if end > self.size:
            size, all_bytes = end - start, self.size
            raise MemoryError(f"{size:,} bytes in a row are not free in the {all_bytes:,} bytes shared with backends")
        at = start + (inside - nbytes) // 16 * 16 if fence else start
        array: NDArray[np.uint8] = np.ndarray((nbytes,), np.uint8, self._map, at)
        self._regions[at] = _Region(start, end, fence, weakref.ref(array))
        return array

    def place(self, array: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the place of allocated bytes, -1 for others, and how many bytes behind them are to be a fence."""
        owner: object = array.base
        if owner is not self._map:
            return -1, 0
        at = array.__array_interface__["data"][0] - self._address
        return at, self._regions[at].fence

    def reclaim(self) -> int:
        """Forget the regions whose arrays are gone; return how many are left."""
        gone = [at for at, region in self._regions.items() if region.array() is None]
        for start, end, _, _ in [self._regions.pop(at) for at in gone]:
            if end - start >= _LARGE or start < self._top:  # below the top nobody writes again soon
                self._map.madvise(mmap.MADV_REMOVE, start, end - start)
        return len(self._regions)

    @property
    def _top(self) -> int:
        """Where the last living region ends."""
        return next((region.end for region in reversed(self._regions.values())), 0)


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
