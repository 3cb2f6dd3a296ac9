"""The calls of MindSpore, for its companion (`companion_program`); `mindspore.py` declares what they lack."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("GLOG_v", "3")  # it warns at each call

import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.operations import _grad_ops

Ask = Callable[..., Any]


def versions() -> dict[str, str]:
    return {"mindspore": mindspore.__version__}


def forward(ask: Ask, values: np.ndarray, index_dtype: str, **windows: Any) -> tuple[np.ndarray, ...]:
    return ask(_made, _forward(values.ndim - 2, getattr(mindspore, index_dtype), **windows), values)


def backward(
    ask: Ask,
    values: np.ndarray,
    gradient: np.ndarray,
    indices: np.ndarray,
    output_size: tuple[int, ...],
    **windows: Any,
) -> np.ndarray:
    rank = values.ndim - 2
    if output_size:
        pool = ops.auto_generate.AdaptiveMaxPool2DGrad if rank == 2 else _grad_ops.AdaptiveMaxPool3DGrad
        return ask(_made, pool(), gradient, values, indices)[0]
    pool = _grad_ops.MaxPoolGradWithArgmaxV2 if rank == 2 else _grad_ops.MaxPool3DGradWithArgmax
    return ask(_made, pool(*windows.values()), values, gradient, indices)[0]


def _forward(rank: int, index_type: Any, output_size: tuple[int, ...], **windows: Any) -> Callable[..., Any]:
    if output_size:
        pool = ops.adaptive_max_pool2d if rank == 2 else ops.adaptive_max_pool3d
        return lambda values: pool(values, output_size, return_indices=True)
    pool = ops.MaxPoolWithArgmaxV2 if rank == 2 else ops.MaxPool3DWithArgmax
    return pool(*windows.values(), argmax_type=index_type)


def _made(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Call a function on tensors; reading its arrays waits for the computation."""
    made = function(*map(Tensor, arrays))
    return tuple(tensor.asnumpy() for tensor in (made if isinstance(made, tuple) else (made,)))
