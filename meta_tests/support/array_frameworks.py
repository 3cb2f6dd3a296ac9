"""Frameworks that take arrays and return arrays, as somebody would plug them in; made of numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import ArrayCall, CopyingBackend, IndexBase
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.forward import forward_maximum
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed


class Arrays(CopyingBackend):
    """Right, with indices of the plane."""

    survives_fork = True

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return None if operator.aten and (dtype, index_dtype) == ("float32", "int64") else "only float32 and int64"

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return self.invoke(_pool, call, self.index_base)

    def backward(self, call: ArrayCall) -> NDArray:
        return self.invoke(_scatter, call, self.index_base)

    def accumulation(self, call: Call) -> AccumulationModel:
        return NATIVE


def _pool(call: ArrayCall, base: IndexBase) -> tuple[NDArray, NDArray]:
    values = call.values
    batch, channels, *spatial = values.shape
    if call.output_size:
        axes = Adaptive(call.output_size).axes(tuple(spatial))
    else:
        axes = Windowed(*call.windows).axes(tuple(spatial))
    maxima, indices = forward_maximum(values.reshape(batch * channels, *spatial), axes)
    if base is IndexBase.TENSOR:
        indices = indices + np.arange(len(indices)).reshape(-1, *(1,) * len(spatial)) * int(np.prod(spatial))
    pooled = (batch, channels, *maxima.shape[1:])
    indices = indices.reshape(pooled)
    if base is IndexBase.CHANNELS_LAST:
        indices = indices * channels + np.arange(channels).reshape(1, -1, *(1,) * len(spatial))
    return maxima.reshape(pooled), indices


@np.errstate(over="ignore", invalid="ignore")
def _scatter(call: ArrayCall, base: IndexBase) -> NDArray:
    """Into the whole tensor, in the order of the framework's own indices."""
    values, gradient, indices = call.values, call.gradient, call.indices
    assert gradient is not None
    assert indices is not None
    sums = np.zeros(values.size, values.dtype)
    if base is IndexBase.CHANNELS_LAST:
        batch, channels, *spatial = values.shape
        starts = np.arange(batch).reshape(-1, *(1,) * (values.ndim - 1)) * (values.size // max(batch, 1))
        np.add.at(sums, (indices + starts).ravel(), gradient.ravel())
        return np.ascontiguousarray(np.moveaxis(sums.reshape(batch, *spatial, channels), -1, 1))
    planes = np.zeros(1, np.int64)
    if base is IndexBase.PLANE:
        planes = np.arange(values.shape[0] * values.shape[1]).reshape(*values.shape[:2], *(1,) * (values.ndim - 2))
        planes = planes * int(np.prod(values.shape[2:]))
    np.add.at(sums, (indices + planes).ravel(), gradient.ravel())
    return sums.reshape(values.shape)


class OfTensor(Arrays):
    index_base = IndexBase.TENSOR


class ChannelsLast(Arrays):
    index_base = IndexBase.CHANNELS_LAST


class Misjudged(Arrays):
    """Says that indices count elements of the tensor, where they count cells of the plane."""

    index_base = IndexBase.TENSOR

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return self.invoke(_pool, call, IndexBase.PLANE)


class Refusing(Arrays):
    """The framework raises."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return self.invoke(_turned_down)


def _turned_down() -> tuple[NDArray, NDArray]:
    raise NotImplementedError("no kernel for this")


class AtFault(Arrays):
    """The adapter raises."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        raise NotImplementedError("forgotten")


class OtherShape(Arrays):
    """Returns one window too many."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        maxima, indices = super().forward(call)
        return np.concatenate([maxima, maxima], axis=-1), indices


class OtherDtype(Arrays):
    """Returns indices of 32 bits."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        maxima, indices = super().forward(call)
        return maxima, indices.astype(np.int32)
