"""What a call leaves behind in its process, besides results: seen, named and put right as far as that can be done.

A thread or a child that stays may be one of a framework's pool, made in the first call that needs it. They are told
where a call of the same form leaves more of them a second time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from poolproof.backends.host.protocol import Change

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
        "precision of x87": (8, 2, ()),
        "masked exceptions of x87": (0, 6, ()),
    },
    "aarch64": {
        "rounding mode": (22, 2, _ARM_ROUNDING),
        "flush-to-zero": (24, 1, _OFF_ON),
        "flush-to-zero of half precision": (19, 1, _OFF_ON),
        "trapped exceptions": (8, 8, ()),
    },
}
"""By machine: the parts of fenv_t (its first bit, number of bits, names of its values); MXCSR begins at bit 224."""

_PARTS = _FLOATING.get(platform.machine(), {})
_MASK = sum(((1 << bits) - 1) << first for first, bits, _ in _PARTS.values())

_LIMITS = {
    "Max cpu time": resource.RLIMIT_CPU,
    "Max file size": resource.RLIMIT_FSIZE,
    "Max data size": resource.RLIMIT_DATA,
    "Max stack size": resource.RLIMIT_STACK,
    "Max core file size": resource.RLIMIT_CORE,
    "Max processes": resource.RLIMIT_NPROC,
    "Max open files": resource.RLIMIT_NOFILE,
    "Max locked memory": resource.RLIMIT_MEMLOCK,
    "Max address space": resource.RLIMIT_AS,
}
"""Names of /proc/self/limits, of those that are put right."""

_LIBRARY_SIGNALS = (32, 33)
"""Those that the C library keeps for its threads, and handles from the first time on that it needs them."""

_SIGNALS = ("signal mask", "ignored signals", "signal handlers")

_SETTLE_SECONDS = 0.005
"""How long a thread may take to end after the call that it worked for."""


class ProcessState:
    """The state of this process, as the last call left it and `changes` put it right."""

    def __init__(self) -> None:
        self._status, self._limits = (os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("status", "limits"))
        self._environment = ctypes.create_string_buffer(64)
        self._kept_environment = ctypes.create_string_buffer(64)
        self._information = ctypes.create_string_buffer(128)
        self._grown: set[Hashable] = set()
        self._keep(self._look())

    def changes(self, form: Callable[[], Hashable]) -> list[Change]:
        """What differs from the state before a call; ``form`` is asked what tells it from calls of other forms."""
        now = self._look()
        if now == self._state:
            return []
        before = self._state
        deadline = time.monotonic() + _SETTLE_SECONDS
        while self._has_grown(before, now) and time.monotonic() < deadline:
            time.sleep(_SETTLE_SECONDS / 5)
            now = self._look()
        left = {what: told for what, told in self._told(before, now).items() if told[0] != told[1]}
        for what in left:
            self._restore(what)
        settled = self._look()
        still = self._told(before, settled)
        if {"threads", "children"} & left.keys() and not self._is_repeated(form(), before, now):
            left.pop("threads", None)
            left.pop("children", None)
        self._keep(settled)
        return [Change(what, *told, restored=still[what][0] == still[what][1]) for what, told in left.items()]

    def _look(self) -> tuple[Any, ...]:
        """Everything that is compared, as it comes."""
        _LIBM.fegetenv(self._environment)
        floating = int.from_bytes(self._environment.raw, "little") & _MASK
        status = os.pread(self._status, 4096, 0)
        umask = status[status.find(b"Umask:") + 7 :][:4]
        threads, signals = status.find(b"Threads:"), status.find(b"SigBlk:")
        limits = os.pread(self._limits, 4096, 0)
        try:
            folder = os.getcwd()  # noqa: PTH109  (a path object takes longer)
        except FileNotFoundError:
            folder = ""
        has_children = _LIBC.waitid(0, 0, self._information, os.WEXITED | os.WNOHANG | os.WNOWAIT) == 0
        children = _count_children() if has_children else 0
        return (
            floating,
            folder,
            status[signals : status.find(b"CapInh", signals)],
            umask,
            _LIBC.setlocale(6, None),
            limits,
            int(status[threads + 9 : status.find(b"\n", threads)]),
            children,
        )

    def _keep(self, state: tuple[Any, ...]) -> None:
        self._state = state
        ctypes.memmove(self._kept_environment, self._environment, 64)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        self._set_limits = {what: resource.getrlimit(number) for what, number in _LIMITS.items()}
        self._handlers = {number: _handler(number) for number in range(1, signal.NSIG)}

    def _told(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> dict[str, tuple[str, str]]:
        """By what can change: what it was and what it is, in words."""
        told = {}
        for what, (first, bits, words) in _PARTS.items():
            values = [state[0] >> first & ((1 << bits) - 1) for state in (before, now)]
            told[what] = _pair(values, lambda value, words=words: words[value] if words else bin(value))
        told["working folder"] = _pair((before[1], now[1]), str)
        if not Path(before[1]).exists():
            del told["working folder"]  # somebody else removed it
        for place, what in enumerate(_SIGNALS):
            told[what] = _pair([state[2].split()[2 * place + 1] for state in (before, now)], _signal_names)
        told["umask"] = _pair((before[3], now[3]), bytes.decode)
        told["locale"] = _pair((before[4], now[4]), lambda text: text.decode(errors="replace"))
        for was, is_now in zip(*(state[5].splitlines()[1:] for state in (before, now))):  # noqa: B905  (Python 3.9)
            told[was[:26].decode().strip()] = _pair((was, is_now), _limit_text)
        told["threads"] = _pair((before[6], max(before[6], now[6])), str)
        told["children"] = _pair((before[7], max(before[7], now[7])), str)
        return told

    def _restore(self, what: str) -> None:
        _, folder, _, umask, locale, *_ = self._state
        try:
            if what in _PARTS:
                _LIBM.fesetenv(self._kept_environment)
            elif what == "working folder":
                os.chdir(folder)
            elif what == "signal mask":
                signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            elif what in _SIGNALS:
                for number, handler in self._handlers.items():
                    _LIBC.sigaction(number, handler, None)
            elif what == "umask":
                os.umask(int(umask, 8))
            elif what == "locale":
                _LIBC.setlocale(6, locale)
            elif what in _LIMITS:
                resource.setrlimit(_LIMITS[what], self._set_limits[what])
        except (OSError, ValueError):
            pass  # told as not restored

    def _has_grown(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
        return now[6] > before[6] or now[7] > before[7]

    def _is_repeated(self, form: Hashable, before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
        """Whether a call of that form has left threads, or children, before."""
        grown = {(form, place) for place in (6, 7) if now[place] > before[place]}
        repeated = bool(grown & self._grown)
        self._grown |= grown
        return repeated


def _pair(values: Any, word: Callable[[Any], str]) -> tuple[str, str]:
    before, now = values
    return word(before), word(now)


def _handler(number: int) -> ctypes.Array[ctypes.c_char]:
    """What sigaction(2) gives; its layout is the library's own."""
    handler = ctypes.create_string_buffer(256)
    _LIBC.sigaction(number, None, handler)
    return handler


def _signal_names(mask: bytes) -> str:
    numbers = [
        number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1 and number not in _LIBRARY_SIGNALS
    ]
    names = {number.value: number.name for number in signal.Signals}
    return ", ".join(names.get(number, str(number)) for number in numbers) or "none"


def _limit_text(line: bytes) -> str:
    """The soft and the hard limit."""
    return " of ".join(line[26:].decode().split()[:2])


def _count_children() -> int:
    """How many there are; 1 where the system does not list them."""
    lists = [path.read_bytes().split() for path in Path("/proc/self/task").glob("*/children")]
    return sum(map(len, lists)) or 1
