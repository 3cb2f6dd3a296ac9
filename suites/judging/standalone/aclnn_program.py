"""The program for calls through aclnn: ctypes, and nothing that Python does not bring along."""

from __future__ import annotations

from poolproof.backends.aclnn.operands import describe_tensor
from poolproof.backends.aclnn.prototypes import DATA_TYPES
from poolproof.backends.aclnn.prototypes import FORMATS as TAGS
from poolproof.backends.base import Call, Tensor
from poolproof.references.formats import FORMATS
from poolproof.references.indices import MASK
from poolproof.suites.cases.operands import Contents
from poolproof.suites.judging.standalone.spelling import comparison, numbers

_HEAD = '''"""{title} through aclnn{determinism}, with nothing but Python.

usage: python call.py [LIBRARY ...]

LIBRARY: what to load, in this order; left out, the usual ones of an installation whose set_env.sh was sourced.
"""

import ctypes
import struct
import sys
from ctypes import byref, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from itertools import product
from math import copysign, frexp, fsum, inf, isfinite, ldexp, nan, prod

USUAL = ("libascendcl.so", "libnnopbase.so", "libopapi_math.so", "libopapi_nn.so")
try:
    LIBRARIES = [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in sys.argv[1:] or USUAL]
except OSError as error:
    sys.exit(f"{{error}}: source CANN's set_env.sh, or name the libraries in the order in which to load them")
CODES = {{"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int8": "b"}}
SIZES_IN_BYTES = {{"bfloat16": 2}} | {{kind: struct.calcsize(code) for kind, code in CODES.items()}}
TENSORS = {{}}  # name: (address, bytes, layout, kind)


def find(name):
    for library in LIBRARIES:
        if hasattr(library, name):
            return getattr(library, name)
    sys.exit(f"no library has {{name}}")


def call(name, *arguments):
    """Call a function that returns a status, and stop at any but 0; the arguments are ctypes objects."""
    status = find(name)(*arguments)
    if status:
        recent = find("aclGetRecentErrMsg")
        recent.restype = c_char_p
        sys.exit(f"{{name}} returned {{status}}: {{(recent() or b'no text').decode(errors='replace').strip()}}")


def handle(name, *arguments):
    """Call a function that returns a pointer."""
    function = find(name)
    function.restype = c_void_p
    return c_void_p(function(*arguments))


def int64s(values):
    return (c_int64 * len(values))(*values)


def int_array(values):
    return handle("aclCreateIntArray", int64s(values), c_uint64(len(values)))


def device_memory(data):
    """Device memory that holds ``data``."""
    address = c_void_p()
    if data:
        call("aclrtMalloc", byref(address), c_size_t(len(data)), c_int(0))
        call("aclrtMemcpy", address, c_size_t(len(data)), bytes(data), c_size_t(len(data)), c_int(1))
    return address


def encode(value, kind):
    if kind == "bfloat16":
        return struct.pack("<f", value)[2:]
    return struct.pack("<" + CODES[kind], value)


def decode(data, kind):
    if kind == "bfloat16":
        return struct.unpack("<f", bytes(2) + data)[0]
    return struct.unpack("<" + CODES[kind], data)[0]


def places(shape, strides, offset):
    """Where in the storage the elements lie, in row-major order."""
    axes = [range(0, size * stride, stride) if stride else [0] * size for size, stride in zip(shape, strides)]
    return [offset + sum(steps) for steps in product(*axes)]


def tensor(name, layout, kind, size, described, values=()):
    """An aclTensor over ``size`` bytes, which hold the values in row-major order of ``layout``, and 0xFF elsewhere.

    ``described``: shape, strides, offset, data type, format and storage, as the library is told.
    """
    memory = bytearray(b"\\xff" * size)
    width = SIZES_IN_BYTES[kind]
    for place, value in zip(places(*layout), values):
        memory[place * width : (place + 1) * width] = encode(value, kind)
    address = device_memory(memory)
    TENSORS[name] = address, size, layout, kind
    shape, strides, offset, data_type, tag, storage = described
    dims, view = (int64s(shape), c_uint64(len(shape))), (int64s(strides), c_int64(offset))
    extent = int64s(storage), c_uint64(len(storage))
    return handle("aclCreateTensor", *dims, c_int(data_type), *view, c_int(tag), *extent, address)


def rounded(value):
    """The {dtype} nearest to a number, the even one of two."""
    if not isfinite(value):
        return value
    exponent = max(frexp(value)[1] - {precision}, {least_exponent})
    nearest = ldexp(round(ldexp(value, -exponent)), exponent)
    return nearest if abs(nearest) <= {largest!r} else copysign(inf, value)


def report(name, owed):
    """Print which elements differ from what is owed, and how many bytes around them were written."""
    address, size, layout, kind = TENSORS[name]
    memory, width = ctypes.create_string_buffer(max(size, 1)), SIZES_IN_BYTES[kind]
    if size:
        call("aclrtMemcpy", memory, c_size_t(size), address, c_size_t(size), c_int(2))
    around, got = bytearray(memory.raw[:size]), []
    for place in places(*layout):
        got.append(decode(memory.raw[place * width : (place + 1) * width], kind))
        around[place * width : (place + 1) * width] = b"\\xff" * width
    if not kind.startswith("int"):
        owed = list(map(rounded, owed))
    wrong = [i for i, (a, b) in enumerate(zip(got, owed)) if a != b and not (a != a and b != b)]
    print(f"{{name}}: {{len(wrong)}} of {{len(got)}} elements differ from what is owed")
    shape = layout[0]
    for i in wrong[:20]:
        element = [i // prod(shape[axis + 1 :]) % shape[axis] for axis in range(len(shape))]
        print(f"  {{name}}{{element}} is {{got[i]}}, owed {{owed[i]}}")
    written = sum(byte != 255 for byte in around)
    if written and name not in MAY_BE_FILLED:
        print(f"  and {{written}} bytes of its storage that belong to no element were written")


MAY_BE_FILLED = {may_be_filled}  # tensors that have bytes of no published meaning

call("aclInit", None)
call("aclrtSetDevice", c_int32(0))
for scope in ("aclrtSetSysParamOpt", "aclrtCtxSetSysParamOpt"):
    call(scope, c_int(0), c_int64({deterministic}))
stream = c_void_p()
call("aclrtCreateStream", byref(stream))

'''

_CALL = """
size, executor = c_uint64(), c_void_p()
call("{api}GetWorkspaceSize", {arguments}, byref(size), byref(executor))
call("{api}", device_memory(b"\\xff" * size.value), size, executor, stream)
call("aclrtSynchronizeStreamWithTimeout", stream, c_int32(60_000))
"""


def write(content: Contents, call: Call) -> str:
    """The program that makes ``call``, which holds ``content``."""
    case = content.case
    fmt = FORMATS[case.dtype]
    is_mask_made = case.api.indices is MASK and not case.api.is_backward
    head = _HEAD.format(
        title=f"{case.operator} ({case.dtype})",
        determinism=", deterministic" if case.deterministic else "",
        deterministic=int(case.deterministic),
        dtype=case.dtype,
        precision=fmt.precision,
        least_exponent=fmt.min_exponent - fmt.precision + 1,
        largest=fmt.max,
        may_be_filled=["indices"] if is_mask_made else [],
    )
    tensors = [_tensor(name, call.tensors[name], name in case.api.inputs) for name in case.api.tensors]
    if is_mask_made:
        tensors[-1] = _made_mask(call.tensors["indices"], case.pooled_shape)
    return head + "\n".join(tensors) + _call(call) + comparison(content)


def _tensor(name: str, tensor: Tensor, filled: bool) -> str:
    layout = f"({tensor.shape}, {tensor.strides}, {tensor.offset})"
    made = _made(name, tensor, layout, tensor.dtype.name, f"{name}_values" if filled else "()")
    return f"{numbers(f'{name}_values', tensor.array)}\n{made}" if filled else made


def _made_mask(mask: Tensor, pooled_shape: tuple[int, ...]) -> str:
    """A mask to be filled in: int32 indices in the first of its bytes."""
    strides = [1]
    for length in pooled_shape[:0:-1]:
        strides.insert(0, strides[0] * length)
    return _made("indices", mask, f"({pooled_shape}, {tuple(strides)}, 0)", "int32", "()")


def _made(name: str, tensor: Tensor, layout: str, kind: str, values: str) -> str:
    size = tensor.storage_elements * tensor.dtype.itemsize
    lines = (f'"{name}", {layout}, "{kind}", {size}', _description(tensor), values)
    return f"{name} = tensor(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _description(tensor: Tensor) -> str:
    told = describe_tensor(tensor)
    return str((told.shape, told.strides, told.offset, DATA_TYPES[told.dtype], TAGS[told.format], told.storage))


def _call(call: Call) -> str:
    given = call.operator.passed(call.attributes)
    lists = [f"c_bool({value})" if isinstance(value, bool) else f"int_array({value})" for value in given]
    arguments = ", ".join([*call.operator.inputs, *lists, *call.operator.outputs])
    return _CALL.format(api=f"aclnn{call.operator.name}", arguments=arguments)
