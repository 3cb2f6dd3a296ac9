"""Torch's oneDNN pools: oneDNN computes the gradient of tensors in the layout of `Tensor.to_mkldnn`.

It neither returns nor takes indices: the backward finds the maxima again. float16 and float64 have no such pool.
Adaptive pools fall back to the pool without oneDNN.
"""

from __future__ import annotations

from functools import cached_property

from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import BackendUnavailable, Call
from poolproof.backends.frameworks.copying import ArrayCall
from poolproof.backends.frameworks.torch_routes import TorchRoute
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Windowed


class TorchMkldnn(TorchRoute):
    """Raises `BackendUnavailable` if torch, or its oneDNN, is missing."""

    survives_fork = True
    without = Abilities(dilation=False, indices=False)

    def __init__(self) -> None:
        super().__init__("cpu")
        if not self.torch.backends.mkldnn.is_available():
            raise BackendUnavailable("this torch was built without oneDNN")

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if not (operator.is_backward and operator.windows is Windowed and operator.aten):
            return "oneDNN has only gradients of maxima over windows"
        if dtype not in ("float32", "bfloat16"):
            return "torch has no pool of oneDNN for this dtype"
        is_narrow = dtype == "bfloat16"
        if is_narrow and not self.torch.ops.mkldnn._is_mkldnn_bf16_supported():  # noqa: SLF001  (torch asks so itself)
            return "oneDNN's bfloat16 needs AVX512 (bw, vl, dq), which this processor does not have"
        return None if index_dtype == "int64" else "oneDNN gets no indices: one dtype of them is enough"

    def backward(self, call: ArrayCall) -> NDArray:
        values = self.tensor(call.values, call).requires_grad_()
        out = self.invoke(self.pool(call, return_indices=False), values.to_mkldnn()).to_dense()
        self.invoke(out.backward, self.tensor(call.gradient, call))
        assert values.grad is not None
        return self.array(values.grad)

    def accumulation(self, call: Call) -> AccumulationModel:
        """Return what the probe found on a processor that converts to bfloat16: there it flushes."""
        return AccumulationModel("acc32", flushes_subnormals=call.dtype == "bfloat16")

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return a rule with the lowest number and the first cell as initial maximum, which NaN does not replace."""
        return ForwardRule(nans=Nans.IGNORED, flushes_subnormals=call.dtype == "bfloat16" and self._flushes)

    @cached_property
    def _flushes(self) -> bool:
        """Whether a pool flushes subnormal bfloat16 numbers, which depends on the processor."""
        torch = self.torch
        subnormal = torch.full((1, 1, 1, 1), 1e-40, dtype=torch.bfloat16)
        return bool(torch.nn.functional.max_pool2d(subnormal.to_mkldnn(), 1).to_dense() == 0)
