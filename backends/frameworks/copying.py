"""A base for frameworks that take arrays and return arrays: everything but the framework's own calls.

A subclass says what it has not, and asks the framework: about twenty lines. It is given batched contiguous arrays and
attributes of full length, and returns arrays; those are copied into the call's tensors, and their shapes and dtypes
reported. What the framework itself raises is a refusal; what the adapter raises is the adapter's fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Backend, Call, Outcome, Status, dtype_name
from poolproof.references.geometry import expand
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Lengths, Windowed


class IndexBase(StrEnum):
    """What a framework's indices count.

    ``plane``: cells of one (n, c), as in the operator library. ``tensor``: elements of the whole tensor in (N, C, ...)
    order. ``channels-last``: elements of one batch item in (..., C) order.
    """

    PLANE = "plane"
    TENSOR = "tensor"
    CHANNELS_LAST = "channels-last"


@dataclass(frozen=True, eq=False)
class Question:
    """One call as a framework can be asked it.

    Arrays are contiguous: ``values`` (self) of shape ``(N, C, *spatial)``, ``gradient`` (grad_output) and ``indices``
    of shape ``(N, C, *windows)``, the last counted from the framework's `IndexBase`; a forward has neither, and is
    asked for indices of ``index_dtype``. Of the lists each has a length for every spatial axis; of windowed and
    adaptive operators the other kind's are empty. ``mode`` is the one of `Backend.variants` to ask in.
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


class Refused(Exception):
    """The framework turned a call down; the text is its own."""


P = ParamSpec("P")
R = TypeVar("R")


class CopyingBackend(Backend):
    """Override `unsupported`, and `forward`, `backward` or both.

    ``without``: the abilities of every operator, of which layouts and tensors without a batch axis are always taken
    away: they never reach the framework.
    """

    index_base = IndexBase.PLANE
    without = Abilities()

    def __init__(self) -> None:
        self._seconds = 0.0

    def abilities(self, operator: Operator) -> Abilities:  # noqa: ARG002
        return replace(self.without, layouts=(), unbatched=False)

    def forward(self, question: Question) -> tuple[NDArray, NDArray]:
        """(maxima, indices), by `ask`."""
        raise NotImplementedError

    def backward(self, question: Question) -> NDArray:
        """grad_input, by `ask`."""
        raise NotImplementedError

    def ask(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the framework: its time counts, and what it raises is its refusal."""
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        finally:
            self._seconds += time.perf_counter() - started

    def run(self, call: Call, mode: str = "") -> Outcome:
        question, self._seconds = replace(self._question(call), mode=mode), 0.0
        try:
            if call.operator.is_backward:
                made: tuple[NDArray, ...] = (self.backward(question),)
            else:
                maxima, indices = self.forward(question)
                made = maxima, self._to_plane(indices, question)
        except Refused as error:
            return Outcome(Status.REFUSED, message=str(error), seconds=self._seconds)
        results = {}
        for name, array in zip(call.operator.outputs, made, strict=True):
            results[name] = _put(array, call, name)
        return Outcome(Status.COMPLETED, seconds=self._seconds, results=results)

    def _question(self, call: Call) -> Question:
        rank, arrays = call.operator.spatial_rank, {}
        for name in call.operator.inputs:
            array = call.tensors[name].array
            batched = array if array.ndim == rank + 2 else array[np.newaxis]
            arrays[name] = np.ascontiguousarray(batched)
        given = arrays["self"], arrays.get("grad_output"), None, call.index_dtype
        question = Question(call.operator, *given, **_full_length(call))
        if "indices" in arrays:
            question = replace(question, indices=self._from_plane(arrays["indices"], question))
        return question

    def _from_plane(self, indices: NDArray, question: Question) -> NDArray:
        scale, starts = self._places(question)
        return (indices * scale + starts).astype(indices.dtype)

    def _to_plane(self, indices: NDArray, question: Question) -> NDArray:
        """-1 stays what it is: no cell."""
        scale, starts = self._places(question)
        return np.where(indices < 0, indices, (indices - starts) // scale).astype(indices.dtype)

    def _places(self, question: Question) -> tuple[int, NDArray]:
        """By how much an index grows from cell to cell, and where those of each plane begin."""
        values, rank = question.values, question.operator.spatial_rank
        batch, channels = values.shape[:2]
        ones = (1,) * rank
        match self.index_base:
            case IndexBase.PLANE:
                return 1, np.zeros((1, 1, *ones), np.int64)
            case IndexBase.TENSOR:
                plane = prod(values.shape[2:])
                return 1, plane * np.arange(batch * channels).reshape(batch, channels, *ones)
            case IndexBase.CHANNELS_LAST:
                return channels, np.arange(channels).reshape(1, channels, *ones)


def _full_length(call: Call) -> dict[str, Any]:
    windows, rank = call.attributes, call.operator.spatial_rank
    match windows:
        case Adaptive():
            return {"output_size": expand(windows.output_size, rank)}
        case Windowed():
            kernel = expand(windows.kernel_size, rank)
            return {
                "kernel_size": kernel,
                "stride": expand(windows.stride, rank, kernel),
                "padding": expand(windows.padding, rank, (0,)),
                "dilation": expand(windows.dilation, rank, (1,)),
                "ceil_mode": windows.ceil_mode,
            }


def _put(array: NDArray, call: Call, name: str) -> tuple[tuple[int, ...], str]:
    """Copy a result into its tensor where it fits; its shape, without the batch axis that was added, and its dtype."""
    tensor = call.tensors[name]
    shape = array.shape if len(tensor.shape) == array.ndim else array.shape[1:]
    if shape == tensor.shape:
        tensor.array[...] = array.reshape(shape)
    return shape, dtype_name(array.dtype)
