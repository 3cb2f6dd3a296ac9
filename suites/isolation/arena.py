"""The arena: memory that the judge and the hosts share, for tensors during calls.

A sealed anonymous file backs it, as large as the machine's memory; unwritten pages take no memory. Only the judge
allocates.
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
"""Bytes of a freed region at the top that returns its pages; faulting in those of a smaller one takes longer than
judging."""


class _Region(NamedTuple):
    """The pages of an array, with ``fence`` bytes behind it, and a weak reference to it."""

    start: int
    end: int
    fence: int
    array: weakref.ref[NDArray[np.uint8]]


class Arena:
    """``size`` bytes of shared memory, allocated as a stack; ``descriptor`` is the file that a host maps.

    A region lives as long as its array or a view of it. A new region begins behind the last living one: readable memory
    is never allocated again. The arrays of a case die together, so the next case begins at the same place.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = _file(size)
        self._map = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0))
        self._address = np.frombuffer(self._map, np.uint8).ctypes.data
        self._regions: dict[int, _Region] = {}

    def allocate(self, nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
        """Allocate bytes of any content, with a fence of at least ``beyond`` bytes behind them."""
        self.reclaim()
        inside = whole_pages(max(nbytes, 1))
        fence = whole_pages(beyond + (1 << 16)) if beyond else 0  # longer than necessary
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
        """Return the offset of allocated bytes, -1 for other memory, and the bytes of the fence behind them."""
        owner: object = array.base
        if owner is not self._map:
            return -1, 0
        at = array.__array_interface__["data"][0] - self._address
        return at, self._regions[at].fence

    def reclaim(self) -> int:
        """Forget the regions of dead arrays; return the number of living ones."""
        gone = [at for at, region in self._regions.items() if region.array() is None]
        for start, end, _, _ in [self._regions.pop(at) for at in gone]:
            if end - start >= _LARGE or start < self._top:  # below the top no region is written again soon
                self._map.madvise(mmap.MADV_REMOVE, start, end - start)
        return len(self._regions)

    @property
    def _top(self) -> int:
        """End of the last living region."""
        return next((region.end for region in reversed(self._regions.values())), 0)


@cache
def shared_arena() -> Arena:
    """Return the arena of this process, for all backends; an eighth of a limited address space."""
    size = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return Arena(size if limit == resource.RLIM_INFINITY else whole_pages(min(size, limit // 8)))


os.register_at_fork(after_in_child=shared_arena.cache_clear)


def allocate(nbytes: int, beyond: int = 0) -> NDArray[np.uint8]:
    """Allocate in the arena of this process, as `Arena.allocate`."""
    return shared_arena().allocate(nbytes, beyond)


def _file(size: int) -> int:
    """Create an anonymous file of fixed size; raise `BackendUnavailable` if files may not be so large."""
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)  # it also limits shared memory, which a file backs
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
