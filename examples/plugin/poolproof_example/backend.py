"""A pool of two axes, written in numpy, that takes NaN gradients for zero; a waiver says so."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from poolproof.backends.abilities import Abilities
from poolproof.backends.frameworks.copying import CopyingBackend
from poolproof.references.forward_rule import ForwardRule, Nans


class Example(CopyingBackend):
    survives_fork = True
    without = Abilities(padding=False, dilation=False, ceil_mode=False)

    def unsupported(self, operator, dtype, index_dtype):
        mine = operator.name in ("MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward")
        return None if mine and (dtype, index_dtype) == ("float32", "int64") else "two axes, float32 and int64 alone"

    def forward(self, call):
        return self.invoke(pool, call.values, call.kernel_size, call.stride)

    def backward(self, call):
        return self.invoke(scatter, call.gradient, call.indices, call.values)

    def forward_rule(self, call):
        return ForwardRule(nans=Nans.FIRST)  # argmax takes the first NaN

    def environment(self):
        return {"example": "1.0"}


def pool(values, kernel, stride):
    windows = sliding_window_view(values, kernel, (2, 3))[:, :, :: stride[0], :: stride[1]]
    flat = windows.reshape(*windows.shape[:4], kernel[0] * kernel[1])
    picked = flat.argmax(-1)
    rows = picked // kernel[1] + stride[0] * np.arange(picked.shape[2])[:, None]
    columns = picked % kernel[1] + stride[1] * np.arange(picked.shape[3])
    return np.take_along_axis(flat, picked[..., None], -1)[..., 0], rows * values.shape[3] + columns


def scatter(gradient, indices, values):
    sums = np.zeros(values.shape, values.dtype)
    gradient = np.where(np.isnan(gradient), np.float32(0), gradient)
    for item, channel in np.ndindex(values.shape[:2]):
        plane = sums[item, channel].reshape(-1)
        np.add.at(plane, indices[item, channel].ravel(), gradient[item, channel].ravel())
    return sums
