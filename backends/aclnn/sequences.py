"""Sequences of actions (`poolproof.references.sequences`) on a device's calls, executors, streams and threads.

The host waits only at the end, unless an action says so; streams and events define the order of work. A stream that is
held up is busy for many times as long as queueing takes. So a library that works anywhere but at its place on its
stream is clearly too early or too late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Lock

from poolproof.backends.aclnn import execution
from poolproof.backends.aclnn.calls import contract_call, uncached
from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import GuardedWorkspace, Objects, TwoPhase
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.base import Call, SequenceResult
from poolproof.references.contract.statuses import PROVES_NOTHING
from poolproof.references.contract.vocabulary import SIGNATURES, Role
from poolproof.references.sequences import DEFAULT_STREAM, MANNERS, VERBS, Action, Actions

ACTIONS = (*VERBS, *MANNERS)
"""All abilities that a device may declare."""

SET_ADDRESS = "aclSetRawTensorAddr"
"""Sets the address of a tensor, before phase one or after phase two. Not every generation has it."""

_ALIGNMENT = 32
"""Tensors begin at multiples of these bytes."""

_FURTHER = 64
"""Bytes by which a workspace is enlarged, or lies further on."""


class NotApplicable(Exception):
    """The sequence does not apply to its calls; the text says why."""


@dataclass
class Executor:
    """Result of phase one; ``made_for`` is the number of its call, ``call`` that of the one that lends its tensors."""

    handle: int
    size: int
    objects: Objects
    made_for: int
    call: int
    repeatable: bool = False

    def workspace_of(self, run: Action) -> int:
        return self.made_for if run.workspace is None else run.workspace


class DeviceCall:
    """One call's tensors on the device, with copies of some in ``elsewhere``, until ``resources`` close."""

    def __init__(self, device: Device, operator: TwoPhase, call: Call, resources: ExitStack) -> None:
        self.call, self.operator = call, operator
        self.allocations = resources.enter_context(operator.uploaded(call))
        self.elsewhere: dict[str, int] = {}
        self.descriptors = resources.enter_context(ExitStack())
        self._device, self._resources = device, resources

    def prepare(self, number: int, what: str) -> Executor:
        describe, allocations = uncached if what == "uncached" else contract_call, self.allocations
        if what == "readdressed":
            allocations = {name: self._zeros(len(tensor.buffer)) for name, tensor in self.call.tensors.items()}
        addresses = execution.storage_addresses(self.call, allocations)
        wrapped = execution.argument_objects(self._device, describe(self.call), addresses)
        objects = self.descriptors.enter_context(wrapped)
        if what == "readdressed":
            for name, address in execution.storage_addresses(self.call, self.allocations).items():
                self._device.call(SET_ADDRESS, objects[name], address)
        self._device.set_deterministic(self.call.deterministic)
        size, handle = self.operator.prepare(objects)
        return Executor(handle, size, objects, number, number)

    def _zeros(self, size: int) -> int:
        memory = self._resources.enter_context(self._device.memory(size))
        self._device.fill(memory, size, 0)
        return memory

    def share_inputs(self, wholly: bool) -> None:
        """Move the first input into the memory of self, completely or so that half of the shorter storage is shared."""
        name, tensors = self.call.operator.inputs[0], self.call.tensors
        shorter = min(len(tensors[each].storage) for each in ("self", name))
        start = 0 if wholly else (len(tensors["self"].storage) - shorter // 2) // _ALIGNMENT * _ALIGNMENT
        size = max(len(tensors["self"].buffer), start + len(tensors[name].buffer))
        self.allocations["self"] = self._resources.enter_context(self._device.memory(size))
        self.allocations[name] = self.allocations["self"] + start
        for each in ("self", name):
            self._device.upload(self.allocations[each], tensors[each].buffer)

    def place_elsewhere(self, name: str) -> int:
        """Return memory for a copy of a tensor's buffer; that of an input already holds one."""
        if name not in self.elsewhere:
            buffer = self.call.tensors[name].buffer
            self.elsewhere[name] = self._resources.enter_context(self._device.memory(len(buffer)))
            if name in self.call.operator.inputs:
                self._device.upload(self.elsewhere[name], buffer)
        return self.elsewhere[name]

    def download(self) -> None:
        """Download every buffer. For an output that a stream copied, download the copy."""
        for name, tensor in self.call.tensors.items():
            is_copied = name in self.elsewhere and name in self.call.operator.outputs
            self._device.download(tensor.buffer, (self.elsewhere if is_copied else self.allocations)[name])


class Interpreter:
    """One sequence. Each method performs the action of its name; ``resources`` frees what it needs."""

    def __init__(self, device: Device, calls: Sequence[DeviceCall], actions: Actions, resources: ExitStack) -> None:
        self._device, self._calls, self._actions, self._resources = device, calls, actions, resources
        self._event = resources.enter_context(device.event())
        self._streams: dict[int, int] = {}
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._at_once: list[Future[None]] = []
        self._executors: dict[int, Executor] = {}
        self._workspaces: dict[int, GuardedWorkspace] = {}
        self._disused: set[int] = set()
        self._allocating = Lock()
        self.statuses: list[int] = []
        self.computed: set[int] = set()
        self.text = ""

    def perform_all(self) -> None:
        """Perform all actions, up to the first failure of an action that is not `asked`."""
        for action in self._actions:
            try:
                self._perform(action)
                while self._at_once and not action.at_once:
                    self._at_once.pop().result()
                self.statuses.append(SUCCESS)
            except AclError as error:
                if not action.asked:
                    raise
                self.statuses.append(error.code)
                self.text = error.text

    def finish(self) -> tuple[str, ...]:
        """Wait for every stream and download the calls' memory; return violations of guard bands and workspaces."""
        for stream in self._streams.values():
            self._device.synchronise(stream)
        for call in self._calls:
            call.download()
        disused = [self._workspaces[number].disuse_violations() for number in sorted(self._disused)]
        guards = [workspace.guard_violations() for workspace in self._workspaces.values()]
        return tuple(violation for violations in (*guards, *disused) for violation in violations)

    def release(self) -> None:
        """Wait for the whole device in any case, and destroy the remaining executors."""
        wait(self._at_once)
        with suppress(AclError):
            self._device.call("aclrtSynchronizeDevice")
        while self._executors:
            self._device.call("aclDestroyAclOpExecutor", self._executors.popitem()[1].handle)

    def prepare(self, action: Action) -> None:
        """Run phase one, and allocate the workspaces of all runs now: that takes longer than queueing may."""
        executor = self._calls[action.call].prepare(action.call, action.what)
        self._executors[action.executor] = executor
        runs = [each for each in self._actions if each.do == "run" and each.executor == action.executor]
        more = _FURTHER if executor.size and {"enlarged", "shifted"} & {run.what for run in runs} else 0
        with self._allocating:
            for number in map(executor.workspace_of, runs):
                if number not in self._workspaces or self._workspaces[number].size < executor.size:
                    workspace = execution.guarded_workspace(self._device, executor.size + more)
                    self._workspaces[number] = self._resources.enter_context(workspace)

    def need(self, action: Action) -> None:
        requested = "a workspace" if self._executors[action.executor].size else "no workspace"
        if requested != action.what:
            raise NotApplicable(f"phase one requests {requested}")

    def run(self, action: Action) -> None:
        executor = self._executors[action.executor]
        number = executor.workspace_of(action)
        if not executor.repeatable:
            del self._executors[action.executor]
        self._disused.discard(number)
        address = self._workspaces[number].address if executor.size and action.what != "null workspace" else 0
        size = {"understated": 1, "enlarged": executor.size + _FURTHER}.get(action.what, executor.size)
        address += _FURTHER if address and action.what == "shifted" else 0
        call = self._calls[executor.call]
        self._device.set_deterministic(call.call.deterministic)
        call.operator.run(address, size, executor.handle, self._stream(action))
        self.computed.add(executor.call)

    def refuse(self, action: Action) -> None:
        call = self._calls[action.call]
        described, addresses = contract_call(call.call), execution.storage_addresses(call.call, call.allocations)
        with execution.argument_objects(self._device, described, addresses) as objects:
            first, *_ = objects.values()
            wrong = {**objects, described.signature.indices: first}
            self._device.call("aclDestroyAclOpExecutor", call.operator.prepare(wrong)[1])

    def share_inputs(self, action: Action) -> None:
        call = self._calls[action.call]
        if len(call.call.operator.inputs) == 1:
            raise NotApplicable("a forward has one input")
        call.share_inputs(action.what == "wholly")

    def make_repeatable(self, action: Action) -> None:
        executor = self._executors[action.executor]
        try:
            self._device.call("aclSetAclOpExecutorRepeatable", executor.handle)
        except AclError as error:
            if action.asked:
                raise
            raise NotApplicable(f"not repeatable: {error.text}") from None
        executor.repeatable = True

    def set_addresses(self, action: Action) -> None:
        executor, target = self._executors[action.executor], self._calls[action.call]
        signature = SIGNATURES[f"aclnn{target.call.operator.name}"]
        addresses = execution.storage_addresses(target.call, target.allocations)
        for setter, role in (("aclSetInputTensorAddr", Role.INPUT), ("aclSetOutputTensorAddr", Role.OUTPUT)):
            for index, name in enumerate(signature.of_role(role)):
                self._device.call(setter, executor.handle, index, executor.objects[name], addresses[name])
        executor.call = action.call

    def destroy(self, action: Action) -> None:
        self._device.call("aclDestroyAclOpExecutor", self._executors.pop(action.executor).handle)

    def destroy_descriptors(self, action: Action) -> None:
        self._calls[action.call].descriptors.close()

    def pass_null(self, action: Action) -> None:
        if action.what == "phase two":
            self._calls[action.call].operator.run(0, 0, 0, self._device.stream)
        else:
            self._device.call(action.what, None)

    def fill(self, action: Action) -> None:
        if action.what == "workspace":
            self._workspaces[action.call].poison()
            self._disused.add(action.call)
            return
        call = self._calls[action.call]
        for name in getattr(call.call.operator, action.what):
            if action.what == "inputs":  # zeros are valid indices in every plane
                call.place_elsewhere(name)
            byte = 0 if action.what == "inputs" else execution.POISON
            self._device.fill(call.allocations[name], len(call.call.tensors[name].buffer), byte)

    def upload(self, action: Action) -> None:
        call = self._calls[action.call]
        for name in call.call.operator.inputs:
            self._device.upload(call.allocations[name], call.call.tensors[name].buffer)

    def copy(self, action: Action) -> None:
        call = self._calls[action.call]
        for name in getattr(call.call.operator, action.what):
            places = call.allocations[name], call.place_elsewhere(name)
            target, source = places if action.what == "inputs" else reversed(places)
            self._device.copy(self._stream(action), target, source, len(call.call.tensors[name].buffer))

    def erase(self, action: Action) -> None:
        call = self._calls[action.call]
        for name in getattr(call.call.operator, action.what or "inputs"):
            size = len(call.call.tensors[name].buffer)
            self._device.call("aclrtMemsetAsync", call.allocations[name], size, 0, size, self._stream(action))

    def hold_up(self, action: Action) -> None:
        self._device.hold_up(self._stream(action))

    def record(self, action: Action) -> None:
        self._device.call("aclrtRecordEvent", self._event, self._stream(action))

    def wait(self, action: Action) -> None:
        self._device.call("aclrtStreamWaitEvent", self._stream(action), self._event)

    def synchronise(self, action: Action) -> None:
        self._device.synchronise(self._stream(action))

    def end_thread(self, action: Action) -> None:
        self._threads.pop(action.thread).shutdown()

    def _perform(self, action: Action) -> None:
        """Perform the action in its thread, which has the context of this one."""
        perform, number = getattr(self, action.do), action.thread
        if not number or action.do == "end_thread":
            perform(action)
            return
        if number not in self._threads:
            self._threads[number] = self._resources.enter_context(ThreadPoolExecutor(1))
            context = self._device.pointer("aclrtGetCurrentContext")
            self._threads[number].submit(self._device.call, "aclrtSetCurrentContext", context).result()
        done = self._threads[number].submit(perform, action)
        if (
            action.at_once and len({call.call.deterministic for call in self._calls}) == 1
        ):  # the mode belongs to the process
            self._at_once.append(done)
        else:
            done.result()

    def _stream(self, action: Action) -> int:
        known = {DEFAULT_STREAM: 0, 1: self._device.stream, **self._streams}
        if action.stream not in known:
            known[action.stream] = self._resources.enter_context(self._device.another_stream())
        return self._streams.setdefault(action.stream, known[action.stream])


def run_sequence(
    device: Device, operators: Mapping[str, TwoPhase], actions: Actions, calls: Sequence[Call]
) -> SequenceResult:
    """Run a sequence, each phase in its call's mode of determinism."""
    statuses: list[int] = []
    try:
        device.set_deterministic(calls[0].deterministic)
        device.recent_error()  # reading clears the error of earlier calls
        with ExitStack() as resources:
            placed = [DeviceCall(device, operators[call.operator.name], call, resources) for call in calls]
            interpreter = Interpreter(device, placed, actions, resources)
            statuses = interpreter.statuses
            try:
                interpreter.perform_all()
                violations = interpreter.finish()
            finally:
                interpreter.release()
        return SequenceResult(tuple(statuses), interpreter.text, tuple(sorted(interpreter.computed)), violations)
    except NotApplicable as error:
        return SequenceResult(text=str(error), applicable=False)
    except AclError as error:
        proves_nothing = error.code == SUCCESS or error.code in PROVES_NOTHING
        return SequenceResult(() if proves_nothing else (*statuses, error.code), str(error))
