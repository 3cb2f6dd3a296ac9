"""Conversion of a `Call` into a `ContractCall`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolproof.backends.aclnn.operands import DTYPE_NAMES, describe_tensor, format_tag
from poolproof.backends.aclnn.prototypes import DATA_TYPES, FORMATS
from poolproof.backends.base import Call, Tensor
from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.operators import Operator
from poolproof.references.windows import SMALLEST, Windows

Describe = Callable[[Tensor], TensorArgument]
"""The description of a tensor for the library."""


def contract_call(call: Call, describe: Describe = describe_tensor) -> ContractCall:
    """Describe ``call`` without data and addresses."""
    return _call(call.operator, {name: describe(tensor) for name, tensor in call.tensors.items()}, call.attributes)


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
        kind = DTYPE_NAMES[index_dtype if name == "indices" else dtype]
        tensors[name] = TensorArgument.contiguous(shape, kind, format_tag(len(shape)))
    return _call(operator, tensors, windows)


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
