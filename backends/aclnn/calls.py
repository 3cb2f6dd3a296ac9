"""Calls as the library gets them described: tensors, lists and flags, without data and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from poolproof.backends.aclnn.prototypes import DATA_TYPES, FORMATS
from poolproof.backends.base import Call, Tensor
from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.operators import Operator
from poolproof.references.windows import SMALLEST, Windows

_DTYPE_NAMES = {
    "float32": "FLOAT",
    "float16": "FLOAT16",
    "bfloat16": "BF16",
    "float64": "DOUBLE",
    "int32": "INT32",
    "int64": "INT64",
    "int8": "INT8",
}
"""The library's names of our dtypes."""

_FORMAT_BY_RANK = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""The tag that torch_npu gives a tensor; any other rank is ND."""

_AXIS_ORDERS = {"NHWC": (0, 2, 3, 1), "NDHWC": (0, 2, 3, 4, 1)}
"""Where the axes of (N, C, [D,] H, W) go under a tag."""


def contract_call(call: Call) -> ContractCall:
    """Describe ``call`` without data and addresses."""
    tensors = {name: _describe_tensor(tensor) for name, tensor in call.tensors.items()}
    return _call(call.operator, tensors, call.attributes)


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
            numbers = {"data_type": DATA_TYPES[value.dtype], "format": FORMATS[value.format], "offset": value.offset}
            shapes = {"shape": value.shape, "strides": value.strides, "storage": value.storage}
            tensors[argument.ours] = numbers | shapes
    return {"function": described.api, "arguments": arguments, "tensors": tensors}


def smallest_call(operator: Operator, dtype: str, index_dtype: str) -> ContractCall:
    """Make a call with one window over a small plane: legal wherever the dtypes are."""
    spatial = (SMALLEST,) * operator.spatial_rank
    windows = operator.windows.smallest(operator.spatial_rank)
    tensors = {}
    for name, shape in operator.tensor_shapes((1, 1, *spatial), windows.axes(spatial)).items():
        kind = _DTYPE_NAMES[index_dtype if name == "indices" else dtype]
        tensors[name] = TensorArgument.contiguous(shape, kind, _format_tag(len(shape)))
    return _call(operator, tensors, windows)


def _describe_tensor(tensor: Tensor) -> TensorArgument:
    order = _AXIS_ORDERS.get(tensor.tag, range(len(tensor.shape)))
    return TensorArgument(
        shape=tuple(tensor.shape[axis] for axis in order),
        dtype=_DTYPE_NAMES[tensor.dtype.name],
        format=tensor.tag or _format_tag(len(tensor.shape)),
        strides=tuple(tensor.strides[axis] for axis in order),
        offset=tensor.offset,
        storage=(tensor.storage_elements,),
    )


def _format_tag(rank: int) -> str:
    return _FORMAT_BY_RANK.get(rank, "ND")


def _call(operator: Operator, tensors: Mapping[str, TensorArgument], windows: Windows) -> ContractCall:
    api = f"aclnn{operator.name}"
    names = SIGNATURES[api].names
    attributes = zip(operator.attributes, operator.passed(windows))
    return ContractCall(
        api=api,
        tensors={names[name]: tensors[name] for name in operator.tensors},
        lists={names[attribute.name]: value for attribute, value in attributes if not isinstance(value, bool)},
        ceil_mode=windows.rounds_up if SIGNATURES[api].flags else None,
    )
