"""Changes of the process by a call, other than results: found, named and undone as far as possible."""

from __future__ import annotations

import ctypes
import gc
import locale
import os
import platform
import resource
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from poolproof.backends.host.protocol import StateChange

_LIBM, _LIBC = ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)
_LIBC.setlocale.restype = ctypes.c_char_p

_X86_ROUNDING, _ARM_ROUNDING = ("to nearest", "down", "up", "toward zero"), ("to nearest", "up", "down", "toward zero")
_OFF_ON = ("off", "on")

_FLOATING: dict[str, dict[str, tuple[int, int, tuple[str, ...]]]] = {
    "x86_64": {
        "rounding mode": (237, 2, _X86_ROUNDING),
        "flush-to-zero": (239, 1, _OFF_ON),
        "denormals-are-zero": (230, 1, _OFF_ON),
        "masked exceptions": (231, 6, ()),
        "rounding mode of x87": (10, 2, _X86_ROUNDING),
        "masked exceptions of x87": (0, 6, ()),
    },
    "aarch64": {
        "rounding mode": (22, 2, _ARM_ROUNDING),
        "flush-to-zero": (24, 1, _OFF_ON),
        "flush-to-zero of half precision": (19, 1, _OFF_ON),
        "trapped exceptions": (8, 8, ()),
    },
}
"""Machine -> part of fenv_t -> (first bit, number of bits, names of its values); MXCSR begins at bit 224."""

_PARTS = _FLOATING.get(platform.machine(), {})
_MASK = sum(((1 << bits) - 1) << first for first, bits, _ in _PARTS.values())

_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]

_LIBRARY_SIGNALS = (32, 33)
"""Signals that the C library keeps for its threads. It handles them from its first need on."""

_SIGNALS = ("signal mask", "ignored signals", "signal handlers")

_SETTLE_SECONDS = 0.005
"""Time for a thread to end after its call."""


class _MallocInfo(ctypes.Structure):
    _NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keep"
    _fields_ = tuple((name, ctypes.c_size_t) for name in _NAMES.split())


_MALLOC_INFO = getattr(_LIBC, "mallinfo2", None)  # glibc has it since 2.33
if _MALLOC_INFO is not None:
    _MALLOC_INFO.restype = _MallocInfo


def allocated_bytes() -> int | None:
    """Return the bytes that the C library has allocated in this process; None if it does not report them."""
    if _MALLOC_INFO is None:
        return None
    gc.collect()
    information = _MALLOC_INFO()
    return int(information.uordblks + information.hblkhd)


class ProcessState:
    """The state of this process after the last call and after `changes` restored it."""

    def __init__(self) -> None:
        self._status, self._limits = (os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("status", "limits"))
        self._floating, self._kept_floating = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
        self._information = ctypes.create_string_buffer(128)
        self._keep(self._look())

    def changes(self) -> list[StateChange]:
        now = self._look()
        if now == self._state:
            return []
        deadline = time.monotonic() + _SETTLE_SECONDS
        while now[-2:] > self._state[-2:] and time.monotonic() < deadline:
            time.sleep(_SETTLE_SECONDS / 5)
            now = self._look()
        before, after = _in_words(self._state), _in_words(now)
        changed = [what for what in after if what in before and after[what] != before[what]]
        for what, place in _GROWING.items():
            if what in changed and now[place] <= self._state[place]:
                changed.remove(what)
        self._restore(changed)
        self._keep(self._look())
        settled = _in_words(self._state)
        return [StateChange(what, before[what], after[what], settled[what] == before[what]) for what in changed]

    def computes_otherwise(self) -> bool:
        """Tell whether the next call would compute in another floating-point mode than the last one began in."""
        return self._look_at_floating() != self._state[0]

    def _look_at_floating(self) -> int:
        _LIBM.fegetenv(self._floating)
        return int.from_bytes(self._floating.raw, "little") & _MASK

    def _look(self) -> tuple[Any, ...]:
        """Read everything that is compared, unformatted."""
        floating = self._look_at_floating()
        status = os.pread(self._status, 4096, 0)
        umask, threads, signals = (status.find(name) for name in (b"Umask:", b"Threads:", b"SigBlk:"))
        try:
            folder = os.getcwd()  # noqa: PTH109  (a path object takes longer)
        except FileNotFoundError:
            folder = ""
        has_children = _LIBC.waitid(0, 0, self._information, os.WEXITED | os.WNOHANG | os.WNOWAIT) == 0
        return (
            floating,
            folder,
            status[signals : status.find(b"CapInh", signals)],
            status[umask + 7 : umask + 11],
            _LIBC.setlocale(locale.LC_ALL, None),
            os.pread(self._limits, 4096, 0),
            int(status[threads + 9 : status.find(b"\n", threads)]),
            (len(child_processes()) or 1) if has_children else 0,
        )

    def _keep(self, state: tuple[Any, ...]) -> None:
        self._state = state
        ctypes.memmove(self._kept_floating, self._floating, 64)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        self._handlers = {number: _handler(number) for number in range(1, signal.NSIG)}
        self._set_limits = {number: resource.getrlimit(number) for number in _LIMITS}

    def _restore(self, changed: Sequence[str]) -> None:
        """Restore everything possible; the rest is reported as not restored."""
        _LIBM.fesetenv(self._kept_floating)
        for number, handler in self._handlers.items() if {*_SIGNALS}.intersection(changed) else ():
            _LIBC.sigaction(number, handler, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        os.umask(int(self._state[3], 8))
        _LIBC.setlocale(locale.LC_ALL, self._state[4])
        for number, limits in self._set_limits.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(number, limits)
        with suppress(OSError):
            os.chdir(self._state[1])


_GROWING = {"threads": -2, "children": -1}
"""Count -> its place in a state. Only growth is a change, because threads and children may belong to a pool."""


def _in_words(state: tuple[Any, ...]) -> dict[str, str]:
    """Describe a state: name of each part -> its value. The working folder is left out if it was removed."""
    floating, folder, signals, umask, locale_, limits, threads, children = state
    words = {}
    for what, (first, bits, names) in _PARTS.items():
        value = floating >> first & ((1 << bits) - 1)
        words[what] = names[value] if names else bin(value)
    if Path(folder).exists():
        words["working folder"] = folder
    words.update(zip(_SIGNALS, map(_signal_names, signals.split()[1::2])))
    words.update({"umask": umask.decode(), "locale": locale_.decode(errors="replace")})
    for line in limits.decode().splitlines()[1:]:
        words[f"limit of {line[4:26].strip()}"] = " of ".join(line[26:].split()[:2])
    return {**words, "threads": str(threads), "children": str(children)}


def _handler(number: int) -> ctypes.Array[ctypes.c_char]:
    """Return the result of sigaction(2) in the library's own layout."""
    handler = ctypes.create_string_buffer(256)
    _LIBC.sigaction(number, None, handler)
    return handler


def _signal_names(mask: bytes) -> str:
    names = {number.value: number.name for number in signal.Signals}
    numbers = [number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1]
    return ", ".join(names.get(number, str(number)) for number in numbers if number not in _LIBRARY_SIGNALS) or "none"


def child_processes() -> set[int]:
    """Return the ids of child processes; none if the system does not list them."""
    lists = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    return {int(pid) for pids in lists for pid in pids}
