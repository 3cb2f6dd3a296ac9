"""Which calls may be asked at all, and which of them may be run: what no source defines is no question."""

from __future__ import annotations

from math import prod

from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.expectation import Expectation
from poolproof.references.contract.facts import mask_shape
from poolproof.references.contract.vocabulary import MASK_APIS


def may_ask(call: ContractCall, expected: Expectation) -> bool:
    """Whether a call that nobody chose may be put to a library.

    Not where its code is known to die: the clause's own example asks that. Nor where tensors agree on a negative length
    and pass: no source says what becomes of them.
    """
    accepted = any(answer.phase != 1 for answer in expected.acceptable)
    return not expected.code.crashes and not (accepted and _has_negative_length(call))


def may_run(call: ContractCall, expected: Expectation) -> bool:
    """Whether phase two may follow where phase one succeeds.

    Only where code or page lets the call through phase one (what they refuse has no meaning to run), every element lies
    in its storage (contiguous tensors and outputs are not looked at by phase one), and a mask is long enough (the
    mask backward looks at none).
    """
    if all(answer.phase == 1 for answer in expected.acceptable):
        return False
    tensors = call.tensors.values()
    return all(tensor is not None and lies_in_storage(tensor) for tensor in tensors) and not _mask_is_short(call)


def _has_negative_length(call: ContractCall) -> bool:
    return any(tensor is not None and min(tensor.shape, default=1) < 0 for tensor in call.tensors.values())


def lies_in_storage(tensor: TensorArgument) -> bool:
    """Whether every element does; no length may be negative."""
    if tensor.is_empty:
        return True
    reaches = [(length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True)]
    first = tensor.offset + sum(min(reach, 0) for reach in reaches)
    last = tensor.offset + sum(max(reach, 0) for reach in reaches)
    return min(tensor.shape, default=1) > 0 and first >= 0 and last < prod(tensor.storage)


def _mask_is_short(call: ContractCall) -> bool:
    return call.api in MASK_APIS and prod(call.tensor("indices").shape) < prod(mask_shape(call))
