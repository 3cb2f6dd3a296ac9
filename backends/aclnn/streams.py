"""Calls among other work on streams, where only the order on a stream, and events, say what comes first.

Work queued before a call takes long compared to queueing, and work behind it is short. A library that reads, writes or
computes anywhere but at its place on its stream is then early or late by a margin: it reads zeros as inputs, or writes
outputs after they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import GuardedWorkspace, Operands, TwoPhase, completed, guarded_workspace
from poolproof.backends.aclnn.prototypes import DEVICE_TO_DEVICE
from poolproof.backends.aclnn.status import AclError
from poolproof.backends.base import Call, Hazard, Outcome

_BLOCK = 1 << 22
"""Bytes of one copy of a delay."""

_DELAY_SECONDS = 2e-3
"""Length of a delay: many times what the host takes to queue a call."""

_MOST_COPIES = 128
"""Copies of one delay, on a device too fast for `_DELAY_SECONDS`; queues of a thousand and more tasks are usual."""

_ROUNDS = 16
"""How often each of two concurrent calls is queued."""

DEFAULT_STREAM = 0


@dataclass(frozen=True)
class Queue:
    """Work for one stream of a device; nothing here waits for it but `drain`.

    A delay is so many ``copies`` between two halves of a ``block`` of device memory.
    """

    device: Device
    stream: int
    block: int
    copies: int = 1

    def hold_up(self) -> None:
        """Keep the stream busy for one delay."""
        for _ in range(self.copies):
            self.copy(self.block, self.block + _BLOCK, _BLOCK)

    def copy(self, target: int, source: int, size: int) -> None:
        if size:
            self.device.call("aclrtMemcpyAsync", target, size, source, size, DEVICE_TO_DEVICE, self.stream)

    def erase(self, address: int, size: int) -> None:
        if size:
            self.device.call("aclrtMemsetAsync", address, size, 0, size, self.stream)

    def await_all_of(self, other: Queue, event: int) -> None:
        """Order what is queued here from now on after all that ``other`` holds now."""
        self.device.call("aclrtRecordEvent", event, other.stream)
        self.device.call("aclrtStreamWaitEvent", self.stream, event)

    def drain(self) -> None:
        self.device.synchronise(self.stream)


class Launches:
    """Executors of one call that have not run yet, and the workspace in which they take turns."""

    def __init__(self, operator: TwoPhase, waiting: list[tuple[int, int]], workspace: GuardedWorkspace) -> None:
        self._operator = operator
        self._waiting = waiting
        self.workspace = workspace

    def enqueue(self, stream: int) -> None:
        """Run phase two of the next executor."""
        size, executor = self._waiting.pop()
        self._operator.run(self.workspace.address if size else 0, size, executor, stream)


@contextmanager
def _launches(device: Device, operator: TwoPhase, operands: Sequence[Operands]) -> Iterator[Launches]:
    """Prepare an executor for each of ``operands``, the last of them first.

    Whatever happens in the block, at its end the whole device is waited for, and executors that have not run are
    destroyed.
    """
    waiting: list[tuple[int, int]] = []
    try:
        for prepared in operands:
            waiting.append(operator.prepare(prepared))
        with guarded_workspace(device, max(size for size, _ in waiting)) as workspace:
            try:
                yield Launches(operator, waiting, workspace)
            finally:
                with suppress(AclError):
                    device.call("aclrtSynchronizeDevice")
    finally:
        for _, executor in waiting:
            device.call("aclDestroyAclOpExecutor", executor)


@contextmanager
def _spare(device: Device, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Allocate device memory of those sizes, by the same names."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(device.memory(size)) for name, size in sizes.items()}


def _sizes(call: Call, names: Sequence[str]) -> dict[str, int]:
    return {name: len(call.tensors[name].buffer) for name in names}


def _produce(queue: Queue, operands: Operands, made: Mapping[str, int]) -> None:
    """Queue the production of the inputs: a delay, and copies from where they lie ready."""
    queue.hold_up()
    for name, size in _sizes(operands.call, tuple(made)).items():
        queue.copy(operands.allocations[name], made[name], size)


@contextmanager
def _unmade(device: Device, operands: Operands) -> Iterator[dict[str, int]]:
    """Upload the inputs elsewhere while the call's tensors hold zeros, which are indices in any plane."""
    sizes = _sizes(operands.call, operands.call.operator.inputs)
    with _spare(device, sizes) as made:
        for name, size in sizes.items():
            device.upload(made[name], operands.call.tensors[name].buffer)
            device.fill(operands.allocations[name], size, 0)
        yield made


def _inputs_being_made(queue: Queue, operator: TwoPhase, call: Call) -> Outcome:
    device = queue.device
    with (
        operator.operands(call) as operands,
        _unmade(device, operands) as made,
        _launches(device, operator, [operands]) as launches,
    ):
        _produce(queue, operands, made)
        launches.enqueue(queue.stream)
        return _result(queue, operands, launches)


def _event_to_wait_for(queue: Queue, operator: TwoPhase, call: Call) -> Outcome:
    device = queue.device
    with (
        operator.operands(call) as operands,
        _unmade(device, operands) as made,
        device.another_stream() as stream,
        device.event() as event,
        _launches(device, operator, [operands]) as launches,
    ):
        producer = replace(queue, stream=stream)
        _produce(producer, operands, made)
        queue.await_all_of(producer, event)
        launches.enqueue(queue.stream)
        return _result(queue, operands, launches)


def _inputs_overwritten_behind(queue: Queue, operator: TwoPhase, call: Call) -> Outcome:
    with operator.operands(call) as operands, _launches(queue.device, operator, [operands]) as launches:
        replace(queue, stream=DEFAULT_STREAM).hold_up()
        launches.enqueue(queue.stream)
        for name, size in _sizes(call, call.operator.inputs).items():
            queue.erase(operands.allocations[name], size)
        return _result(queue, operands, launches)


def _outputs_read_behind(queue: Queue, operator: TwoPhase, call: Call) -> Outcome:
    device, sizes = queue.device, _sizes(call, call.operator.outputs)
    with (
        operator.operands(call) as operands,
        _spare(device, sizes) as read,
        _launches(device, operator, [operands]) as launches,
    ):
        replace(queue, stream=DEFAULT_STREAM).hold_up()
        launches.enqueue(queue.stream)
        for name, size in sizes.items():
            queue.copy(read[name], operands.allocations[name], size)
        outcome = _result(queue, operands, launches)
        for name in sizes:
            device.download(call.tensors[name].buffer, read[name])
        return outcome


def _workspace_of_the_call_before(queue: Queue, operator: TwoPhase, call: Call) -> Outcome:
    device = queue.device
    with (
        operator.operands(call) as earlier,
        operator.operands(call) as operands,
        _unmade(device, earlier),
        _launches(device, operator, [operands, earlier]) as launches,
    ):
        queue.hold_up()
        launches.enqueue(queue.stream)
        launches.enqueue(queue.stream)
        return _result(queue, operands, launches)


def _result(queue: Queue, operands: Operands, launches: Launches) -> Outcome:
    """Wait for the call's stream and return its outcome."""
    queue.drain()
    guard_violations = launches.workspace.guard_violations()
    operands.download(queue.device)
    return completed(operands.call, 0.0, guard_violations)


HAZARDS: dict[Hazard, Callable[[Queue, TwoPhase, Call], Outcome]] = {
    Hazard.INPUTS_BEING_MADE: _inputs_being_made,
    Hazard.INPUTS_OVERWRITTEN: _inputs_overwritten_behind,
    Hazard.OUTPUTS_READ: _outputs_read_behind,
    Hazard.WORKSPACE_SHARED: _workspace_of_the_call_before,
    Hazard.EVENT: _event_to_wait_for,
}


class AclnnStreams:
    """`poolproof.backends.base.Streams` of one device. ``outcome_of`` gives the outcome of a status that is not 0."""

    hazards = tuple(HAZARDS)

    def __init__(
        self, device: Device, operators: Mapping[str, TwoPhase], outcome_of: Callable[[AclError], Outcome]
    ) -> None:
        self._device = device
        self._operators = operators
        self._outcome_of = outcome_of

    def run(self, call: Call, hazard: Hazard) -> Outcome:
        try:
            self._device.set_deterministic(call.deterministic)
            return HAZARDS[hazard](self.queue, self._operators[call.operator.name], call)
        except AclError as error:
            return self._outcome_of(error)

    def run_at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        try:
            self._device.set_deterministic(first.deterministic)
            return self._at_once(first, second)
        except AclError as error:
            outcome = self._outcome_of(error)
            return outcome, outcome

    def _at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        device, queue = self._device, self.queue
        one, two = (self._operators[call.operator.name] for call in (first, second))
        with (
            one.operands(first) as operands,
            two.operands(second) as other_operands,
            device.another_stream() as stream,
            device.event() as event,
            _launches(device, one, [operands] * _ROUNDS) as launches,
            _launches(device, two, [other_operands] * _ROUNDS) as beside,
        ):
            other = replace(queue, stream=stream)
            queue.hold_up()
            other.await_all_of(queue, event)
            for _ in range(_ROUNDS):
                launches.enqueue(queue.stream)
                beside.enqueue(other.stream)
            return _result(queue, operands, launches), _result(other, other_operands, beside)

    @cached_property
    def queue(self) -> Queue:
        """The device's own stream, with memory for delays that is allocated once.

        How many copies last `_DELAY_SECONDS` is measured, after one copy that warms up.
        """
        queue = Queue(self._device, self._device.stream, self._device.allocate(2 * _BLOCK))
        queue.hold_up()
        seconds = self._device.timed(queue.stream, queue.hold_up)
        return replace(queue, copies=min(_MOST_COPIES, ceil(_DELAY_SECONDS / seconds)) if seconds > 0 else _MOST_COPIES)
