"""Calls as the library gets them described: tensors, lists and flags, without data and addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolproof.backends.aclnn.prototypes import FORMATS
from poolproof.backends.base import Call, Tensor
from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.vocabulary import DTYPES, PLAIN_TAGS, SIGNATURES

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

_AXIS_ORDERS = {"NHWC": (0, 2, 3, 1), "NDHWC": (0, 2, 3, 4, 1)}
"""Where the axes of (N, C, [D,] H, W) go under a tag."""


def contract_call(call: Call) -> ContractCall:
    """Describe ``call`` without data and addresses."""
    operator, api = call.operator, f"aclnn{call.operator.name}"
    names = SIGNATURES[api].names
    attributes = zip(operator.attributes, operator.passed(call.attributes))
    return ContractCall(
        api=api,
        tensors={names[name]: _describe_tensor(call.tensors[name]) for name in operator.tensors},
        lists={names[attribute.name]: value for attribute, value in attributes if not isinstance(value, bool)},
        ceil_mode=call.attributes.rounds_up if SIGNATURES[api].flags else None,
    )


def uncached(call: Call) -> ContractCall:
    """Describe storages as columns, of as many elements, so that the library's cache does not know the call."""
    described = contract_call(call)
    return described.with_tensors(
        {name: tensor and replace(tensor, storage=(*tensor.storage, 1)) for name, tensor in described.tensors.items()}
    )


def call_record(call: Call) -> dict[str, Any]:
    """Record the call as JSON, for programs that make it without this suite.

    ``arguments`` are phase one's but the two results, in API order: a tensor by this suite's name, a list or a flag.
    ``tensors`` describe each tensor, with data type and format as the library's numbers.
    """
    described = contract_call(call)
    arguments: list[Any] = []
    tensors = {}
    for argument, value in zip(described.signature.arguments, described.values().values()):
        arguments.append(argument.ours if isinstance(value, TensorArgument) else value)
        if isinstance(value, TensorArgument):
            numbers = {"data_type": DTYPES[value.dtype], "format": FORMATS[value.format], "offset": value.offset}
            shapes = {"shape": value.shape, "strides": value.strides, "storage": value.storage}
            tensors[argument.ours] = numbers | shapes
    return {"function": described.api, "arguments": arguments, "tensors": tensors}


def _describe_tensor(tensor: Tensor) -> TensorArgument:
    """Tag a tensor as torch_npu does, where it has no tag of its own."""
    order = _AXIS_ORDERS.get(tensor.tag, range(len(tensor.shape)))
    return TensorArgument(
        shape=tuple(tensor.shape[axis] for axis in order),
        dtype=DTYPE_NAMES[tensor.dtype.name],
        format=tensor.tag or PLAIN_TAGS.get(len(tensor.shape), "ND"),
        strides=tuple(tensor.strides[axis] for axis in order),
        offset=tensor.offset,
        storage=(tensor.storage_elements,),
    )
