"""A `Call` in the words of the contract."""

from __future__ import annotations

from poolproof.backends.aclnn.operands import format_tag
from poolproof.backends.base import Call, Tensor
from poolproof.references.contract import SIGNATURES, ContractCall, TensorArgument
from poolproof.references.operators import Operator

CONTRACT_DTYPES = {
    "float32": "FLOAT",
    "float16": "FLOAT16",
    "bfloat16": "BF16",
    "float64": "DOUBLE",
    "int32": "INT32",
    "int64": "INT64",
    "int8": "INT8",
}
"""aclDataType names of our dtypes."""


def contract_call(call: Call) -> ContractCall:
    """What the contract sees of ``call``: everything but data and addresses."""
    api = f"aclnn{call.operator.name}"
    signature = SIGNATURES[api]
    attributes = call.attributes
    values: dict[str, tuple[int, ...]] = {
        "kernelSize": attributes.kernel_size,
        "stride": attributes.stride,
        "padding": attributes.padding or (0,),
        "dilation": attributes.dilation or (1,),
        "outputSize": attributes.output_size,
    }
    names = dict(zip(signature.tensors, call.operator.tensors, strict=True))
    return ContractCall(
        api=api,
        tensors={theirs: _argument(call.tensors[ours]) for theirs, ours in names.items()},
        lists={name: values[name] for name in signature.lists},
        ceil_mode=attributes.ceil_mode if signature.is_windowed else None,
    )


def smallest_call(operator: Operator, dtype: str, index_dtype: str) -> ContractCall:
    """One cell pooled into itself: legal wherever the dtypes are."""
    api = f"aclnn{operator.name}"
    signature = SIGNATURES[api]
    shape = (1, 1, *(2,) * operator.spatial_rank)
    mask = (1, 1, 2**operator.spatial_rank, 64)
    pooled = (1, 1, *(1,) * operator.spatial_rank)
    shapes = {"self": shape, "gradInput": shape}
    indices = mask if operator.indices == "mask" else pooled
    tensors = {}
    for name in signature.tensors:
        kind = CONTRACT_DTYPES[index_dtype if name == signature.indices else dtype]
        chosen = indices if name == signature.indices else shapes.get(name, pooled)
        tensors[name] = TensorArgument.contiguous(chosen, kind, format_tag(len(chosen)))
    lists = {"kernelSize": (2,), "stride": (2,), "padding": (0,), "dilation": (1,)}
    lists["outputSize"] = (1,) * operator.spatial_rank
    return ContractCall(
        api=api,
        tensors=tensors,
        lists={name: lists[name] for name in signature.lists},
        ceil_mode=False if signature.is_windowed else None,
    )


def _argument(tensor: Tensor) -> TensorArgument:
    return TensorArgument(
        shape=tensor.shape,
        dtype=CONTRACT_DTYPES[tensor.dtype.name],
        format=format_tag(len(tensor.shape)),
        strides=tensor.strides,
        offset=tensor.offset,
        storage=(tensor.storage_elements,),
    )
