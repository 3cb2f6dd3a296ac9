"""Low-level calls, legal or not, and everything they leave behind.

Null pointers, wrong ranks, private formats and planes of 2**31 cells are passed on exactly as described. Storages that
would not fit into memory are described in full and backed by a few bytes: argument checks look at descriptions alone,
and phase two is not run on them.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from math import prod

import numpy as np

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import TwoPhase, workspace_for
from poolproof.backends.aclnn.operands import argument_objects
from poolproof.backends.aclnn.status import SUCCESS, AclError
from poolproof.backends.base import Attempt
from poolproof.references.contract.call import ContractCall, TensorArgument

LARGEST_STORAGE = 1 << 22
"""Bytes up to which a storage is allocated as described."""

_FEW = 64
"""Bytes that back a storage that cannot be allocated."""

_ITEM_SIZES = {"DOUBLE": 8, "INT64": 8, "UINT64": 8, "COMPLEX64": 8, "COMPLEX128": 16, "FLOAT16": 2, "BF16": 2}
_USUAL_ITEM_SIZE = 4

_SIZE_MARK, _EXECUTOR_MARK = 0x5A5A5A5A5A5A5A5A, 0x5A5A5A5A5A5A5A50
"""Values of the out-pointers' targets before the call."""

_POISON = 0xFF


def attempt(device: Device, operator: TwoPhase, call: ContractCall, runs: bool) -> Attempt:
    """Make the call; phase two only where it ``runs``, phase one succeeds and every storage is fully allocated."""
    with ExitStack() as stack:
        sizes = {name: _allocated(tensor) for name, tensor in call.tensors.items() if tensor is not None}
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
            values = {*call.signature.outputs} & {*sizes} - {call.signature.indices}
            is_poison = [_is_poison(device, addresses[name], sizes[name]) for name in values]
            return Attempt(phase_one, None, text, untouched, all(is_poison))
        fits = all(tensor is None or 0 <= _described(tensor) <= LARGEST_STORAGE for tensor in call.tensors.values())
        phase_two = _second_phase(device, operator, size.value, int(executor.value or 0), runs and fits)
        return Attempt(phase_one, phase_two, text, workspace=size.value)


def _second_phase(device: Device, operator: TwoPhase, size: int, executor: int, runs: bool) -> int | None:
    """Run phase two and return its status; None where it does not run and the executor is destroyed instead."""
    if not runs:
        device.call("aclDestroyAclOpExecutor", executor)
        return None
    with workspace_for(device, executor, size) as workspace:
        try:
            operator.run(workspace.address, size, executor, device.stream)
            device.synchronise(device.stream)
        except AclError as error:
            return error.code
    return SUCCESS


def _described(tensor: TensorArgument) -> int:
    return prod(tensor.storage) * _ITEM_SIZES.get(tensor.dtype, _USUAL_ITEM_SIZE)


def _allocated(tensor: TensorArgument) -> int:
    """Count the bytes to allocate: those described, where they fit."""
    described = _described(tensor)
    return max(described, _FEW) if described <= LARGEST_STORAGE else _FEW


def _is_poison(device: Device, address: int, size: int) -> bool:
    held = np.empty(size, np.uint8)
    device.download(held, address)
    return bool((held == _POISON).all())
