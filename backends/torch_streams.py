"""Sequences of actions on the streams of a device through torch; `backends.aclnn.sequences` does it through aclnn.

Torch has no executors and owns its workspaces, so two calls cannot share one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from poolproof.backends.base import Call
from poolproof.references.sequences import DEFAULT_STREAM, Action, Actions

if TYPE_CHECKING:
    import torch

ACTIONS = ("prepare", "run", "fill", "copy", "erase", "hold_up", "record", "wait", "synchronise")

BLOCK = 1 << 24
"""Bytes that one copy of a delay copies."""

_SECONDS = 2e-3
"""Length of a delay: many times what the host needs to queue a call."""

_MEASURED = 4
"""Copies that are timed together."""

_MOST_COPIES = 128
"""Most copies of one delay."""


def _copy(memory: torch.Tensor, count: int) -> None:
    for _ in range(count):
        memory[0].copy_(memory[1])


def measured_delay(memory: torch.Tensor, synchronize: Callable[[], None]) -> Callable[[], None]:
    """Return a function that queues a delay: copies between the halves of ``memory`` for `_SECONDS`."""
    _copy(memory, 1)  # warm up
    synchronize()
    started = time.perf_counter()
    _copy(memory, _MEASURED)
    synchronize()
    seconds = (time.perf_counter() - started) / _MEASURED
    return partial(_copy, memory, min(_MOST_COPIES, ceil(_SECONDS / seconds)))


class Placed(Protocol):
    """A call with tensors on the device, in ``buffers``; `compute` queues it."""

    call: Call
    buffers: dict[str, torch.Tensor]

    def compute(self) -> None: ...


class TorchInterpreter:
    """One sequence on calls that are placed on the device; each method performs the action of its name."""

    def __init__(self, module: Any, placed: Sequence[Placed], delay: Callable[[], None]) -> None:
        self._module, self._placed, self._delay = module, placed, delay
        self._streams: dict[int, Any] = {}
        self._event = module.Event()
        self._executors: dict[int, int] = {}
        self._elsewhere: dict[tuple[int, str], torch.Tensor] = {}
        self.computed: set[int] = set()
        self.performed = 0

    def perform_all(self, actions: Actions) -> None:
        for self.performed, action in enumerate(actions):
            if action.stream == DEFAULT_STREAM:
                getattr(self, action.do)(action)
            else:
                if action.stream not in self._streams:
                    self._streams[action.stream] = self._module.Stream()
                with self._module.stream(self._streams[action.stream]):
                    getattr(self, action.do)(action)

    def take_copied_outputs(self) -> None:
        for (number, name), copied in self._elsewhere.items():
            if name in self._placed[number].call.operator.outputs:
                self._placed[number].buffers[name].copy_(copied)

    def prepare(self, action: Action) -> None:
        self._executors[action.executor] = action.call

    def run(self, action: Action) -> None:
        number = self._executors[action.executor]
        self._placed[number].compute()
        self.computed.add(number)

    def fill(self, action: Action) -> None:
        """Put zeros, valid indices in every plane, into tensors; keep a copy of inputs."""
        for buffer in self._buffers(action, action.what):
            buffer.zero_()
        self._module.synchronize()

    def copy(self, action: Action) -> None:
        placed = self._placed[action.call]
        for name in getattr(placed.call.operator, action.what):
            if action.what == "inputs":
                placed.buffers[name].copy_(self._elsewhere[action.call, name])
            else:
                self._elsewhere[action.call, name] = placed.buffers[name].clone()

    def erase(self, action: Action) -> None:
        for buffer in self._buffers(action, action.what or "inputs"):
            buffer.zero_()

    def _buffers(self, action: Action, role: str) -> Iterator[torch.Tensor]:
        placed = self._placed[action.call]
        for name in getattr(placed.call.operator, role):
            if role == "inputs" and (action.call, name) not in self._elsewhere:
                self._elsewhere[action.call, name] = placed.buffers[name].clone()
            yield placed.buffers[name]

    def hold_up(self, _: Action) -> None:
        self._delay()

    def record(self, _: Action) -> None:
        self._event.record()

    def wait(self, _: Action) -> None:
        self._event.wait()

    def synchronise(self, _: Action) -> None:
        self._module.synchronize()
