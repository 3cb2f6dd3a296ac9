"""A `Call` in the words of the contract."""

from __future__ import annotations

from poolproof.backends.aclnn.operands import DTYPE_NAMES, describe_tensor, format_tag
from poolproof.backends.base import Call
from poolproof.references.contract import SIGNATURES, ContractCall, TensorArgument
from poolproof.references.operators import Operator


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
        tensors={theirs: describe_tensor(call.tensors[ours]) for theirs, ours in names.items()},
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
        kind = DTYPE_NAMES[index_dtype if name == signature.indices else dtype]
        chosen = indices if name == signature.indices else shapes.get(name, pooled)
        tensors[name] = TensorArgument.contiguous(chosen, kind, format_tag(len(chosen)))
    output_size = (1,) * operator.spatial_rank
    lists = {"kernelSize": (2,), "stride": (2,), "padding": (0,), "dilation": (1,), "outputSize": output_size}
    return ContractCall(
        api=api,
        tensors=tensors,
        lists={name: lists[name] for name in signature.lists},
        ceil_mode=False if signature.is_windowed else None,
    )
