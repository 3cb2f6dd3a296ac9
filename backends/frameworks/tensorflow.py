"""TensorFlow on the CPU: the 2-D pool with indices and its gradient, channels last, without padding.

Indices count the elements of one batch item in (H, W, C) order; the gradient's kernel takes them in int64.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import BackendUnavailable, Call
from poolproof.backends.frameworks.copying import FLUSHED_SUMS, ArrayCall, CopyingBackend, IndexBase
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Lengths, Windowed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import tensorflow as tf
except ImportError as error:
    raise BackendUnavailable("TensorFlow is not installed: pip install 'poolproof[tensorflow]'") from error


class TensorFlow(CopyingBackend):
    index_base = IndexBase.CHANNELS_LAST
    without = Abilities(padding=False, dilation=False, ceil_mode=False, empty_batch=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        if operator.windows is not Windowed or operator.spatial_rank != 2 or not operator.aten:
            return "TensorFlow has a pool with indices in 2-D alone"
        return None if index_dtype == "int64" else "the gradient has a kernel for int64 indices alone"

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        values, (size, strides) = tf.constant(_last(call.values)), _windows(call)
        made = self.invoke(tf.nn.max_pool_with_argmax, values, size, strides, "VALID", output_dtype=tf.int64)
        return _first(made.output.numpy()), _first(made.argmax.numpy())

    def backward(self, call: ArrayCall) -> NDArray:
        given = [tf.constant(_last(array)) for array in (call.values, call.gradient, call.indices)]
        windows = dict(zip(("ksize", "strides"), _windows(call)))
        names = dict(zip(("input", "grad", "argmax"), given))
        made = self.invoke(tf.raw_ops.MaxPoolGradWithArgmax, **names, **windows, padding="VALID")
        return _first(made.numpy())

    def accumulation(self, call: Call) -> AccumulationModel:
        return FLUSHED_SUMS[call.dtype]

    def forward_rule(self, call: Call) -> ForwardRule:
        return ForwardRule(nans=Nans.LEADING, flushes_subnormals=call.dtype != "float16")

    def environment(self) -> Mapping[str, str]:
        return {"tensorflow": tf.__version__}


def _windows(call: ArrayCall) -> tuple[Lengths, Lengths]:
    return (1, *call.kernel_size, 1), (1, *call.stride, 1)


def _last(array: NDArray | None) -> NDArray:
    assert array is not None
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _first(array: NDArray) -> NDArray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))
