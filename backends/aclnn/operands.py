"""The opaque objects of an aclnn call, each destroyed when its block ends.

The library copies dimension lists when it creates an object, and keeps a pointer to the object until phase two has run:
objects outlive the call, lists do not need to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.prototypes import DATA_TYPES, FORMATS, int64_array
from poolproof.backends.base import Tensor
from poolproof.references.contract.call import ContractCall, TensorArgument

DTYPE_NAMES = {
    "float32": "FLOAT",
    "float16": "FLOAT16",
    "bfloat16": "BF16",
    "float64": "DOUBLE",
    "int32": "INT32",
    "int64": "INT64",
    "int8": "INT8",
}
"""The library's names of our dtypes."""

FORMAT_BY_RANK = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""The tag that torch_npu gives a tensor; any other rank is ND."""

_AXIS_ORDERS = {"NHWC": (0, 2, 3, 1)}
"""Where the axes of (N, C, H, W) go under a tag."""


def format_tag(rank: int) -> str:
    return FORMAT_BY_RANK.get(rank, "ND")


def describe_tensor(tensor: Tensor) -> TensorArgument:
    """Describe a tensor's view and the extent of its storage."""
    order = _AXIS_ORDERS.get(tensor.tag, range(len(tensor.shape)))
    return TensorArgument(
        shape=tuple(tensor.shape[axis] for axis in order),
        dtype=DTYPE_NAMES[tensor.dtype.name],
        format=tensor.tag or format_tag(len(tensor.shape)),
        strides=tuple(tensor.strides[axis] for axis in order),
        offset=tensor.offset,
        storage=(tensor.storage_elements,),
    )


@contextmanager
def argument_objects(
    device: Device, call: ContractCall, addresses: Mapping[str, int]
) -> Iterator[dict[str, int | bool | None]]:
    """Create phase one's arguments but the two results, in API order; each tensor's storage begins at its address."""
    with ExitStack() as stack:
        objects: dict[str, int | bool | None] = {}
        for name, value in call.values().items():
            if value is None or isinstance(value, bool):
                objects[name] = value
            elif isinstance(value, TensorArgument):
                objects[name] = stack.enter_context(tensor_object(device, value, addresses[name]))
            else:
                objects[name] = stack.enter_context(list_object(device, value))
        yield objects


@contextmanager
def tensor_object(device: Device, tensor: TensorArgument, address: int) -> Iterator[int]:
    """Create an aclTensor whose storage begins at ``address``."""
    handle = device.handle(
        "aclCreateTensor",
        int64_array(tensor.shape),
        len(tensor.shape),
        DATA_TYPES[tensor.dtype],
        int64_array(tensor.strides),
        tensor.offset,
        FORMATS[tensor.format],
        int64_array(tensor.storage),
        len(tensor.storage),
        address,
    )
    try:
        yield handle
    finally:
        device.call("aclDestroyTensor", handle)


@contextmanager
def list_object(device: Device, values: Sequence[int]) -> Iterator[int]:
    """Create an aclIntArray; an empty one is legal and means the default."""
    handle = device.handle("aclCreateIntArray", int64_array(tuple(values)), len(values))
    try:
        yield handle
    finally:
        device.call("aclDestroyIntArray", handle)
