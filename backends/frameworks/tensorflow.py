"""TensorFlow on the CPU: the 2-D pool with indices, its gradient, and the gradient of the 3-D pool, all unpadded.

Indices count the elements of one batch item in (H, W, C) order. The 2-D gradient's kernel takes int64 indices; the 3-D
pool finds maxima itself. In a graph, other kernels compute than eagerly. Plain calls of the 3-D pool use a graph.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import FLUSHED_SUMS, VALUES_ALONE, ArrayCall, CopyingBackend, IndexBase
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Lengths, Windowed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

_EAGER = "eager execution"


class TensorFlow(CopyingBackend):
    packages = (tf,)
    survives_fork = opens_late = True  # the first operation starts threads
    variants = (VALUES_ALONE, _EAGER)
    index_base = IndexBase.CHANNELS_LAST
    without = Abilities(padding=False, dilation=False, ceil_mode=False, empty_batch=False)

    def abilities(self, operator: Operator) -> Abilities:
        return replace(super().abilities(operator), indices=operator.spatial_rank == 2)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if operator.windows is not Windowed or not operator.aten:
            return "TensorFlow has no such operator"
        if operator.spatial_rank == 3 and not operator.is_backward:
            return "TensorFlow has a pool with indices in 2-D only"
        if operator.spatial_rank == 3 and dtype not in ("float32", "bfloat16"):
            return "TensorFlow has no kernel for this dtype on the CPU"
        return None if index_dtype == "int64" else "the gradient has a kernel for int64 indices only"

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        values, (size, strides) = tf.constant(_last(call.values)), _windows(call)
        pooled = self.invoke(tf.nn.max_pool_with_argmax, values, size, strides, "VALID", output_dtype=tf.int64)
        values_only = call.mode == VALUES_ALONE
        out = self.invoke(tf.nn.max_pool2d, values, size, strides, "VALID") if values_only else pooled.output
        return _first(out.numpy()), _first(pooled.argmax.numpy())

    def backward(self, call: ArrayCall) -> NDArray:
        if call.operator.spatial_rank == 3:
            values, given = tf.constant(_last(call.values)), tf.constant(_last(call.gradient))
            make = _gradient if call.mode == _EAGER else _graph(values.shape, values.dtype, *_windows(call))
            return _first(self.invoke(partial(make, values, given, *_windows(call))).numpy())
        given = [tf.constant(_last(array)) for array in (call.values, call.gradient, call.indices)]
        windows = dict(zip(("ksize", "strides"), _windows(call)))
        names = dict(zip(("input", "grad", "argmax"), given))
        result = self.invoke(tf.raw_ops.MaxPoolGradWithArgmax, **names, **windows, padding="VALID")
        return _first(result.numpy())

    def accumulation(self, call: Call) -> AccumulationModel:
        return FLUSHED_SUMS[call.dtype]

    def forward_rule(self, call: Call) -> ForwardRule:
        nans = Nans.LEADING if call.operator.spatial_rank == 2 else Nans.IGNORED
        return ForwardRule(nans=nans, flushes_subnormals=call.dtype != "float16")


def _gradient(values: tf.Tensor, gradient: tf.Tensor, size: Lengths, strides: Lengths) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(values)
        out = tf.nn.max_pool3d(values, size, strides, "VALID")
    return tape.gradient(out, values, output_gradients=gradient)


@lru_cache(maxsize=16)
def _graph(*key: object) -> Any:  # noqa: ARG001
    """Return the gradient as a graph, which is traced at its first call."""
    return tf.function(_gradient)


def _windows(call: ArrayCall) -> tuple[Lengths, Lengths]:
    return (1, *call.kernel_size, 1), (1, *call.stride, 1)


def _last(array: NDArray | None) -> NDArray:
    assert array is not None
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _first(array: NDArray) -> NDArray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))
