"""Calls as the library receives them: descriptions of tensors, lists and flags, without data and addresses."""

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
"""poolproof's dtypes -> the library's."""

_AXIS_ORDERS = {"NHWC": (0, 2, 3, 1), "NDHWC": (0, 2, 3, 4, 1)}
"""Tag -> order of the axes of (N, C, [D,] H, W)."""


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
    """Describe each storage as a column of the same size, so that the library's cache does not know the call."""
    described = contract_call(call)
    return described.with_tensors(
        {name: tensor and replace(tensor, storage=(*tensor.storage, 1)) for name, tensor in described.tensors.items()}
    )


def call_record(call: Call) -> dict[str, Any]:
    """Record the call as JSON, for programs that make it without poolproof.

    ``arguments`` are those of phase one without the two results, in API order: the poolproof name of a tensor, a list
    or a flag. ``tensors`` describes each tensor, with dtype and format as the library's numbers.
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
    """Describe a tensor; without a tag of its own, it gets the one that torch_npu uses."""
    order = _AXIS_ORDERS.get(tensor.tag, range(len(tensor.shape)))
    return TensorArgument(
        shape=tuple(tensor.shape[axis] for axis in order),
        dtype=DTYPE_NAMES[tensor.dtype.name],
        format=tensor.tag or PLAIN_TAGS.get(len(tensor.shape), "ND"),
        strides=tuple(tensor.strides[axis] for axis in order),
        offset=tensor.offset,
        storage=(tensor.storage_elements,),
    )
