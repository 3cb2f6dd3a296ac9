"""Torch as its users call it: the gradient of autograd, and both directions compiled by Inductor.

`torch_eager` calls the operators directly, in the caller's memory. Here calls go through `torch.nn.functional`, with
torch's own tensors. Memory formats and the second output, which a user can choose, are variants.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import VALUES_ALONE, ArrayCall, CopyingBackend
from poolproof.backends.torch_npu import on_device
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans
from poolproof.references.geometry import expand
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive

if TYPE_CHECKING:
    import torch

CHANNELS_LAST = "channels-last tensors"


class TorchRoute(CopyingBackend):
    """One route on one torch device; raises BackendUnavailable if torch or the device is missing."""

    def __init__(self, device: str) -> None:
        self._eager = on_device(device)
        self.torch = self._eager.torch
        self.interface, self.opens_late = self._eager.interface, self._eager.opens_late
        if device == "npu":  # torch_npu refuses `Tensor.to` with channels last
            self.variants = tuple(variant for variant in self.variants if variant != CHANNELS_LAST)

    def open(self) -> None:
        self._eager.open()
        self.product = self._eager.product

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return self._eager.unsupported(operator, dtype, index_dtype)

    def accumulation(self, call: Call) -> AccumulationModel:
        return self._eager.accumulation(call)

    def is_deterministic(self, call: Call) -> bool:
        return self._eager.is_deterministic(call)

    def environment(self) -> Mapping[str, str]:
        return self._eager.environment()

    def pool(self, call: ArrayCall, return_indices: bool) -> Callable[..., Any]:
        """Return the pool of `torch.nn.functional` as a function of values."""
        functional, rank = self.torch.nn.functional, call.operator.spatial_rank
        if call.output_size:
            pool = partial(getattr(functional, f"adaptive_max_pool{rank}d"), output_size=call.output_size)
        else:
            names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
            pool = partial(getattr(functional, f"max_pool{rank}d"), **dict(zip(names, call.windows)))
        return partial(pool, return_indices=return_indices)

    def forward(self, call: ArrayCall) -> tuple[NDArray, NDArray]:
        """Pool; with `VALUES_ALONE` the indices come from another call, which must agree with it."""
        values = self.tensor(call.values, call)
        out, indices = self.invoke(self.pool(call, return_indices=True), values)
        if call.mode == VALUES_ALONE:
            out = self.invoke(self.pool(call, return_indices=False), values)
        return self.array(out), self.array(indices)

    def tensor(self, array: NDArray | None, call: ArrayCall) -> torch.Tensor:
        """Copy to the device, in the memory format of the mode."""
        assert array is not None
        tensor = self._eager.from_numpy(array.copy())
        return tensor.to(self._eager.device).to(memory_format=self.memory_format(call))

    def memory_format(self, call: ArrayCall) -> torch.memory_format:
        if call.mode != CHANNELS_LAST:
            return self.torch.contiguous_format
        return self.torch.channels_last if call.operator.spatial_rank == 2 else self.torch.channels_last_3d

    def array(self, tensor: torch.Tensor) -> NDArray:
        """Copy to a contiguous array on the host, of shape (N, C, *spatial)."""
        copied = tensor.detach().cpu().contiguous()
        if copied.dtype == self.torch.bfloat16:
            return copied.view(self.torch.int16).numpy().view("bfloat16")
        return copied.numpy()


class TorchAutograd(TorchRoute):
    """`torch.nn.functional` and its gradient; the call's indices replace those that autograd saves."""

    survives_fork = True
    variants = (CHANNELS_LAST, VALUES_ALONE)

    def backward(self, call: ArrayCall) -> NDArray:
        values = self.tensor(call.values, call).requires_grad_()
        indices, gradient = self.tensor(call.indices, call), self.tensor(call.gradient, call)
        with self.torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, partial(_unless_indices, indices)):
            out = self.invoke(self.pool(call, return_indices=call.mode != VALUES_ALONE), values)
            out = out if call.mode == VALUES_ALONE else out[0]
            self.invoke(out.backward, gradient)
        assert values.grad is not None
        return self.array(values.grad)


class TorchCompile(TorchRoute):
    """Both directions compiled by Inductor, for each shape separately.

    Compiled functions are reset before torch reaches its limit of recompilations, beyond which it runs eagerly.
    """

    variants = (CHANNELS_LAST, VALUES_ALONE)

    def __init__(self, device: str) -> None:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        super().__init__(device)
        self._cache: dict[object, Callable[..., Any]] = {}

    def pool(self, call: ArrayCall, return_indices: bool) -> Callable[..., Any]:
        return self._compiled(call, return_indices, super().pool(call, return_indices))

    def backward(self, call: ArrayCall) -> NDArray:
        """Compute by the operator that autograd calls."""
        operator = getattr(self.torch.ops.aten, str(call.operator.aten))
        passed = () if call.output_size else call.windows
        given = (self.tensor(array, call) for array in (call.gradient, call.values, call.indices))

        def backward(gradient: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> Any:
            return operator(gradient, values, *passed, indices)

        return self.array(self.invoke(self._compiled(call, "backward", backward), *given))

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return a rule in which the first of several NaN wins; with the uncompiled operator it is the last.

        Inductor's own rules decide whether adaptive windows of several lengths are compiled or left to that operator.
        """
        if isinstance(call.attributes, Adaptive):
            rank, sizes = call.operator.spatial_rank, call.tensors["self"].shape
            counts = expand(call.attributes.output_size, rank)
            if any(size % max(count, 1) for size, count in zip(sizes[-rank:], counts)):
                return replace(FAMILY_RULE, nans=Nans.ANY)
        return replace(FAMILY_RULE, nans=Nans.FIRST)

    def _compiled(self, call: ArrayCall, what: object, function: Callable[..., Any]) -> Callable[..., Any]:
        tensors = call.values.shape, call.values.dtype, self.memory_format(call)
        key = (what, call.operator, call.output_size, call.windows, *tensors)
        if key not in self._cache:
            if len(self._cache) == _MAX_CACHED:
                self._cache.clear()
                self.torch.compiler.reset()

            def calling(*tensors: torch.Tensor) -> Any:
                return function(*tensors)

            self._cache[key] = self.torch.compile(calling, fullgraph=True, dynamic=False)
        return self._cache[key]


_MAX_CACHED = 6
"""Most compiled functions in the cache: less than torch's limit for one source (``recompile_limit``, 8)."""


def _unless_indices(indices: torch.Tensor, saved: torch.Tensor) -> torch.Tensor:
    """Replace the indices that autograd ``saved`` by the call's, in the same memory layout."""
    return saved.clone().copy_(indices) if saved.dtype == indices.dtype else saved
