"""Memory with a fence: whoever writes past it is ended by a signal there and then, and damages nothing else."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 16
"""Of the first byte, as of any other memory; so many bytes less one may lie between the last one and the fence."""

_NO_ACCESS = 0
"""PROT_NONE of mmap(2)."""


def fenced(size: int, beyond: int) -> NDArray[np.uint8]:
    """Map ``size`` bytes of zeros, behind which the next ``beyond`` bytes may be neither read nor written."""
    inside, outside = _whole_pages(size + _ALIGNMENT), _whole_pages(beyond)
    pages = np.frombuffer(mmap.mmap(-1, inside + outside), np.uint8)
    fence = ctypes.c_void_p(pages.ctypes.data + inside)
    if ctypes.CDLL(None, use_errno=True).mprotect(fence, ctypes.c_size_t(outside), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect puts no fence behind memory")
    start = (inside - size) // _ALIGNMENT * _ALIGNMENT
    return pages[start : start + size]


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
