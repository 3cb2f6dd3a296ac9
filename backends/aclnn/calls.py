"""A `Call` in the words of the contract."""

from __future__ import annotations

from typing import Any

from poolproof.backends.aclnn.operands import DTYPE_NAMES, describe_tensor, format_tag
from poolproof.backends.base import Call
from poolproof.references.contract import SIGNATURES, ContractCall, TensorArgument
from poolproof.references.operators import Operator
from poolproof.references.windows import SMALLEST, Windows


def contract_call(call: Call) -> ContractCall:
    """What the contract sees of ``call``: everything but data and addresses."""
    api = f"aclnn{call.operator.name}"
    signature = SIGNATURES[api]
    names = dict(zip(signature.tensors, call.operator.tensors, strict=True))
    return ContractCall(
        api=api,
        tensors={theirs: describe_tensor(call.tensors[ours]) for theirs, ours in names.items()},
        **_attributes(call.operator, call.attributes),
    )


def smallest_call(operator: Operator, dtype: str, index_dtype: str) -> ContractCall:
    """One window over a small plane: legal wherever the dtypes are."""
    api = f"aclnn{operator.name}"
    signature = SIGNATURES[api]
    shape = (1, 1, *(SMALLEST,) * operator.spatial_rank)
    windows = operator.windows.smallest(operator.spatial_rank)
    axes = windows.axes(shape[2:])
    tensors = {}
    for theirs, ours in zip(signature.tensors, operator.tensors, strict=True):
        kind = DTYPE_NAMES[index_dtype if ours == "indices" else dtype]
        chosen = operator.tensor_shape(ours, shape, axes)
        tensors[theirs] = TensorArgument.contiguous(chosen, kind, format_tag(len(chosen)))
    return ContractCall(api=api, tensors=tensors, **_attributes(operator, windows))


def _attributes(operator: Operator, windows: Windows) -> dict[str, Any]:
    """The contract's fields for attributes."""
    values = operator.passed(windows)
    lists = dict(zip(SIGNATURES[f"aclnn{operator.name}"].lists, values, strict=False))
    flags = [value for value in values if isinstance(value, bool)]
    return {"lists": lists, "ceil_mode": flags[0] if flags else None}
