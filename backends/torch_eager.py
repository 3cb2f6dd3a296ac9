"""Torch in eager mode through its aten operators, on ``cpu`` or ``cuda``; `torch_npu` adds ``npu``.

Only the ``out=`` overloads let the caller own, poison and guard the output. An operator may change the strides of its
output tensor object; the caller then reads through that object.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from poolproof.backends import torch_streams
from poolproof.backends.base import (
    Backend,
    BackendUnavailable,
    Call,
    Outcome,
    SequenceResult,
    Status,
    Tensor,
    dtype_name,
)
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.operators import Operator
from poolproof.references.sequences import Actions

if TYPE_CHECKING:
    import torch

DTYPES = ("float64", "float32", "float16", "bfloat16")


class TorchEager(Backend):
    """One torch device; raises BackendUnavailable if torch or the device is missing."""

    survives_fork = True

    def __init__(self, device: str) -> None:
        self.torch = import_torch(device)
        self.device = device
        self.module: Any = None if device == "cpu" else getattr(self.torch, device)
        self.interface = f"torch-{device}"
        self.opens_late = self.module is not None
        if self.module is not None:
            self.actions = torch_streams.ACTIONS

    def open(self) -> None:
        if self.module is not None and not self.module.is_available():
            raise BackendUnavailable(f"torch {self.torch.__version__} finds no {self.device} device here")

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if operator.aten is None:
            return f"torch has no operator for aclnn{operator.name}"
        if dtype not in DTYPES:
            return f"torch pools no {dtype}"
        if index_dtype != "int64":
            return "torch takes int64 indices only"
        return None

    def accumulation(self, call: Call) -> AccumulationModel:
        is_wide = call.dtype in ("float32", "float64") or (self.device, call.operator.name) in _ADDS_IN_FLOAT32
        return ACC32 if is_wide else NATIVE

    def route(self, call: Call) -> str:
        """Choose between torch's contiguous and channels-last kernels, as its sources do.

        With a batch axis, the strides of ``self`` decide (``MemoryFormat.h``, ``is_channels_last_strides``). From the
        innermost axis of a channels-last tensor outwards they must not shrink, including those of unit axes. A tensor
        that is ambiguous in N counts as contiguous. Without a batch axis, a 3-D pool checks whether the tensor (in its
        backward grad_output) is dense in channels-last order and no other (``DilatedMaxPool3d.cpp``).
        """
        rank = call.operator.spatial_rank
        tensor = call.tensors["self"]
        if len(tensor.shape) == rank + 2:
            is_channels_last = _has_channels_last_strides(tensor)
        else:
            tensor = call.tensors[call.operator.inputs[0]]
            axes = tuple(range(len(tensor.shape)))
            is_channels_last = rank == 3 and _is_dense(tensor, (*axes[1:], axes[0])) and not _is_dense(tensor, axes)
        return "channels_last" if is_channels_last else "contiguous"

    def is_deterministic(self, call: Call) -> bool:
        return self.device == "cpu" or call.deterministic

    def environment(self) -> Mapping[str, str]:
        torch = self.torch
        processor = platform.processor() or platform.machine()
        return {
            "torch": torch.__version__,
            "device": processor if self.module is None else self.module.get_device_name(),
            "threads": str(torch.get_num_threads()),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }

    def run(self, call: Call, mode: str = "") -> Outcome:  # noqa: ARG002  (there are no modes)
        placed = PlacedTensors(self, call)
        refusal, seconds = self.perform(placed.compute)
        return refusal or placed.outcome(seconds)

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        if self.module is None:
            return super().run_sequence(actions, calls)
        placed = [PlacedTensors(self, call) for call in calls]
        interpreter = torch_streams.TorchInterpreter(self.module, placed, self._delay)
        refusal, _ = self.perform(lambda: interpreter.perform_all(actions))
        if refusal:
            return SequenceResult((*(0,) * interpreter.performed, -1), refusal.message)
        interpreter.take_copied_outputs()
        for each in placed:
            each.outcome(0.0)
        return SequenceResult((0,) * len(actions), computed=tuple(sorted(interpreter.computed)))

    @cached_property
    def _delay(self) -> Callable[[], None]:
        memory = self.torch.empty((2, torch_streams.BLOCK), dtype=self.torch.uint8, device=self.device)
        return torch_streams.measured_delay(memory, self._synchronize)

    def perform(self, work: Callable[[], None]) -> tuple[Outcome | None, float]:
        """Queue ``work`` on an idle device and wait for it; return torch's refusal, if any, and the seconds."""
        try:
            self._synchronize()
            started = time.perf_counter()
            work()
            self._synchronize()
            return None, time.perf_counter() - started
        except (RuntimeError, IndexError, ValueError) as error:
            return self.refused(error), 0.0

    def refused(self, error: Exception) -> Outcome:
        return Outcome(Status.REFUSED, message=str(error).strip().splitlines()[0])

    def compute(self, call: Call, views: Mapping[str, torch.Tensor]) -> None:
        """Queue the operator on the current stream."""
        self.call_aten(str(call.operator.aten), call, views)

    def call_aten(self, name: str, call: Call, views: Mapping[str, torch.Tensor]) -> None:
        """Call the overload of an aten operator that writes into the caller's tensors."""
        operator = call.operator
        function, passed = getattr(self.torch.ops.aten, name), operator.passed(call.attributes)
        if operator.is_backward:
            gradient, values, indices, out = (views[name] for name in operator.tensors)
            function.grad_input(gradient, values, *passed, indices, grad_input=out)
        else:
            values, out, indices = (views[name] for name in operator.tensors)
            function.out(values, *passed, out=out, indices=indices)

    def _synchronize(self) -> None:
        if self.module is not None:
            self.module.synchronize()

    def host_view(self, tensor: Tensor) -> torch.Tensor:
        """View the tensor in its own memory; an offset goes through its storage, because numpy does not pass it on."""
        if tensor.offset:
            return self._strided(self.torch.from_numpy(tensor.storage), tensor, tensor.offset)
        return self.from_numpy(tensor.array)

    def from_numpy(self, array: NDArray) -> torch.Tensor:
        """View an array as a tensor; torch does not accept the bfloat16 of ml_dtypes."""
        if dtype_name(array.dtype) == "bfloat16":
            return self.torch.from_numpy(array.view(np.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)

    def device_view(self, buffer: torch.Tensor, tensor: Tensor) -> torch.Tensor:
        return self._strided(buffer, tensor, tensor.guard // tensor.dtype.itemsize + tensor.offset)

    def _strided(self, memory: torch.Tensor, tensor: Tensor, start: int) -> torch.Tensor:
        return memory.view(self._dtype(tensor)).as_strided(tensor.shape, tensor.strides, start)

    def _dtype(self, tensor: Tensor) -> torch.dtype:
        return cast("torch.dtype", getattr(self.torch, dtype_name(tensor.dtype)))


class PlacedTensors:
    """A call's tensors in memory where torch can compute; ``views`` are for the operator, by name.

    On the host these are views of the caller's own memory. On a device they are views of ``buffers``, which are copies
    with guard bands.
    """

    def __init__(self, eager: TorchEager, call: Call) -> None:
        self.eager = eager
        self.call = call
        self.buffers: dict[str, torch.Tensor] = {}
        if eager.module is None:
            self.views = {name: eager.host_view(tensor) for name, tensor in call.tensors.items()}
            return
        for name, tensor in call.tensors.items():
            self.buffers[name] = eager.torch.from_numpy(tensor.buffer).to(eager.device)
        self.views = {name: eager.device_view(self.buffers[name], tensor) for name, tensor in call.tensors.items()}

    def compute(self) -> None:
        """Queue the operator in the call's mode of determinism."""
        torch, deterministic = self.eager.torch, self.call.deterministic
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.set_deterministic_debug_mode(2 * deterministic)  # the usual setter imports a compiler
        self.eager.compute(self.call, self.views)

    def outcome(self, seconds: float) -> Outcome:
        """Copy back the memory of a completed call, and return its outcome."""
        for name, buffer in self.buffers.items():
            self.call.tensors[name].buffer[:] = buffer.cpu().numpy()
        views = {name: self.views[name] for name in self.call.operator.outputs}
        results = {name: (tuple(view.shape), str(view.dtype).removeprefix("torch.")) for name, view in views.items()}
        strides = {name: view.stride() for name, view in views.items()}
        return Outcome(Status.COMPLETED, seconds=seconds, results=results, strides=strides)


def _has_channels_last_strides(tensor: Tensor) -> bool:
    if tensor.strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(len(tensor.shape) - 1, 1, -1), 0):
        stride, size = tensor.strides[axis], tensor.shape[axis]
        if size == 0 or stride < least or (axis == 0 and least == tensor.strides[1]):
            return False
        least = stride * max(size, 1)
    return True


def _is_dense(tensor: Tensor, order: tuple[int, ...]) -> bool:
    """Check whether the elements have no gaps when axes are nested in ``order``, outermost first."""
    expected = 1
    for axis in reversed(order):
        if tensor.shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= tensor.shape[axis]
    return True


_ADDS_IN_FLOAT32 = {("cuda", "MaxPool2dWithIndicesBackward")}
"""Where the probe found that float16 and bfloat16 are added in float32, for every memory format."""


def import_torch(device: str) -> Any:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        import torch
    except ImportError as error:
        raise BackendUnavailable("torch is not installed: pip install 'poolproof[torch]'") from error
    torch.set_num_threads(1)
    if device == "npu":
        try:
            import torch_npu  # noqa: F401
        except ImportError as error:
            raise BackendUnavailable(
                "torch_npu is not installed: install the one that matches CANN and torch"
            ) from error
    return torch
