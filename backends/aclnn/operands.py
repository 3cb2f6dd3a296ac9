"""The opaque objects of an aclnn call, each destroyed when its block ends.

The library copies dimension lists when an object is created, and keeps a pointer to the object itself until the
second phase has run: objects outlive the call, lists do not need to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.prototypes import DTYPES, FORMATS, int64_array
from poolproof.backends.base import Tensor

FORMAT_BY_RANK = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""The tag that torch_npu gives a tensor; any other rank is ND."""


def format_tag(rank: int) -> str:
    return FORMAT_BY_RANK.get(rank, "ND")


@contextmanager
def tensor_object(device: Device, tensor: Tensor, address: int, tag: str) -> Iterator[int]:
    """An aclTensor over ``tensor``'s storage at ``address``: shape, strides, offset and storage extent as they are."""
    shape, strides = int64_array(tensor.shape), int64_array(tensor.strides)
    storage = int64_array((tensor.storage_elements,))
    handle = device.handle(
        "aclCreateTensor",
        shape,
        len(tensor.shape),
        DTYPES[tensor.dtype.name],
        strides,
        tensor.offset,
        FORMATS[tag],
        storage,
        1,
        address,
    )
    try:
        yield handle
    finally:
        device.call("aclDestroyTensor", handle)


@contextmanager
def list_object(device: Device, values: Sequence[int]) -> Iterator[int]:
    """An aclIntArray; an empty one is legal and means the default."""
    handle = device.handle("aclCreateIntArray", int64_array(tuple(values)), len(values))
    try:
        yield handle
    finally:
        device.call("aclDestroyIntArray", handle)
