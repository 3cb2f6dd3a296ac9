"""A host as a test starts it, and calls in the memory that it shares with it."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof import backends, references
from poolproof.backends.base import Call, Tensor
from poolproof.backends.host import program, protocol
from poolproof.references.operators import OPERATORS
from poolproof.references.windows import Windows
from poolproof.suites.isolation.replies import read_description

PACKAGES = {package.__name__: package.__path__[0] for package in (backends, references)}

ARENA_SIZE = 1 << 24

_BETWEEN = 1 << 14
"""Bytes from one tensor to the next, which leaves room for fences."""


class HostClient:
    """Ends the host when a test leaves it."""

    def __init__(self, command: Sequence[str] = (sys.executable, program.__file__), **environment: str) -> None:
        ours, theirs = socket.socketpair()
        arena = os.memfd_create("arena", os.MFD_ALLOW_SEALING)
        os.ftruncate(arena, ARENA_SIZE)
        self.memory: NDArray[np.uint8] = np.frombuffer(mmap.mmap(arena, ARENA_SIZE), np.uint8)
        self._taken = 0
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(arena), str(ARENA_SIZE), json.dumps(PACKAGES)],
            pass_fds=[theirs.fileno(), arena],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        theirs.close()
        os.close(arena)
        self.channel = protocol.Channel(ours)

    def __enter__(self) -> HostClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self.channel.send({"do": do, **request})
        return self.channel.receive()

    def done(self, do: str, **request: Any) -> dict[str, Any]:
        reply = self.ask(do, **request)
        assert "done" in reply, reply
        return reply["done"]

    def describe(self, backend: str) -> protocol.Description:
        return read_description(self.done("describe", backend=backend))

    def fork(self) -> tuple[int, protocol.Channel]:
        ours, theirs = socket.socketpair()
        frame = protocol.to_frame({"do": "fork"})
        socket.send_fds(self.channel.connection, [frame], [theirs.fileno()])
        theirs.close()
        return self.channel.receive()["done"]["pid"], protocol.Channel(ours)

    def call(self, operator: str, windows: Windows, arrays: Mapping[str, NDArray]) -> Call:
        """A call on contiguous copies of arrays, each between guard bands of 64 bytes; a tensor has at most 4 KiB."""
        tensors = {}
        for name, array in arrays.items():
            buffer = self.memory[self._taken :][: array.nbytes + 128]
            self._taken += _BETWEEN
            view: NDArray = np.ndarray(array.shape, array.dtype, buffer, 64)
            view[...] = array
            tensors[name] = Tensor(buffer, 64, view, tuple(step // array.itemsize for step in array.strides))
        return Call(OPERATORS[operator], windows, tensors)

    def to_run(self, *calls: Call, fence: int = 0, **more: Any) -> dict[str, Any]:
        return {"do": "run", "calls": [self.record(call, fence) for call in calls], "begun": ARENA_SIZE - 1, **more}

    def record(self, call: Call, fence: int = 0) -> dict[str, Any]:
        base = self.memory.ctypes.data
        return protocol.write_call(call, lambda buffer: (buffer.ctypes.data - base, fence))
