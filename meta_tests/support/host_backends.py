"""A small right backend that needs numpy alone, and copies whose modes do to their process what they may not.

They run by Python 3.9, too.
"""

import ctypes
import locale
import os
import platform
import resource
import signal
import threading
import time

import numpy as np

from poolproof.backends.base import Outcome, Status
from poolproof.backends.frameworks.copying import CopyingBackend

_LIBM, _LIBC = ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)

ON_X86 = platform.machine() == "x86_64"
UPWARD, TOWARD_ZERO = (0x800, 0xC00) if ON_X86 else (0x400000, 0xC00000)
CONTROL_WORD, FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = (28, 1 << 15, 1 << 6) if ON_X86 else (0, 1 << 24, 0)
"""Of the state that fesetenv takes: where MXCSR or FPCR begins, and bits of it."""


def set_control(bits):  # type: ignore[no-untyped-def]
    environment = (ctypes.c_uint8 * 64)()
    _LIBM.fegetenv(environment)
    ctypes.c_uint32.from_buffer(environment, CONTROL_WORD).value |= bits
    _LIBM.fesetenv(environment)


def lower_limit(of_hard=0):  # type: ignore[no-untyped-def]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft - 1 + of_hard, hard - of_hard), hard - of_hard))


def leave_child():  # type: ignore[no-untyped-def]
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)


def leave_sibling():  # type: ignore[no-untyped-def]
    """As `leave_child`, by clone(2) with CLONE_PARENT: a child of the process that this one is a fork of."""
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    if ctypes.CDLL(None).syscall(number, ctypes.c_ulong(0x8000 | signal.SIGCHLD), None, None, None, None) == 0:
        time.sleep(20)
        os._exit(0)


class Plain(CopyingBackend):
    """Windows of two by two side by side, and their gradients."""

    survives_fork = True

    def environment(self):  # type: ignore[no-untyped-def]
        return {"numpy": np.__version__}

    def unsupported(self, operator, dtype, index_dtype):  # type: ignore[no-untyped-def]
        return None if "MaxPool2dWithIndices" in operator.name else "windows of two by two alone"

    def forward(self, question):  # type: ignore[no-untyped-def]
        batch, channels, height, width = question.values.shape
        tiles = question.values.reshape(batch, channels, height // 2, 2, width // 2, 2).swapaxes(3, 4)
        tiles = tiles.reshape(*tiles.shape[:4], 4)
        cells = np.arange(height * width).reshape(height // 2, 2, width // 2, 2).swapaxes(1, 2).reshape(-1, 4)
        chosen = tiles.argmax(-1)
        indices = np.take_along_axis(cells, chosen.reshape(-1, len(cells)).T, 1).T.reshape(chosen.shape)
        return tiles.max(-1), indices.astype(question.index_dtype)

    def backward(self, question):  # type: ignore[no-untyped-def]
        sums = np.zeros(question.values.shape, question.values.dtype)
        planes = sums.reshape(-1, sums.shape[2] * sums.shape[3])
        for plane, indices, gradient in zip(planes, question.indices, question.gradient):  # noqa: B905
            np.add.at(plane, indices.ravel(), gradient.ravel())
        return sums


LEAVES = {
    "rounding up": lambda: _LIBM.fesetround(UPWARD),
    "rounding to zero": lambda: _LIBM.fesetround(TOWARD_ZERO),
    "flush-to-zero": lambda: set_control(FLUSH_TO_ZERO),
    "denormals-are-zero": lambda: set_control(DENORMALS_ARE_ZERO),
    "floating-point flags": lambda: set_control(0x3F),
    "folder": lambda: os.chdir("/"),
    "mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]),
    "handler": lambda: _LIBC.signal(signal.SIGUSR1, ctypes.c_void_p(_LIBC.abs and 1)),
    "python handler": lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
    "umask": lambda: os.umask(0o777),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "limit": lower_limit,
    "hard limit": lambda: lower_limit(of_hard=1),
    "thread": lambda: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(),
    "child": leave_child,
    "sibling": leave_sibling,
}


class Leaving(Plain):
    modes = tuple(LEAVES)

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        outcome = super().run(call)
        if mode:
            LEAVES[mode]()
        return outcome


GIVEN = {
    "no outcome": lambda: "fine",
    "no text": lambda: Outcome(Status.REFUSED, message=5),  # type: ignore[arg-type]
    "no number": lambda: Outcome(Status.REFUSED, seconds="long"),  # type: ignore[arg-type]
    "not json": lambda: Outcome(Status.COMPLETED, code=10**5000),
    "huge": lambda: Outcome(Status.REFUSED, guard_violations=("x" * 1000,) * 20_000),
}


class Misbehaving(Plain):
    """Its modes raise, or give what no adapter may."""

    modes = ("raises", *GIVEN)

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if mode == "raises":
            raise ValueError("no stream")
        return GIVEN[mode]() if mode in GIVEN else super().run(call)


class Declaring(Plain):
    """One of its declarations raises, and one is none."""

    def accumulation(self, call):  # type: ignore[no-untyped-def]
        raise RuntimeError("nobody knows")

    def forward_rule(self, call):  # type: ignore[no-untyped-def]
        return "first"
