"""Low-level calls, legal or not, and everything they leave behind.

Null pointers, wrong ranks, private formats and planes of 2**31 cells are passed on exactly as described. Storages that
would not fit into memory are described in full and backed by a few bytes: argument checks look at descriptions alone,
and phase two is not run on them.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from math import prod

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import TwoPhase, argument_objects, workspace_for
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.base import Attempt
from poolproof.references.contract.call import ContractCall

LARGEST_STORAGE = 1 << 22
"""Bytes up to which a storage is allocated as described."""

_FEW = 64
"""Bytes that back a storage that cannot be allocated."""

_ITEM_SIZES = {"DOUBLE": 8, "INT64": 8, "UINT64": 8, "COMPLEX64": 8, "COMPLEX128": 16, "FLOAT16": 2, "BF16": 2}
"""Bytes of an element, where they are not 4."""

_SIZE_MARK, _EXECUTOR_MARK = 0x5A5A5A5A5A5A5A5A, 0x5A5A5A5A5A5A5A50
"""Values of the out-pointers' targets before the call."""

_POISON = 0xFF


def attempt(device: Device, operator: TwoPhase, call: ContractCall, runs: bool) -> Attempt:
    """Make the call; phase two only where it ``runs``, phase one succeeds and every storage is fully allocated."""
    tensors = {name: tensor for name, tensor in call.tensors.items() if tensor is not None}
    described = {name: prod(tensor.storage) * _ITEM_SIZES.get(tensor.dtype, 4) for name, tensor in tensors.items()}
    sizes = {name: max(size, _FEW) if size <= LARGEST_STORAGE else _FEW for name, size in described.items()}
    with ExitStack() as stack:
        addresses = {name: stack.enter_context(device.memory(size)) for name, size in sizes.items()}
        for name, address in addresses.items():
            device.fill(address, sizes[name], 0 if name == call.signature.indices else _POISON)  # 0 is in every plane
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
            is_poison = [device.holds(addresses[name], sizes[name], _POISON) for name in outputs_of_values]
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
