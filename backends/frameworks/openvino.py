"""OpenVINO on the CPU: pools with indices, windowed and adaptive, forward only.

Indices count cells of the plane (``axis=2`` of MaxPool-14). Each new shape is compiled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import opset14

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import ArrayCall, CopyingBackend
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths

_ONE_THREAD = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}  # no bfloat16 on processors that have it
_CORE = openvino.Core()


class OpenVino(CopyingBackend):
    packages = (openvino,)
    survives_fork = False  # it has its own threads
    without = Abilities(empty_batch=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if operator.is_backward or not operator.aten:
            return "OpenVINO has no such operator"
        if dtype not in ("float32", "float16"):
            return "OpenVINO computes float64 in float32, and takes no arrays of bfloat16"
        if operator.windows is Adaptive and index_dtype == "int64":
            return "OpenVINO compiles no AdaptiveMaxPool with int64 indices for the CPU"
        return None

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        lists = *call.windows, call.output_size
        model = self.invoke(_model, call.values.shape, call.values.dtype, f"i{call.index_dtype[3:]}", *lists)
        results = self.invoke(model, [call.values])
        return results[0], results[1]

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return what the probe found: MaxPool begins with the lowest float32 (in float16: -inf) and index 0."""
        if isinstance(call.attributes, Adaptive):
            return ForwardRule(nans=Nans.LEADING)
        if call.dtype == "float16":
            return ForwardRule(nans=Nans.IGNORED, nothing=Nothing.ORIGIN)
        return ForwardRule(nans=Nans.IGNORED, nothing=Nothing.LOWEST_ORIGIN)


@lru_cache(maxsize=256)
def _model(shape: Lengths, dtype: np.dtype, index_type: str, *lists: Any) -> openvino.CompiledModel:
    kernel, stride, padding, dilation, ceil_mode, output_size = lists
    values = opset14.parameter(shape, dtype)
    if output_size:
        pool = opset14.adaptive_max_pool(values, opset14.constant(np.array(output_size)), index_type)
    else:
        rounding = "ceil_torch" if ceil_mode else "floor"
        windows = stride, dilation, padding, padding, kernel, rounding
        pool = opset14.max_pool(values, *windows, index_element_type=index_type, axis=2)
    return _CORE.compile_model(openvino.Model(pool.outputs(), [values]), "CPU", _ONE_THREAD)
