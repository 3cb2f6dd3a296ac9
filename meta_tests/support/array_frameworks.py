"""Frameworks that take arrays and return arrays, as somebody would plug them in; made of numpy."""

from __future__ import annotations

import math

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
    batch, channels, *spatial = call.values.shape
    windows = Adaptive(call.output_size) if call.output_size else Windowed(*call.windows)
    planes = call.values.reshape(batch * channels, *spatial)
    maxima, cells = forward_maximum(planes, windows.axes(tuple(spatial)))
    numbers = np.broadcast_to(np.arange(math.prod(spatial)), (len(planes), math.prod(spatial)))
    if base is IndexBase.TENSOR:
        numbers = np.arange(call.values.size).reshape(numbers.shape)
    elif base is IndexBase.CHANNELS_LAST:
        numbers = numbers * channels + np.tile(np.arange(channels), batch)[:, np.newaxis]
    pooled = (batch, channels, *maxima.shape[1:])
    return maxima.reshape(pooled), np.take_along_axis(numbers, _rows(cells, len(planes)), axis=1).reshape(pooled)


@np.errstate(over="ignore", invalid="ignore")
def _scatter(call: ArrayCall, base: IndexBase) -> NDArray:
    """Into arrays in the order of the framework's own indices."""
    assert call.gradient is not None
    assert call.indices is not None
    batch, channels, *spatial = call.values.shape
    count = {IndexBase.PLANE: batch * channels, IndexBase.TENSOR: 1, IndexBase.CHANNELS_LAST: batch}[base]
    sums = np.zeros_like(_rows(call.values, count))
    np.add.at(sums, (np.arange(count)[:, np.newaxis], _rows(call.indices, count)), _rows(call.gradient, count))
    if base is IndexBase.CHANNELS_LAST:
        return np.ascontiguousarray(np.moveaxis(sums.reshape(batch, *spatial, channels), -1, 1))
    return sums.reshape(call.values.shape)


def _rows(array: NDArray, count: int) -> NDArray:
    return array.reshape(count, array.size // max(count, 1))


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


class ReturnsNothing(Arrays):
    """The adapter forgets to return anything."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return None  # type: ignore[return-value]


class AtFaultOutside(Arrays):
    """The adapter calls the framework by itself."""

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        return _turned_down()


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
