"""PaddlePaddle on the CPU: windowed and adaptive pools, 2-D and 3-D, forward and backward.

Indices count cells of the plane, in int32. Its ceil_mode allows a last window that begins in the padding behind the
input, unlike the family's. Therefore ceil_mode is not declared.
"""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import VALUES_ALONE, ArrayCall, CopyingBackend
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing
from poolproof.references.operators import Operator

os.environ.setdefault("OMP_NUM_THREADS", "1")
import paddle

paddle.disable_signal_handler()  # it allocates: with a corrupted heap it would hang instead of crashing


class Paddle(CopyingBackend):
    packages = (paddle,)
    variants = (VALUES_ALONE,)
    survives_fork = True  # with one thread, as set above
    without = Abilities(dilation=False, ceil_mode=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if not operator.aten:
            return "Paddle has no such operator"
        if dtype not in ("float64", "float32") or index_dtype != "int32":
            return "Paddle has no kernel for these dtypes on the CPU"
        return None

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        pool = _kernel(call, "max_pool{}d_with_index")
        values = paddle.to_tensor(call.values)
        out, indices = self.invoke(pool, values, *_windows(call))
        if call.mode == VALUES_ALONE and not call.output_size:  # adaptive pools have one kernel
            pool_only = getattr(paddle.nn.functional, f"max_pool{call.operator.spatial_rank}d")
            out = self.invoke(pool_only, values, call.kernel_size, call.stride, call.padding)
        return out.numpy(), indices.numpy()

    def backward(self, call: ArrayCall) -> NDArray:
        pool = _kernel(call, "max_pool{}d_with_index_grad")
        given = (call.values, call.indices, call.gradient)
        result = self.invoke(pool, *map(paddle.to_tensor, given), *_windows(call))
        return result.numpy()

    def forward_rule(self, call: Call) -> ForwardRule:  # noqa: ARG002
        """Return a rule with the lowest number and no index as initial maximum, which NaN does not replace."""
        return ForwardRule(nans=Nans.IGNORED, nothing=Nothing.LOWEST)


def _kernel(call: ArrayCall, name: str) -> Any:
    return getattr(paddle._C_ops, name.format(call.operator.spatial_rank))  # noqa: SLF001  # the public pools give no foreign indices


def _windows(call: ArrayCall) -> tuple[Any, ...]:
    """Return kernel_size, strides, paddings, global_pooling, adaptive, ceil_mode."""
    if call.output_size:
        zeros = [0] * call.operator.spatial_rank
        return list(call.output_size), [1] * len(zeros), zeros, False, True, False
    return list(call.kernel_size), list(call.stride), list(call.padding), False, False, False
