"""The reference evaluator of onnx: the operator MaxPool with its indices, forward only, in Python.

ONNX counts indices over the whole tensor (onnx.ai/onnx/operators/onnx__MaxPool.html) and has no backward.
"""

from __future__ import annotations

from types import ModuleType

import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from poolproof.backends.base import Call, full_length
from poolproof.backends.frameworks.copying import ArrayCall, CopyingBackend, IndexBase
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Lengths, Windowed


class Onnx(CopyingBackend):
    packages: tuple[ModuleType, ...] = (onnx,)
    survives_fork = True
    index_base = IndexBase.TENSOR

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        if operator.is_backward or operator.windows is not Windowed or not operator.aten:
            return "ONNX has no such operator"
        return None if index_dtype == "int64" else "ONNX has int64 indices only"

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        evaluator = self.invoke(ReferenceEvaluator, pool_node(*call.windows))
        maxima, indices = self.invoke(evaluator.run, None, {"x": call.values})
        return maxima, indices

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return what was observed: windows of stride 1 without dilation have separate code, which ignores NaN."""
        windows = full_length(call)
        is_plain = {*windows["stride"], *windows["dilation"]} == {1}
        return ForwardRule(nans=Nans.IGNORED if is_plain else Nans.LEADING)


def pool_node(kernel: Lengths, stride: Lengths, padding: Lengths, dilation: Lengths, ceil_mode: bool) -> onnx.NodeProto:
    windows = {"kernel_shape": kernel, "strides": stride, "pads": padding * 2, "dilations": dilation}
    return onnx.helper.make_node("MaxPool", ["x"], ["out", "indices"], ceil_mode=int(ceil_mode), **windows)
