"""Sequences of actions on the streams of a device through torch, as `backends.aclnn.sequences` has aclnn's.

Torch has no executors, and owns its workspaces, so that two calls cannot be made to share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from poolproof.backends.base import Call
from poolproof.references.sequences import DEFAULT_STREAM, Action, Actions

if TYPE_CHECKING:
    import torch

ACTIONS = ("prepare", "run", "fill", "copy", "erase", "hold_up", "record", "wait", "synchronise")

BLOCK = 1 << 26
"""Bytes of one copy of a delay."""

_COPIES = 32
"""Copies of one delay: a millisecond or more on any device."""


class Placed(Protocol):
    """A call whose tensors lie on the device, in ``buffers``, where `compute` queues it."""

    call: Call
    buffers: dict[str, torch.Tensor]

    def compute(self) -> None: ...


class TorchInterpreter:
    """One sequence on calls that are placed on the device; each method does the action of its name.

    ``block`` is memory for its delays: two halves of `BLOCK` bytes.
    """

    def __init__(self, module: Any, placed: Sequence[Placed], block: torch.Tensor) -> None:
        self._module, self._placed, self._block = module, placed, block
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
        """Put zeros, which are indices in any plane, into tensors, of which a copy of inputs is kept."""
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
        for _copy in range(_COPIES):
            self._block[0].copy_(self._block[1])

    def record(self, _: Action) -> None:
        self._event.record()

    def wait(self, _: Action) -> None:
        self._event.wait()

    def synchronise(self, _: Action) -> None:
        self._module.synchronize()
