"""C prototypes of all functions that poolproof calls, as ctypes types.

Without them, ctypes would truncate pointers and 64-bit sizes to int.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from poolproof.references.contract.vocabulary import SIGNATURES, Role
from poolproof.references.operators import Operator

Prototype = tuple[object, tuple[object, ...]]
"""(result type, argument types)."""

Status = c_int32
_Handle = c_void_p
_Out = POINTER(c_void_p)
_Int64s = POINTER(c_int64)

FUNCTIONS: dict[str, Prototype] = {
    "aclInit": (Status, (c_char_p,)),
    "aclrtSetDevice": (Status, (c_int32,)),
    "aclrtGetCurrentContext": (Status, (_Out,)),
    "aclrtSetCurrentContext": (Status, (_Handle,)),
    "aclrtGetDeviceCount": (Status, (POINTER(c_uint32),)),
    "aclrtCreateStream": (Status, (_Out,)),
    "aclrtDestroyStream": (Status, (_Handle,)),
    "aclrtSynchronizeStreamWithTimeout": (Status, (_Handle, c_int32)),
    "aclrtSynchronizeDevice": (Status, ()),
    "aclrtMalloc": (Status, (_Out, c_size_t, c_int)),
    "aclrtFree": (Status, (c_void_p,)),
    "aclrtMemcpy": (Status, (c_void_p, c_size_t, c_void_p, c_size_t, c_int)),
    "aclrtMemset": (Status, (c_void_p, c_size_t, c_int32, c_size_t)),
    "aclrtMemcpyAsync": (Status, (c_void_p, c_size_t, c_void_p, c_size_t, c_int, _Handle)),
    "aclrtMemsetAsync": (Status, (c_void_p, c_size_t, c_int32, c_size_t, _Handle)),
    "aclrtGetMemInfo": (Status, (c_int, POINTER(c_size_t), POINTER(c_size_t))),
    "aclrtGetSocName": (c_char_p, ()),
    "aclGetRecentErrMsg": (c_char_p, ()),
    "aclrtSetSysParamOpt": (Status, (c_int, c_int64)),
    "aclrtCtxSetSysParamOpt": (Status, (c_int, c_int64)),
    "aclrtCreateEvent": (Status, (_Out,)),
    "aclrtDestroyEvent": (Status, (_Handle,)),
    "aclrtRecordEvent": (Status, (_Handle, _Handle)),
    "aclrtStreamWaitEvent": (Status, (_Handle, _Handle)),
    "aclrtEventElapsedTime": (Status, (POINTER(c_float), _Handle, _Handle)),
    "aclCreateTensor": (c_void_p, (_Int64s, c_uint64, c_int, _Int64s, c_int64, c_int, _Int64s, c_uint64, c_void_p)),
    "aclDestroyTensor": (Status, (_Handle,)),
    "aclCreateIntArray": (c_void_p, (_Int64s, c_uint64)),
    "aclDestroyIntArray": (Status, (_Handle,)),
    "aclSetAclOpExecutorRepeatable": (Status, (_Handle,)),
    "aclDestroyAclOpExecutor": (Status, (_Handle,)),
    "aclSetInputTensorAddr": (Status, (_Handle, c_size_t, _Handle, c_void_p)),
    "aclSetOutputTensorAddr": (Status, (_Handle, c_size_t, _Handle, c_void_p)),
}
"""Functions of the runtime and of the aclnn base."""

OPTIONAL_FUNCTIONS: dict[str, Prototype] = {
    "aclsysGetVersionStr": (Status, (c_char_p, c_char_p)),
    "aclrtGetVersion": (Status, (POINTER(c_int32), POINTER(c_int32), POINTER(c_int32))),
    "aclrtGetDeviceSatMode": (Status, (POINTER(c_int),)),
    "aclSetRawTensorAddr": (Status, (_Handle, c_void_p)),
    "poolproof_emulator_last_route": (c_char_p, ()),
}
"""Functions that only some generations of the runtime and the base have, and one of the emulator."""

_ENDING = (POINTER(c_uint64), _Out)
_SECOND_PHASE = (c_void_p, c_uint64, _Handle, _Handle)
"""(workspace, workspace size, executor, stream)."""


def operator_prototypes(operator: Operator) -> dict[str, Prototype]:
    """Return the prototypes of both phases. Phase one takes a handle for every argument except flags."""
    name = f"aclnn{operator.name}"
    arguments = (c_bool if argument.role is Role.FLAG else _Handle for argument in SIGNATURES[name].arguments)
    return {f"{name}GetWorkspaceSize": (Status, (*arguments, *_ENDING)), name: (Status, _SECOND_PHASE)}


def int64_array(values: tuple[int, ...]) -> ctypes.Array[c_int64]:
    return (c_int64 * len(values))(*values)


FORMATS = {
    "UNDEFINED": -1, "ND": 2, "NC": 35, "NCL": 47, "NCHW": 0, "NHWC": 1, "HWCN": 16, "NCDHW": 30, "NDHWC": 27,
    "NC1HWC0": 3, "NC1HWC0_C04": 12, "NDC1HWC0": 32, "FRACTAL_Z": 4, "FRACTAL_Z_3D": 33,
    "FRACTAL_NZ": 29, "FRACTAL_NZ_C0_2": 52, "FRACTAL_NZ_C0_4": 53, "FRACTAL_NZ_C0_8": 54,
    "FRACTAL_NZ_C0_16": 50, "FRACTAL_NZ_C0_32": 51,
}  # fmt: skip
"""aclFormat (the runtime's ``acl_base_rt.h``)."""

MALLOC_HUGE_FIRST = 0
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
HBM_MEMORY = 1
OPTION_DETERMINISTIC = 0
SATURATION = 0
"""aclrtFloatOverflowMode of a device without infinities."""
