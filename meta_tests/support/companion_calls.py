"""The calls of a framework that lives elsewhere, made of numpy: 2-D pools, right unless ``MISDEED`` names another way.

What it names is done where a call has ceil_mode. Runs in a companion, where there is no poolproof.
"""

import ctypes
import os
import signal
import time
from pathlib import Path

import numpy as np

if os.environ.get("MISDEED") == "unimportable":
    raise ImportError("no such framework")
if os.environ.get("MISDEED") == "dead on arrival":
    os.write(2, b"cannot find a device\n")
    os._exit(5)
if "LIBRARY" in os.environ:
    ctypes.CDLL(os.environ["LIBRARY"])


def versions():
    return {"beside": "1.0"}


def forward(ask, values, index_dtype, kernel_size, stride, padding, dilation, ceil_mode, **others):
    misbehave(ask, ceil_mode)
    pooled = [
        (size + 2 * p - d * (k - 1) - 1 + ceil_mode * (s - 1)) // s + 1
        for size, k, s, p, d in zip(values.shape[2:], kernel_size, stride, padding, dilation, strict=True)
    ]
    pooled = [
        each - (ceil_mode and (each - 1) * s >= size + p)
        for each, size, s, p in zip(pooled, values.shape[2:], stride, padding, strict=True)
    ]
    out, indices = (
        np.zeros((*values.shape[:2], *pooled), values.dtype),
        np.zeros((*values.shape[:2], *pooled), index_dtype),
    )
    for place in np.ndindex(*out.shape):
        n, c, *window = place
        rows, columns = (
            [cell for cell in range(o * s - p, o * s - p + d * k, d) if 0 <= cell < size]
            for o, k, s, p, d, size in zip(
                window, kernel_size, stride, padding, dilation, values.shape[2:], strict=True
            )
        )
        best, at = -np.inf, rows[0] * values.shape[3] + columns[0]
        for y in rows:
            for x in columns:
                value = values[n, c, y, x]
                if value > best or np.isnan(value):
                    best, at = value, y * values.shape[3] + x
        out[place], indices[place] = best, at
    return out, indices


def backward(ask, values, gradient, indices, ceil_mode, **others):
    misbehave(ask, ceil_mode)
    sums = np.zeros((*values.shape[:2], values.shape[2] * values.shape[3]), values.dtype)
    with np.errstate(all="ignore"):
        for place in np.ndindex(*gradient.shape):
            sums[(*place[:2], indices[place])] += gradient[place]
    return sums.reshape(values.shape)


def misbehave(ask, ceil_mode):
    if ceil_mode:
        MISDEEDS[os.environ.get("MISDEED", "nothing")](ask)


def hang():
    Path(os.environ["HANGING"]).write_text(str(os.getpid()))
    time.sleep(600)


def die(number):
    os.write(2, b"a word first\nfree(): invalid pointer\n")
    os.kill(os.getpid(), number)


def turn_down():
    raise NotImplementedError("no kernel for this")


def forget():
    raise KeyError("forgotten")


def print_much():
    os.write(1, b"{}\n" * 40_000)


MISDEEDS = {
    "nothing": lambda ask: None,
    "hangs": lambda ask: hang(),
    "aborts": lambda ask: die(signal.SIGABRT),
    "faults": lambda ask: die(signal.SIGSEGV),
    "exits": lambda ask: os._exit(7),
    "refuses": lambda ask: ask(turn_down),
    "forgets": lambda ask: forget(),
    "prints": lambda ask: print_much(),
}
