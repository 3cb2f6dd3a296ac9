"""Copies of a correct backend whose calls with ceil_mode leave something of their process otherwise than it was."""

import ctypes
import locale
import os
import platform
import resource
import signal
import threading
import time

from scatter import Scatter

_LIBM = ctypes.CDLL("libm.so.6")
_UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine(), 0)


class Untidy(Scatter):
    """``leave`` is what it does besides."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        outcome = super().run(call, mode)
        if call.attributes.rounds_up:
            self.leave()
        return outcome

    def leave(self) -> None:
        raise NotImplementedError


class RoundsUpward(Untidy):
    def leave(self) -> None:
        _LIBM.fesetround(_UPWARD)


class FlushesToZero(Untidy):
    """Sets bit 15 of MXCSR, or bit 24 of FPCR, in the state that fesetenv takes."""

    def leave(self) -> None:
        state = ctypes.create_string_buffer(64)
        _LIBM.fegetenv(state)
        word, bit = (28, 15) if platform.machine() == "x86_64" else (0, 24)
        value = int.from_bytes(state.raw[word : word + 4], "little") | 1 << bit
        state[word : word + 4] = value.to_bytes(4, "little")
        _LIBM.fesetenv(state)


class ChangesFolder(Untidy):
    def leave(self) -> None:
        os.chdir("/")


class BlocksSignals(Untidy):
    def leave(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


class HandlesSignals(Untidy):
    def leave(self) -> None:
        signal.signal(signal.SIGUSR2, lambda *_: None)


class ChangesUmask(Untidy):
    def leave(self) -> None:
        os.umask(0o777)


class ChangesLocale(Untidy):
    def leave(self) -> None:
        locale.setlocale(locale.LC_CTYPE, "C")


class LimitsFiles(Untidy):
    def leave(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


class LeavesThreads(Untidy):
    def leave(self) -> None:
        threading.Thread(target=time.sleep, args=(3600.0,), daemon=True).start()


class LeavesChildren(Untidy):
    def leave(self) -> None:
        if os.fork() == 0:
            time.sleep(20.0)
            os._exit(0)


LEFT: dict[str, tuple[type[Untidy], str]] = {
    "rounding": (RoundsUpward, "rounding mode"),
    "flushing": (FlushesToZero, "flush-to-zero"),
    "folder": (ChangesFolder, "working folder"),
    "mask": (BlocksSignals, "signal mask"),
    "handler": (HandlesSignals, "signal handlers"),
    "umask": (ChangesUmask, "umask"),
    "limit": (LimitsFiles, "limit of"),
    "thread": (LeavesThreads, "threads"),
    "child": (LeavesChildren, "children"),
}
"""By name: a backend, and what its calls change."""

for _name, (_backend, _) in LEFT.items():
    globals()[_name] = _backend
