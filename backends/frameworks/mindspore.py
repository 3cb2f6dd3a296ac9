"""MindSpore on the CPU: all pools with indices, forward and backward.

Indices count cells of the plane, in either dtype. MindSpore needs numpy below 2: name a Python that has both in
POOLPROOF_MINDSPORE_PYTHON.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import BackendUnavailable, Call
from poolproof.backends.frameworks.copying import VALUES_ALONE, ArrayCall, CopyingBackend
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive

os.environ.setdefault("GLOG_v", "3")  # it warns at each call

try:
    import mindspore
    from mindspore import ops
    from mindspore.ops.operations import _grad_ops
except ImportError as error:
    raise BackendUnavailable(
        f"MindSpore cannot be imported ({error}): name the Python that has it in POOLPROOF_MINDSPORE_PYTHON"
    ) from error


class MindSpore(CopyingBackend):
    packages = (mindspore,)
    variants = (VALUES_ALONE,)
    survives_fork = opens_late = True  # the first operation starts threads
    without = Abilities(empty_batch=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if not operator.aten:
            return "MindSpore has no such operator"
        if dtype not in ("float64", "float32", "float16"):
            return "MindSpore has no kernel for this dtype on the CPU"
        if operator.windows is Adaptive and not operator.is_backward:
            required = "int64" if operator.spatial_rank == 2 else "int32"
            return None if index_dtype == required else f"MindSpore gives {required} indices there"
        return None

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        maxima, indices = self.invoke(_results, _pool(call), call.values)
        is_plain = not (call.output_size or call.ceil_mode or any(call.padding)) and set(call.dilation) == {1}
        if call.mode == VALUES_ALONE and is_plain:  # all others use the kernel with indices
            pool = ops.MaxPool if call.operator.spatial_rank == 2 else ops.MaxPool3D
            pool_only = pool(call.kernel_size, call.stride, pad_mode="valid")
            (maxima,) = self.invoke(_results, pool_only, call.values)
        return maxima, indices

    def backward(self, call: ArrayCall) -> NDArray:
        rank = call.operator.spatial_rank
        if call.output_size:
            pool = ops.auto_generate.AdaptiveMaxPool2DGrad if rank == 2 else _grad_ops.AdaptiveMaxPool3DGrad
            return self.invoke(_results, pool(), call.gradient, call.values, call.indices)[0]
        pool = _grad_ops.MaxPoolGradWithArgmaxV2 if rank == 2 else _grad_ops.MaxPool3DGradWithArgmax
        return self.invoke(_results, pool(*call.windows), call.values, call.gradient, call.indices)[0]

    def accumulation(self, call: Call) -> AccumulationModel:
        """Return what the probe found: threads flush, except for float16, which is emulated."""
        if call.dtype != "float16":
            return AccumulationModel("acc32", flushes_subnormals=True)
        is_wide = call.operator.windows is Adaptive and call.operator.spatial_rank == 3
        return ACC32 if is_wide else NATIVE

    def forward_rule(self, call: Call) -> ForwardRule:
        if call.operator.windows is Adaptive:
            return ForwardRule(nans=Nans.LEADING, flushes_subnormals=call.dtype != "float16")
        return ForwardRule(nans=Nans.IGNORED) if call.operator.spatial_rank == 2 else FAMILY_RULE


def _pool(call: ArrayCall) -> Callable[..., Any]:
    rank, index_type = call.operator.spatial_rank, getattr(mindspore, call.index_dtype)
    if call.output_size:
        pool = ops.adaptive_max_pool2d if rank == 2 else ops.adaptive_max_pool3d
        return partial(pool, output_size=call.output_size, return_indices=True)
    pool = ops.MaxPoolWithArgmaxV2 if rank == 2 else ops.MaxPool3DWithArgmax
    return pool(*call.windows, argmax_type=index_type)


def _results(function: Callable[..., Any], *arrays: Any) -> tuple[NDArray, ...]:
    returned = function(*map(mindspore.Tensor, arrays))
    return tuple(each.asnumpy() for each in (returned if isinstance(returned, tuple) else (returned,)))
