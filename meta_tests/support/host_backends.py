"""A small right backend that needs numpy alone, and copies whose modes do to their process what they may not.

They run by Python 3.9, too.
"""

import ctypes
import locale
import os
import resource
import signal
import threading
import time
from contextlib import suppress

import numpy as np

from poolproof.backends.base import Outcome, Status
from poolproof.backends.frameworks.copying import CopyingBackend

_LIBM, _LIBC = ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)

FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 1 << 15, 1 << 6
_MXCSR = 28


def set_mxcsr(bits):  # type: ignore[no-untyped-def]
    environment = (ctypes.c_uint8 * 64)()
    _LIBM.fegetenv(environment)
    mxcsr = ctypes.c_uint32.from_buffer(environment, _MXCSR)
    mxcsr.value |= bits
    _LIBM.fesetenv(environment)


def lower_limit():  # type: ignore[no-untyped-def]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))


def lower_hard_limit():  # type: ignore[no-untyped-def]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard - 1))


def leave_child():  # type: ignore[no-untyped-def]
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)


def block_signal():  # type: ignore[no-untyped-def]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


def leave_thread():  # type: ignore[no-untyped-def]
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


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
    "rounding up": lambda: _LIBM.fesetround(0x800),
    "rounding to zero": lambda: _LIBM.fesetround(0xC00),
    "flush-to-zero": lambda: set_mxcsr(FLUSH_TO_ZERO),
    "denormals-are-zero": lambda: set_mxcsr(DENORMALS_ARE_ZERO),
    "floating-point flags": lambda: set_mxcsr(0x3F),
    "folder": lambda: os.chdir("/"),
    "mask": block_signal,
    "handler": lambda: _LIBC.signal(signal.SIGUSR1, ctypes.c_void_p(_LIBC.abs and 1)),
    "python handler": lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
    "umask": lambda: os.umask(0o777),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "limit": lower_limit,
    "hard limit": lower_hard_limit,
    "thread": leave_thread,
    "child": leave_child,
}


class Leaving(Plain):
    modes = tuple(LEAVES)

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        outcome = super().run(call)
        if mode:
            LEAVES[mode]()
        return outcome


class Misbehaving(Plain):
    """Its modes end it, hang up, or give what no adapter may."""

    modes = (
        "raises",
        "exits",
        "no outcome",
        "no text",
        "no number",
        "stranger",
        "not json",
        "huge",
        "behind",
        "garbage",
    )

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if mode == "raises":
            raise ValueError("no stream")
        if mode == "exits":
            os._exit(7)
        if mode == "behind":
            tensor = call.tensors[call.operator.outputs[0]]
            ctypes.memset(tensor.buffer.ctypes.data + len(tensor.buffer) + 4096, 1, 1)
        if mode == "garbage":
            for descriptor in range(3, 64):
                with suppress(OSError):
                    os.write(descriptor, b"\x80\x04\x95garbage")
        given = {
            "no outcome": lambda: "fine",
            "no text": lambda: Outcome(Status.REFUSED, message=5),  # type: ignore[arg-type]
            "no number": lambda: Outcome(Status.REFUSED, seconds="long"),  # type: ignore[arg-type]
            "stranger": lambda: Outcome(Status.COMPLETED, results={"weights": ((1,), "float32")}),
            "not json": lambda: Outcome(Status.COMPLETED, code=10**5000),
            "huge": lambda: Outcome(Status.REFUSED, guard_violations=("x" * 1000,) * 20_000),
        }
        return given[mode]() if mode in given else super().run(call)


class Declaring(Plain):
    """One of its declarations raises, and one is none."""

    def accumulation(self, call):  # type: ignore[no-untyped-def]
        raise RuntimeError("nobody knows")

    def forward_rule(self, call):  # type: ignore[no-untyped-def]
        return "first"
