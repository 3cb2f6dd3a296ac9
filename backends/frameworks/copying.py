"""The base of backends for frameworks with their own arrays: everything except the framework's own calls.

A subclass declares its limits and calls the framework, in about twenty lines. It gets batched contiguous arrays and
attributes of full length. It returns arrays, which are copied into the call's tensors. An exception of the framework is
a refusal; an exception of the adapter is the adapter's fault.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Backend, Call, Outcome, Status, Tensor, dtype_name, full_length
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.operators import Operator
from poolproof.references.text_enum import TextEnum
from poolproof.references.windows import Lengths

if TYPE_CHECKING:
    from typing import ParamSpec

    P = ParamSpec("P")


FLUSHED_SUMS = {
    "float64": AccumulationModel("acc32", flushes_subnormals=True),
    "float32": AccumulationModel("acc32", flushes_subnormals=True),
    "float16": NATIVE,
    "bfloat16": AccumulationModel("native", flushes_subnormals=True),
}
"""Models of JAX and TensorFlow, as the probe found them: threads flush subnormal numbers in comparisons and sums.

float16 does not flush, because its arithmetic is emulated in a wider dtype.
"""


VALUES_ALONE = "values only"
"""The variant of a pool without its second output, often different code."""


class IndexBase(TextEnum):
    """What the indices of a framework count.

    - ``plane``: cells of one (n, c), as in the operator library.
    - ``tensor``: elements of the whole tensor in (N, C, ...) order.
    - ``channels-last``: elements of one batch item in (..., C) order.
    """

    PLANE = "plane"
    TENSOR = "tensor"
    CHANNELS_LAST = "channels-last"


@dataclass(frozen=True, eq=False)
class ArrayCall:
    """One call in contiguous arrays; each list has one length per axis, or is empty for the other kind of windows.

    Attributes:
        values: self, of shape ``(N, C, *spatial)``.
        gradient: grad_output, of shape ``(N, C, *windows)``; None for a forward.
        indices: Of the same shape, in the framework's `IndexBase`; None for a forward.
        index_dtype: The dtype of the indices that a forward returns.
        mode: One of `Backend.variants`, or empty.
    """

    operator: Operator
    values: NDArray
    gradient: NDArray | None
    indices: NDArray | None
    index_dtype: str
    kernel_size: Lengths = ()
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    ceil_mode: bool = False
    output_size: Lengths = ()
    mode: str = ""

    @property
    def windows(self) -> tuple[Lengths, Lengths, Lengths, Lengths, bool]:
        """kernel_size, stride, padding, dilation and ceil_mode, in torch's order."""
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode


class Refused(Exception):
    """The framework refused a call; the text is its own."""


R = TypeVar("R")


class CopyingBackend(Backend):
    """Subclasses override `unsupported`, and `forward`, `backward` or both.

    Attributes:
        index_base: What the framework's indices count.
        without: The abilities of every operator. Layouts and tensors without a batch axis are removed from them,
            because they never reach the framework.
        packages: Modules with versions that distinguish runs.
    """

    index_base = IndexBase.PLANE
    without = Abilities()
    packages: tuple[ModuleType, ...] = ()
    _seconds = 0.0

    def abilities(self, operator: Operator) -> Abilities:  # noqa: ARG002
        return replace(self.without, layouts=(), unbatched=False)

    def environment(self) -> Mapping[str, str]:
        return {package.__name__: package.__version__ for package in self.packages}

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        """Return (maxima, indices), computed by `invoke`."""
        raise NotImplementedError

    def backward(self, call: ArrayCall) -> NDArray:
        """Return grad_input, computed by `invoke`."""
        raise NotImplementedError

    def invoke(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of the framework: count its time, and treat its exceptions as refusals."""
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        finally:
            self._seconds += time.perf_counter() - started

    def run(self, call: Call, mode: str = "") -> Outcome:
        given, self._seconds = replace(self._array_call(call), mode=mode), 0.0
        try:
            if call.operator.is_backward:
                arrays: tuple[NDArray, ...] = (self.backward(given),)
            else:
                maxima, indices = self.forward(given)
                arrays = maxima, self._to_plane(indices, given)
        except Refused as error:
            return Outcome(Status.REFUSED, message=str(error), seconds=self._seconds)
        except Exception as error:
            _, *frames = traceback.extract_tb(error.__traceback__)
            if len(frames) > 1:  # add_note needs Python 3.11
                own = frames[0]
                place = f"in line {own.lineno} of {Path(own.filename).name}"
                error.__notes__ = [f"{own.name} called it outside of invoke, {place}"]
            raise
        results = {name: _put(array, call.tensors[name]) for name, array in zip(call.operator.outputs, arrays)}
        return Outcome(Status.COMPLETED, seconds=self._seconds, results=results)

    def _array_call(self, call: Call) -> ArrayCall:
        arrays = {name: call.tensors[name].array for name in call.operator.inputs}
        for name, array in arrays.items():
            is_batched = array.ndim == call.operator.spatial_rank + 2
            arrays[name] = np.ascontiguousarray(array if is_batched else array[np.newaxis])
        given = arrays["self"], arrays.get("grad_output"), None, call.index_dtype
        arranged = ArrayCall(call.operator, *given, **full_length(call))
        if "indices" not in arrays:
            return arranged
        scale, starts = self._places(arranged)
        return replace(arranged, indices=(arrays["indices"] * scale + starts).astype(arrays["indices"].dtype))

    def _to_plane(self, indices: NDArray, call: ArrayCall) -> NDArray:
        """Convert indices to those of the plane; keep -1, which is no cell."""
        scale, starts = self._places(call)
        return np.where(indices < 0, indices, (indices - starts) // scale).astype(indices.dtype)

    def _places(self, call: ArrayCall) -> tuple[int, NDArray]:
        """Return the step of indices from cell to cell, and the first index of each plane."""
        values, rank = call.values, call.operator.spatial_rank
        batch, channels = values.shape[:2]
        ones = (1,) * rank
        if self.index_base is IndexBase.PLANE:
            return 1, np.zeros((1, 1, *ones), np.int64)
        if self.index_base is IndexBase.TENSOR:
            plane = prod(values.shape[2:])
            return 1, plane * np.arange(batch * channels).reshape(batch, channels, *ones)
        return channels, np.arange(channels).reshape(1, channels, *ones)


def _put(array: NDArray, tensor: Tensor) -> tuple[tuple[int, ...], str]:
    """Copy a result into its tensor if its shape fits; return its shape, without an added batch axis, and its dtype."""
    shape = array.shape if len(tensor.shape) == array.ndim else array.shape[1:]
    if shape == tensor.shape:
        tensor.array[...] = array.reshape(shape)
    return shape, dtype_name(array.dtype)
