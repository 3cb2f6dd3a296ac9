"""Torch by the routes that its users take: the gradient that autograd makes, and both directions compiled by Inductor.

`torch_eager` calls the operators themselves, in the caller's memory. Here they are behind `torch.nn.functional`, and
tensors are torch's own; what a user can choose there besides, memory formats and the second output, are variants.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import CopyingBackend, Question
from poolproof.backends.torch_eager import UNKNOWN_TO_NUMPY, TorchEager
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans
from poolproof.references.geometry import expand
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive

if TYPE_CHECKING:
    import torch

CHANNELS_LAST = "channels-last tensors"
VALUES_ALONE = "values alone asked for"


class TorchRoute(CopyingBackend):
    """One route on one torch device. BackendUnavailable when torch or the device is missing."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._eager = TorchEager(device)
        self._device = device
        self.torch = self._eager.torch
        self.interface = self._eager.interface

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return self._eager.unsupported(operator, dtype, index_dtype)

    def accumulation(self, call: Call) -> AccumulationModel:
        return self._eager.accumulation(call)

    def is_deterministic(self, call: Call) -> bool:
        return self._eager.is_deterministic(call)

    def environment(self) -> Mapping[str, str]:
        return self._eager.environment()

    def tensor(self, array: NDArray, question: Question) -> torch.Tensor:
        """On the device, in the memory format that the mode names."""
        name = array.dtype.name
        if name in UNKNOWN_TO_NUMPY:
            made = self.torch.from_numpy(array.view(np.int16).copy()).view(getattr(self.torch, name))
        else:
            made = self.torch.from_numpy(array.copy())
        moved = made.to(self._device)
        return moved.to(memory_format=self._memory_format(question))

    def _memory_format(self, question: Question) -> torch.memory_format:
        if question.mode != CHANNELS_LAST:
            return self.torch.contiguous_format
        return self.torch.channels_last if question.operator.spatial_rank == 2 else self.torch.channels_last_3d


class TorchAutograd(TorchRoute):
    """`torch.nn.functional` and its gradient, whose saved indices are those of the call."""

    variants = (CHANNELS_LAST, VALUES_ALONE)

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.survives_fork = device == "cpu"

    def forward(self, question: Question) -> tuple[NDArray, NDArray]:
        """Where values alone are asked for, indices are those of the other call, which has to agree with it."""
        values = self.tensor(question.values, question)
        out, indices = self.ask(pool_of(self.torch, question), values, return_indices=True)
        if question.mode == VALUES_ALONE:
            out = self.ask(pool_of(self.torch, question), values)
        return array_of(self.torch, out), array_of(self.torch, indices)

    def backward(self, question: Question) -> NDArray:
        assert question.indices is not None
        assert question.gradient is not None
        values = self.tensor(question.values, question).requires_grad_()
        indices, gradient = (self.tensor(each, question) for each in (question.indices, question.gradient))
        with self.torch.autograd.graph.saved_tensors_hooks(_as_it_is, partial(_unless_indices, indices)):
            out = self.ask(pool_of(self.torch, question), values, return_indices=question.mode != VALUES_ALONE)
            out = out if question.mode == VALUES_ALONE else out[0]
            self.ask(out.backward, gradient)
        assert values.grad is not None
        return array_of(self.torch, values.grad)


class TorchCompile(TorchRoute):
    """Both directions compiled by Inductor; a call of another shape is compiled anew, which takes seconds.

    What is compiled is never left to torch's limit of recompilations, behind which it would be run eagerly.
    """

    variants = (CHANNELS_LAST, VALUES_ALONE)

    def __init__(self, device: str) -> None:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        super().__init__(device)
        self._kept: dict[object, Callable[..., Any]] = {}

    def forward(self, question: Question) -> tuple[NDArray, NDArray]:
        """Where values alone are asked for, indices are those of the other call, which has to agree with it."""
        values = self.tensor(question.values, question)
        both = self._compiled(question, "both", partial(pool_of(self.torch, question), return_indices=True))
        out, indices = self.ask(both, values)
        if question.mode == VALUES_ALONE:
            out = self.ask(self._compiled(question, "values", pool_of(self.torch, question)), values)
        return array_of(self.torch, out), array_of(self.torch, indices)

    def backward(self, question: Question) -> NDArray:
        assert question.indices is not None
        assert question.gradient is not None
        gradient, values, indices = (
            self.tensor(each, question) for each in (question.gradient, question.values, question.indices)
        )
        compiled = self._compiled(question, "backward", _backward(self.torch, question))
        return array_of(self.torch, self.ask(compiled, gradient, values, indices))

    def forward_rule(self, call: Call) -> ForwardRule:
        """Of several NaN the first, where the operator that runs uncompiled takes the last.

        Adaptive windows of several lengths are compiled, or left to that operator, by rules of Inductor's own.
        """
        if isinstance(call.attributes, Adaptive):
            rank, sizes = call.operator.spatial_rank, call.tensors["self"].shape
            counts = expand(call.attributes.output_size, rank)
            if any(size % max(count, 1) for size, count in zip(sizes[-rank:], counts, strict=True)):
                return replace(FAMILY_RULE, nans=Nans.ANY)
        return replace(FAMILY_RULE, nans=Nans.FIRST)

    def _compiled(self, question: Question, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        shape, dtype = question.values.shape, question.values.dtype
        key = (what, question.operator, _arguments(question), shape, dtype, self._memory_format(question))
        if key not in self._kept:
            if len(self._kept) == _MOST_KEPT:
                self._kept.clear()
                self.torch.compiler.reset()
            self._kept[key] = self.torch.compile(_calling(function), fullgraph=True, dynamic=False)
        return self._kept[key]


_MOST_KEPT = 6
"""Compiled functions that are kept: fewer than torch compiles of one source (``recompile_limit``, 8)."""


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*tensors: torch.Tensor) -> Any:
        return function(*tensors)

    return called


def _arguments(question: Question) -> tuple[Any, ...]:
    """Of the operator, behind its tensors."""
    if question.output_size:
        return (question.output_size,)
    return question.kernel_size, question.stride, question.padding, question.dilation, question.ceil_mode


def pool_of(torch: Any, question: Question) -> Callable[..., Any]:
    """The pool of `torch.nn.functional`, which takes values and ``return_indices``."""
    functional, rank, arguments = torch.nn.functional, question.operator.spatial_rank, _arguments(question)
    if question.output_size:
        return partial(getattr(functional, f"adaptive_max_pool{rank}d"), output_size=arguments[0])
    names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return partial(getattr(functional, f"max_pool{rank}d"), **dict(zip(names, arguments, strict=True)))


def _backward(torch: Any, question: Question) -> Callable[..., Any]:
    """The operator that autograd calls, which takes gradient, values and indices."""
    operator, arguments = getattr(torch.ops.aten, str(question.operator.aten)), _arguments(question)
    if question.output_size:
        return operator
    return lambda gradient, values, indices: operator(gradient, values, *arguments, indices)


def _as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _unless_indices(indices: torch.Tensor, saved: torch.Tensor) -> torch.Tensor:
    """What autograd gets for what it ``saved``: the call's indices for its own, lying in memory as those do."""
    return saved.clone().copy_(indices) if saved.dtype == indices.dtype else saved


def array_of(torch: Any, tensor: torch.Tensor) -> NDArray:
    """Of shape (N, C, *spatial), contiguous, on the host."""
    made = tensor.detach().cpu().contiguous()
    if made.dtype == torch.bfloat16:
        return made.view(torch.int16).numpy().view("bfloat16")
    return made.numpy()
