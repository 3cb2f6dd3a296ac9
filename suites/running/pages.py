"""Huge pages for a process that forks often: a fork copies an entry for every page, and ends with as many."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MADV_COLLAPSE = 25
_HUGE = 1 << 21
"""Bytes of a huge page, of which its address is a multiple."""

_MAPPED = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0 *(?:\[heap\])?\n(?:[A-Z].*\n)*?Anonymous: +(\d+) kB$", re.MULTILINE
)
"""What Linux tells of memory behind which there is no file: its first address, its end, and how much of it is used."""


def gather_pages() -> None:
    """Make huge pages of this process's memory; systems that have none, or make none when asked, leave it as it is.

    Half of what it takes to replace a process that has loaded torch, of 35,000 pages, is copying their entries.
    """
    libc = ctypes.CDLL(None)
    for first, end in _memory_in_use():
        libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_COLLAPSE)


def _memory_in_use() -> Iterator[tuple[int, int]]:
    """(first address, end) of whole huge pages in memory most of which is used: what is merely reserved would be filled
    by gathering it.
    """
    told = ""
    with suppress(OSError):
        told = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
    for first, end, used in _MAPPED.findall(told):
        begin, stop = -(-int(first, 16) // _HUGE) * _HUGE, int(end, 16) // _HUGE * _HUGE
        if begin < stop and 2048 * int(used) > int(end, 16) - int(first, 16):
            yield begin, stop
