"""Calls among other work on streams, where only the order on a stream, and events, say what comes first.

Work queued before a call takes long compared to queueing, and work behind it is short. A library that reads, writes or
computes anywhere but at its place on its stream is then early or late by a margin: it reads zeros as inputs, or writes
outputs after they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import GuardedWorkspace, TwoPhase, completed, guarded_workspace
from poolproof.backends.aclnn.prototypes import DEVICE_TO_DEVICE, MALLOC_HUGE_FIRST
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
    """Work for one stream of a device; nothing here waits for it.

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
        self.device.call("aclrtMemcpyAsync", target, size, source, size, DEVICE_TO_DEVICE, self.stream)

    def erase(self, address: int, size: int) -> None:
        self.device.call("aclrtMemsetAsync", address, size, 0, size, self.stream)

    def await_all_of(self, other: Queue, event: int) -> None:
        """Order what is queued here from now on after all that ``other`` holds now."""
        self.device.call("aclrtRecordEvent", event, other.stream)
        self.device.call("aclrtStreamWaitEvent", self.stream, event)


class QueuedCall:
    """A call on the device that can be launched so many times, in one workspace; ``resources`` frees what it holds."""

    def __init__(
        self,
        resources: ExitStack,
        queue: Queue,
        operator: TwoPhase,
        call: Call,
        launches: int = 1,
        workspace: GuardedWorkspace | None = None,
    ) -> None:
        self.resources = resources
        self.queue = queue
        self.device = queue.device
        self._operator = operator
        self._call = call
        self._operands = resources.enter_context(operator.operands(call))
        self._executors: list[tuple[int, int]] = []
        resources.callback(self._destroy_executors)
        for _ in range(launches):
            self._executors.append(operator.prepare(self._operands))
        size = max(size for size, _ in self._executors)
        self._workspace = workspace or resources.enter_context(guarded_workspace(self.device, size))
        self._elsewhere: dict[str, int] = {}
        self._read: tuple[str, ...] = ()

    def sharing_workspace(self) -> QueuedCall:
        """Make the call once more, on tensors of its own in the same workspace."""
        return QueuedCall(self.resources, self.queue, self._operator, self._call, workspace=self._workspace)

    def withhold_inputs(self) -> None:
        """Upload the inputs elsewhere while the call's tensors hold zeros, which are indices in any plane."""
        for name in self._call.operator.inputs:
            buffer = self._call.tensors[name].buffer
            self.device.upload(self._place_elsewhere(name), buffer)
            self.device.fill(self._operands.allocations[name], len(buffer), 0)

    def produce_inputs(self, queue: Queue) -> None:
        """Queue the production of the inputs: a delay, and copies from where they lie ready."""
        queue.hold_up()
        for name in self._call.operator.inputs:
            queue.copy(self._operands.allocations[name], self._elsewhere[name], self._size(name))

    def launch(self) -> None:
        """Run phase two of the next executor."""
        size, executor = self._executors.pop()
        self._operator.run(self._workspace.address if size else 0, size, executor, self.queue.stream)

    def erase_inputs(self) -> None:
        for name in self._call.operator.inputs:
            self.queue.erase(self._operands.allocations[name], self._size(name))

    def read_outputs(self) -> None:
        """Queue copies of the outputs, which are then the call's result."""
        self._read = self._call.operator.outputs
        for name in self._read:
            self.queue.copy(self._place_elsewhere(name), self._operands.allocations[name], self._size(name))

    def outcome(self) -> Outcome:
        """Wait for the call's stream and return its outcome."""
        self.device.synchronise(self.queue.stream)
        guard_violations = self._workspace.guard_violations()
        self._operands.download(self.device)
        for name in self._read:
            self.device.download(self._call.tensors[name].buffer, self._elsewhere[name])
        return completed(self._call, 0.0, guard_violations)

    def _place_elsewhere(self, name: str) -> int:
        """Allocate memory for a copy of a tensor's buffer."""
        self._elsewhere[name] = self.resources.enter_context(self.device.memory(self._size(name)))
        return self._elsewhere[name]

    def _size(self, name: str) -> int:
        return len(self._call.tensors[name].buffer)

    def _destroy_executors(self) -> None:
        """Destroy the executors that have not run."""
        for _, executor in self._executors:
            self.device.call("aclDestroyAclOpExecutor", executor)


def _inputs_being_made(call: QueuedCall) -> None:
    call.withhold_inputs()
    call.produce_inputs(call.queue)
    call.launch()


def _event_to_wait_for(call: QueuedCall) -> None:
    producer = replace(call.queue, stream=call.resources.enter_context(call.device.another_stream()))
    event = call.resources.enter_context(call.device.event())
    call.withhold_inputs()
    call.produce_inputs(producer)
    call.queue.await_all_of(producer, event)
    call.launch()


def _inputs_overwritten(call: QueuedCall) -> None:
    replace(call.queue, stream=DEFAULT_STREAM).hold_up()
    call.launch()
    call.erase_inputs()


def _outputs_read(call: QueuedCall) -> None:
    replace(call.queue, stream=DEFAULT_STREAM).hold_up()
    call.launch()
    call.read_outputs()


def _workspace_shared(call: QueuedCall) -> None:
    earlier = call.sharing_workspace()
    earlier.withhold_inputs()
    call.queue.hold_up()
    earlier.launch()
    call.launch()


_HAZARDS: dict[Hazard, Callable[[QueuedCall], None]] = {
    Hazard.INPUTS_BEING_MADE: _inputs_being_made,
    Hazard.INPUTS_OVERWRITTEN: _inputs_overwritten,
    Hazard.OUTPUTS_READ: _outputs_read,
    Hazard.WORKSPACE_SHARED: _workspace_shared,
    Hazard.EVENT: _event_to_wait_for,
}


@dataclass(frozen=True)
class AclnnStreams:
    """`poolproof.backends.base.Streams` of one device. ``outcome_of`` gives the outcome of a status that is not 0."""

    device: Device
    operators: Mapping[str, TwoPhase]
    outcome_of: Callable[[AclError], Outcome]
    hazards = tuple(_HAZARDS)

    def run(self, call: Call, hazard: Hazard) -> Outcome:
        try:
            with self._resources(call.deterministic) as resources:
                queued = QueuedCall(resources, self.queue, self.operators[call.operator.name], call)
                _HAZARDS[hazard](queued)
                return queued.outcome()
        except AclError as error:
            return self.outcome_of(error)

    def run_at_once(self, first: Call, second: Call) -> tuple[Outcome, Outcome]:
        try:
            with self._resources(first.deterministic) as resources:
                other_queue = replace(self.queue, stream=resources.enter_context(self.device.another_stream()))
                event = resources.enter_context(self.device.event())
                one, other = (
                    QueuedCall(resources, queue, self.operators[call.operator.name], call, _ROUNDS)
                    for queue, call in ((self.queue, first), (other_queue, second))
                )
                self.queue.hold_up()
                other_queue.await_all_of(self.queue, event)
                for _ in range(_ROUNDS):
                    one.launch()
                    other.launch()
                return one.outcome(), other.outcome()
        except AclError as error:
            outcome = self.outcome_of(error)
            return outcome, outcome

    @contextmanager
    def _resources(self, deterministic: bool) -> Iterator[ExitStack]:
        """Set the mode; at the end, whatever happens, wait for the whole device before anything is freed."""
        self.device.set_deterministic(deterministic)
        with ExitStack() as resources:
            try:
                yield resources
            finally:
                with suppress(AclError):
                    self.device.call("aclrtSynchronizeDevice")

    @cached_property
    def queue(self) -> Queue:
        """The device's own stream, with memory for delays that is allocated once.

        How many copies last `_DELAY_SECONDS` is measured, after one copy that warms up.
        """
        queue = Queue(
            self.device, self.device.stream, self.device.pointer("aclrtMalloc", 2 * _BLOCK, MALLOC_HUGE_FIRST)
        )
        queue.hold_up()
        seconds = self.device.timed(queue.stream, queue.hold_up)
        return replace(queue, copies=min(_MOST_COPIES, ceil(_DELAY_SECONDS / seconds)) if seconds > 0 else _MOST_COPIES)
