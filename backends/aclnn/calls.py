"""A `Call` in the words of the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolproof.backends.aclnn.operands import DTYPE_NAMES, describe_tensor, format_tag
from poolproof.backends.aclnn.prototypes import DATA_TYPES, FORMATS
from poolproof.backends.base import Call, Tensor
from poolproof.references.contract import SIGNATURES, ContractCall, TensorArgument
from poolproof.references.contract.call import ArgumentValue
from poolproof.references.operators import Operator
from poolproof.references.windows import SMALLEST, Windows

Describe = Callable[[Tensor], TensorArgument]
"""What the library is told of a tensor."""


def contract_call(call: Call, describe: Describe = describe_tensor) -> ContractCall:
    """What the contract sees of ``call``: everything but data and addresses."""
    return _call(call.operator, {name: describe(tensor) for name, tensor in call.tensors.items()}, call.attributes)


def argument_records(call: Call) -> list[dict[str, Any]]:
    """Phase one's arguments but the two results, in API order, as JSON.

    Each has ``name`` (the library's), ``tensor`` (the call's name of a tensor, else null), ``role`` (input, list, flag
    or output) and ``value``: the list, the flag, or of a tensor what the library is told of it, data type and format
    as the numbers that it takes.
    """
    values = contract_call(call).values()
    return [
        {
            "name": argument.name,
            "tensor": argument.ours if argument.ours in call.tensors else None,
            "role": argument.role.value,
            "value": _record(values[argument.name]),
        }
        for argument in SIGNATURES[f"aclnn{call.operator.name}"].arguments
    ]


def _record(value: ArgumentValue) -> Any:
    if not isinstance(value, TensorArgument):
        return value
    return {
        "shape": value.shape,
        "strides": value.strides,
        "offset": value.offset,
        "storage": value.storage,
        "data_type": DATA_TYPES[value.dtype],
        "format": FORMATS[value.format],
    }


def smallest_call(operator: Operator, dtype: str, index_dtype: str) -> ContractCall:
    """One window over a small plane: legal wherever the dtypes are."""
    spatial = (SMALLEST,) * operator.spatial_rank
    windows = operator.windows.smallest(operator.spatial_rank)
    tensors = {}
    for name in operator.tensors:
        shape = operator.tensor_shape(name, (1, 1, *spatial), windows.axes(spatial))
        kind = DTYPE_NAMES[index_dtype if name == "indices" else dtype]
        tensors[name] = TensorArgument.contiguous(shape, kind, format_tag(len(shape)))
    return _call(operator, tensors, windows)


def _call(operator: Operator, tensors: Mapping[str, TensorArgument], windows: Windows) -> ContractCall:
    api = f"aclnn{operator.name}"
    names = SIGNATURES[api].names
    attributes = zip(operator.attributes, operator.passed(windows), strict=True)
    lists = {names[attribute.name]: value for attribute, value in attributes if not isinstance(value, bool)}
    ceil_mode = windows.rounds_up if SIGNATURES[api].flags else None
    return ContractCall(
        api=api,
        tensors={names[name]: tensors[name] for name in operator.tensors},
        lists=lists,
        ceil_mode=ceil_mode,
    )
