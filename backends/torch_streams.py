"""Torch's calls among other work on the streams of a device, as `backends.aclnn.streams` has aclnn's.

Torch owns its workspaces, so that two calls cannot be made to share one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from poolproof.backends.base import Call, Hazard, Outcome

if TYPE_CHECKING:
    import torch

    from poolproof.backends.torch_eager import Placed, TorchEager

BLOCK = 1 << 26
"""Bytes of one copy of a delay."""

_COPIES = 32
"""Copies of one delay: a millisecond or more on any device."""

_ROUNDS = 16
"""How often each of two concurrent calls is queued."""


class TorchStreams:
    """`poolproof.backends.base.Streams` of one device."""

    def __init__(self, eager: TorchEager) -> None:
        self._eager = eager

    @property
    def _module(self) -> Any:
        return self._eager.module

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        return tuple(_HAZARDS)

    def run(self, call: Call, hazard: Hazard) -> Outcome:
        placed = self._eager.place(call)
        refusal, _ = self._eager.attempt(partial(_HAZARDS[hazard], self, placed, self._module.Stream()))
        return refusal or placed.outcome(0.0)

    def run_at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        one, other = self._eager.place(first), self._eager.place(second)
        refusal, _ = self._eager.attempt(partial(self._at_once, one, other))
        return refusal or one.outcome(0.0), refusal or other.outcome(0.0)

    def inputs_being_made(self, placed: Placed, stream: Any) -> None:
        made = self._unmade(placed)
        with self._module.stream(stream):
            self._produce(placed, made)
            placed.compute()

    def event_to_wait_for(self, placed: Placed, stream: Any) -> None:
        made, event = self._unmade(placed), self._module.Event()
        with self._module.stream(self._module.Stream()):
            self._produce(placed, made)
            event.record()
        with self._module.stream(stream):
            event.wait()
            placed.compute()

    def inputs_overwritten(self, placed: Placed, stream: Any) -> None:
        self._hold_up()
        with self._module.stream(stream):
            placed.compute()
            for name in placed.call.operator.inputs:
                placed.buffers[name].zero_()

    def outputs_read(self, placed: Placed, stream: Any) -> None:
        self._hold_up()
        with self._module.stream(stream):
            placed.compute()
            read = {name: placed.buffers[name].clone() for name in placed.call.operator.outputs}
        self._module.synchronize()
        for name, copied in read.items():
            placed.buffers[name].copy_(copied)

    def _at_once(self, one: Placed, other: Placed) -> None:
        streams, event = (self._module.Stream(), self._module.Stream()), self._module.Event()
        with self._module.stream(streams[0]):
            self._hold_up()
            event.record()
        with self._module.stream(streams[1]):
            event.wait()
        for _ in range(_ROUNDS):
            for stream, placed in zip(streams, (one, other)):
                with self._module.stream(stream):
                    placed.compute()

    def _unmade(self, placed: Placed) -> dict[str, torch.Tensor]:
        """Copy the inputs and fill them with zeros, which are indices in any plane."""
        made = {name: placed.buffers[name].clone() for name in placed.call.operator.inputs}
        for name in made:
            placed.buffers[name].zero_()
        self._module.synchronize()
        return made

    def _produce(self, placed: Placed, made: Mapping[str, torch.Tensor]) -> None:
        """Queue the production of the inputs on the current stream: a delay, and copies from where they lie ready."""
        self._hold_up()
        for name, ready in made.items():
            placed.buffers[name].copy_(ready)

    def _hold_up(self) -> None:
        """Keep the current stream busy for one delay."""
        for _ in range(_COPIES):
            self._block[0].copy_(self._block[1])

    @cached_property
    def _block(self) -> torch.Tensor:
        torch = self._eager.torch
        return torch.empty((2, BLOCK), dtype=torch.uint8, device=self._eager.device)


_HAZARDS: dict[Hazard, Callable[[TorchStreams, Placed, Any], None]] = {
    Hazard.INPUTS_BEING_MADE: TorchStreams.inputs_being_made,
    Hazard.INPUTS_OVERWRITTEN: TorchStreams.inputs_overwritten,
    Hazard.OUTPUTS_READ: TorchStreams.outputs_read,
    Hazard.EVENT: TorchStreams.event_to_wait_for,
}
