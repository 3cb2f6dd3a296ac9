"""Memory that is used is gathered into huge pages, what is merely reserved is left alone."""

from __future__ import annotations

import re
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path

import pytest

from poolproof.suites.running.pages import gather_pages

MIB = 1 << 20


def kilobytes(entry: str) -> int:
    told = Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(rf"^{entry}: +(\d+) kB$", told, re.MULTILINE)[1])  # type: ignore[index]


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="this system has no huge pages to gather"
)
def test_memory_in_use_is_gathered() -> None:
    memory = mmap(-1, 32 * MIB, MAP_PRIVATE | MAP_ANONYMOUS)
    memory[:] = bytes(range(256)) * (len(memory) // 256)
    before = kilobytes("AnonHugePages")
    gather_pages()
    if kilobytes("AnonHugePages") == before:
        pytest.skip("this system makes no huge pages when asked")
    assert kilobytes("AnonHugePages") - before >= 24 * 1024
    assert memory[:] == bytes(range(256)) * (len(memory) // 256)


def test_memory_that_is_merely_reserved_is_not_filled() -> None:
    reserved = mmap(-1, 256 * MIB, MAP_PRIVATE | MAP_ANONYMOUS)
    for page in range(0, len(reserved), 2 * MIB):
        reserved[page] = 1
    before = kilobytes("Anonymous")
    gather_pages()
    assert kilobytes("Anonymous") - before < 64 * 1024


def test_a_system_that_knows_no_such_request_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poolproof.suites.running.pages._MADV_COLLAPSE", 9999)
    memory = mmap(-1, 32 * MIB, MAP_PRIVATE | MAP_ANONYMOUS)
    memory[:] = b"\1" * len(memory)
    before = kilobytes("AnonHugePages")
    gather_pages()
    assert kilobytes("AnonHugePages") <= before
    assert memory[:] == b"\1" * len(memory)
