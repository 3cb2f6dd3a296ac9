"""ONNX Runtime on the CPU: the operator MaxPool with its indices, forward only."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import VALUES_ALONE, ArrayCall
from poolproof.backends.frameworks.onnx import Onnx, pool_node
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator

_OPSET = 12  # the first opset with 8-bit integers; later ones add no dtype that poolproof uses


class OnnxRuntime(Onnx):
    packages = (onnxruntime, onnx)
    variants = (VALUES_ALONE,)
    survives_fork = False  # it has its own threads

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        lacks_kernel = "ONNX Runtime has no kernel for this dtype on the CPU" if dtype == "bfloat16" else None
        return super().unsupported(operator, dtype, index_dtype) or lacks_kernel

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        session = self.invoke(_session, 2, call.values.dtype, call.values.ndim, *call.windows)
        maxima, indices = self.invoke(session.run, None, {"x": call.values})
        if call.mode == VALUES_ALONE:
            session = self.invoke(_session, 1, call.values.dtype, call.values.ndim, *call.windows)
            (maxima,) = self.invoke(session.run, None, {"x": call.values})
        return maxima, indices

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return what the probe found: a running maximum that begins with the first cell (``pool_functors.h``)."""
        return ForwardRule(nans=Nans.LEADING, empty_is_lowest=call.dtype != "float16")


@lru_cache(maxsize=256)
def _session(outputs: int, dtype: np.dtype, axes: int, *windows: Any) -> onnxruntime.InferenceSession:
    element = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    tensors = [
        onnx.helper.make_tensor_value_info(name, kind, [None] * axes)
        for name, kind in (("x", element), ("out", element), ("indices", onnx.TensorProto.INT64))
    ]
    node = pool_node(*windows)
    del node.output[outputs:]
    graph = onnx.helper.make_graph([node], "pool", tensors[:1], tensors[1 : 1 + outputs])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
