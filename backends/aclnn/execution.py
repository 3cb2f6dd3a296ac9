"""The two-phase call: operands on the device, phase one, an exact workspace, phase two, results back.

Device buffers include the caller's guard bands around each storage. A workspace has guard bands of its own. Writes out
of bounds are therefore visible in each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from poolproof.backends.aclnn.calls import contract_call
from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.prototypes import FORMATS, int64_array
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.base import Attempt, Call, Outcome, Status
from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.vocabulary import DTYPES, SIGNATURES

WORKSPACE_GUARD = 512
"""Bytes of guard band on either side of a workspace."""

POISON = 0xFF
"""NaN in every float dtype: it exposes a kernel that assumes a zeroed workspace or leaves outputs unwritten."""

POISONED_END = 1 << 18
"""Bytes to poison at each end of a long workspace; sums begin at its start, or after the runtime's own part."""


Objects = Mapping[str, object]
"""Phase one's arguments without the two results, by the library's names."""


@contextmanager
def argument_objects(device: Device, call: ContractCall, addresses: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """Create phase one's arguments without the two results, in API order; each storage begins at its address.

    The library copies dimension lists when it creates an object, but keeps a pointer to the object until phase two has
    run. So objects must outlive the call, and lists need not.
    """
    with ExitStack() as cleanup:
        objects: dict[str, object] = {}
        for name, value in call.values().items():
            if isinstance(value, TensorArgument):
                objects[name] = _tensor_object(device, value, addresses[name])
                cleanup.callback(device.call, "aclDestroyTensor", objects[name])
            elif isinstance(value, tuple):
                objects[name] = device.handle("aclCreateIntArray", int64_array(value), len(value))
                cleanup.callback(device.call, "aclDestroyIntArray", objects[name])
            else:
                objects[name] = value
        yield objects


def _tensor_object(device: Device, tensor: TensorArgument, address: int) -> int:
    return device.handle(
        "aclCreateTensor",
        int64_array(tensor.shape),
        len(tensor.shape),
        DTYPES[tensor.dtype],
        int64_array(tensor.strides),
        tensor.offset,
        FORMATS[tensor.format],
        int64_array(tensor.storage),
        len(tensor.storage),
        address,
    )


def storage_addresses(call: Call, allocations: Mapping[str, int]) -> dict[str, int]:
    """Return the address of each storage, by the library's names."""
    names = SIGNATURES[f"aclnn{call.operator.name}"].names
    return {names[name]: allocations[name] + tensor.guard for name, tensor in call.tensors.items()}


class TwoPhase:
    """The two functions of one operator. Every failure is an `AclError`."""

    def __init__(self, device: Device, name: str, phases: tuple[Any, Any]) -> None:
        self._device = device
        self._name = f"aclnn{name}"
        self.first, self._second = phases

    @contextmanager
    def uploaded(self, call: Call) -> Iterator[dict[str, int]]:
        """Upload the tensors' buffers until the end of the block; yield their addresses by poolproof's names."""
        with ExitStack() as stack:
            allocations = {}
            for name, tensor in call.tensors.items():
                allocations[name] = stack.enter_context(self._device.memory(len(tensor.buffer)))
                self._device.upload(allocations[name], tensor.buffer)
            yield allocations

    def prepare(self, objects: Objects) -> tuple[int, int]:
        """Run phase one; return (workspace size in bytes, executor)."""
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        code = self.first(*objects.values(), ctypes.byref(size), ctypes.byref(executor))
        if code != SUCCESS:
            raise self._device.error(f"{self._name}GetWorkspaceSize", code)
        return size.value, int(executor.value or 0)

    def run(self, workspace: int, size: int, executor: int, stream: int) -> None:
        """Run phase two, which enqueues on ``stream``; 0 stands for a null pointer."""
        code = int(self._second(workspace or None, size, executor or None, stream or None))
        if code != SUCCESS:
            raise self._device.error(self._name, code)


def execute(device: Device, operator: TwoPhase, call: Call, stream: int) -> Outcome:
    with operator.uploaded(call) as allocations:
        with argument_objects(device, contract_call(call), storage_addresses(call, allocations)) as objects:
            size, executor = operator.prepare(objects)
            with workspace_for(device, executor, size) as workspace:
                seconds = device.timed(stream, lambda: operator.run(workspace.address, size, executor, stream))
                guard_violations = workspace.guard_violations()
        for name, tensor in call.tensors.items():
            device.download(tensor.buffer, allocations[name])
    results = {name: (call.tensors[name].shape, call.tensors[name].dtype.name) for name in call.operator.outputs}
    return Outcome(Status.COMPLETED, SUCCESS, seconds=seconds, results=results, guard_violations=guard_violations)


@contextmanager
def workspace_for(device: Device, executor: int, size: int) -> Iterator[GuardedWorkspace]:
    """Allocate an executor's workspace; if that fails, destroy the executor, as phase two would."""
    with ExitStack() as stack:
        try:
            workspace = stack.enter_context(guarded_workspace(device, size))
        except AclError:
            device.call("aclDestroyAclOpExecutor", executor)
            raise
        yield workspace


@contextmanager
def guarded_workspace(device: Device, size: int) -> Iterator[GuardedWorkspace]:
    """Allocate a poisoned workspace of exactly ``size`` bytes between guard bands; none for size 0."""
    with device.memory(size + 2 * WORKSPACE_GUARD if size else 0) as allocation:
        workspace = GuardedWorkspace(device, allocation, size)
        workspace.poison()
        yield workspace


@dataclass(frozen=True)
class GuardedWorkspace:
    device: Device
    allocation: int
    size: int

    @property
    def address(self) -> int:
        return self.allocation + WORKSPACE_GUARD if self.size else 0

    def poison(self) -> None:
        length = self.size + 2 * WORKSPACE_GUARD
        if self.size and length <= 2 * POISONED_END:
            self.device.fill(self.allocation, length, POISON)
        elif self.size:
            self.device.fill(self.allocation, POISONED_END, POISON)
            self.device.fill(self.allocation + length - POISONED_END, POISONED_END, POISON)

    def guard_violations(self) -> tuple[str, ...]:
        if not self.size:
            return ()
        sides = (("before", self.allocation), ("past", self.address + self.size))
        return tuple(
            f"memory {side} the workspace of {self.size} bytes was written"
            for side, address in sides
            if not self.device.holds(address, WORKSPACE_GUARD, POISON)
        )

    def disuse_violations(self) -> tuple[str, ...]:
        """Report writes into the poisoned part of a workspace that is not in use."""
        poisoned = min(self.size, POISONED_END - WORKSPACE_GUARD)
        if not self.size or self.device.holds(self.address, poisoned, POISON):
            return ()
        return (f"a workspace of {self.size} bytes of an earlier run was written",)


# Low-level calls, legal or not: null pointers, wrong ranks, private formats and planes of 2**31 cells are passed on
# exactly as described. Too large storages are described in full and backed by a few bytes: argument checks only read
# descriptions, and phase two is not run on them.

LARGEST_STORAGE = 1 << 22
"""Largest storage, in bytes, that is allocated as described."""

_FEW = 64
"""Bytes behind a storage that is too large to allocate."""

_ITEM_SIZES = {"DOUBLE": 8, "INT64": 8, "UINT64": 8, "COMPLEX64": 8, "COMPLEX128": 16, "FLOAT16": 2, "BF16": 2}
"""Bytes of an element of dtypes where they are not 4."""

_SIZE_MARK, _EXECUTOR_MARK = 0x5A5A5A5A5A5A5A5A, 0x5A5A5A5A5A5A5A50
"""Initial values of the targets of the out-pointers."""


def attempt(device: Device, operator: TwoPhase, call: ContractCall, runs: bool) -> Attempt:
    """Make the call; run phase two only if ``runs``, phase one succeeds and all storages are fully allocated."""
    tensors = {name: tensor for name, tensor in call.tensors.items() if tensor is not None}
    described = {name: prod(tensor.storage) * _ITEM_SIZES.get(tensor.dtype, 4) for name, tensor in tensors.items()}
    sizes = {name: max(size, _FEW) if size <= LARGEST_STORAGE else _FEW for name, size in described.items()}
    with ExitStack() as stack:
        addresses = {name: stack.enter_context(device.memory(size)) for name, size in sizes.items()}
        for name, address in addresses.items():
            device.fill(
                address, sizes[name], 0 if name == call.signature.indices else POISON
            )  # 0 is an index in every plane
        objects = stack.enter_context(argument_objects(device, call, addresses))
        size, executor = ctypes.c_uint64(_SIZE_MARK), ctypes.c_void_p(_EXECUTOR_MARK)
        outputs = {"workspaceSize": ctypes.byref(size), "executor": ctypes.byref(executor)}
        ends = [None if name in call.null_outputs else pointer for name, pointer in outputs.items()]
        device.recent_error()  # clears the text of earlier errors
        phase_one = operator.first(*objects.values(), *ends)
        text = device.recent_error()
        if phase_one != SUCCESS:
            untouched = size.value == _SIZE_MARK and executor.value == _EXECUTOR_MARK
            outputs_of_values = {*call.signature.outputs} & {*sizes} - {call.signature.indices}
            is_poison = [device.holds(addresses[name], sizes[name], POISON) for name in outputs_of_values]
            return Attempt(phase_one, None, text, untouched, all(is_poison))
        phase_two = None
        if runs and all(0 <= length <= LARGEST_STORAGE for length in described.values()):
            phase_two = _second_phase(device, operator, size.value, int(executor.value or 0))
        else:
            device.call("aclDestroyAclOpExecutor", executor)
        return Attempt(phase_one, phase_two, text, workspace=size.value)


def _second_phase(device: Device, operator: TwoPhase, size: int, executor: int) -> int:
    with workspace_for(device, executor, size) as workspace:
        try:
            operator.run(workspace.address, size, executor, device.stream)
            device.synchronise(device.stream)
        except AclError as error:
            return error.code
    return SUCCESS
