"""Torch in eager mode through its aten operators, on any device torch has: ``cpu``, ``cuda`` or ``npu``.

Only the ``out=`` overloads let the caller own, poison and guard the output. An operator may give its output tensor
object other strides; the caller reads through that object.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from poolproof.backends.base import Backend, BackendUnavailable, Call, Outcome, Status, Tensor, dtype_name
from poolproof.backends.torch_streams import TorchStreams
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.operators import Operator

if TYPE_CHECKING:
    import torch

DTYPES = ("float64", "float32", "float16", "bfloat16")


class TorchEager(Backend):
    """One torch device. BackendUnavailable when torch or the device is missing."""

    def __init__(self, device: str) -> None:
        self.torch = import_torch(device)
        self._device = device
        self.interface = f"torch-{device}"
        self.survives_fork = device == "cpu"
        self.streams = None if device == "cpu" else TorchStreams(self, getattr(self.torch, device))
        self.is_host = device == "cpu"

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if operator.aten is None:
            return f"torch has no operator for aclnn{operator.name}"
        if dtype not in DTYPES:
            return f"torch pools no {dtype}"
        if index_dtype != "int64":
            return "torch takes int64 indices only"
        return None

    def accumulation(self, call: Call) -> AccumulationModel:
        if call.dtype in ("float32", "float64"):
            return ACC32
        return _ACCUMULATION.get(self._device, {}).get((call.operator.name, self.route(call)), NATIVE)

    def route(self, call: Call) -> str:
        return memory_format(call)

    def is_deterministic(self, call: Call) -> bool:
        return self._device == "cpu" or call.deterministic

    def environment(self) -> Mapping[str, str]:
        torch = self.torch
        device = platform.processor() or platform.machine()
        if self._device != "cpu":
            device = getattr(torch, self._device).get_device_name()
        return {
            "torch": torch.__version__,
            "device": device,
            "threads": str(torch.get_num_threads()),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }

    def run(self, call: Call, mode: str = "") -> Outcome:  # noqa: ARG002  (there are no modes)
        placed = self.place(call)
        refusal, seconds = self.attempt(placed.compute)
        return refusal or placed.outcome(seconds)

    def attempt(self, work: Callable[[], None]) -> tuple[Outcome | None, float]:
        """Queue ``work`` on an idle device and wait for it; return torch's refusal, if any, and the seconds it took."""
        try:
            self._synchronize()
            started = time.perf_counter()
            work()
            self._synchronize()
            return None, time.perf_counter() - started
        except (RuntimeError, IndexError, ValueError) as error:
            return Outcome(Status.REFUSED, message=str(error).strip().splitlines()[0]), 0.0

    def place(self, call: Call) -> Placed:
        """Place the call's tensors on the device, in the call's mode of determinism."""
        torch = self.torch
        if torch.are_deterministic_algorithms_enabled() != call.deterministic:
            torch.set_deterministic_debug_mode(2 * call.deterministic)  # the usual setter imports a compiler
        return Placed(self, call)

    def compute(self, call: Call, views: Mapping[str, torch.Tensor]) -> None:
        """Queue the operator on the current stream."""
        operator = call.operator
        function, passed = getattr(self.torch.ops.aten, str(operator.aten)), operator.passed(call.attributes)
        if operator.is_backward:
            gradient, values, indices, out = (views[name] for name in operator.tensors)
            function.grad_input(gradient, values, *passed, indices, grad_input=out)
        else:
            values, out, indices = (views[name] for name in operator.tensors)
            function.out(values, *passed, out=out, indices=indices)

    def _synchronize(self) -> None:
        if self._device != "cpu":
            getattr(self.torch, self._device).synchronize()

    def empty(self, *shape: int) -> torch.Tensor:
        """Allocate uninitialised bytes on the device."""
        return self.torch.empty(shape, dtype=self.torch.uint8, device=self._device)

    def host_bytes(self, tensor: Tensor) -> torch.Tensor:
        """Share the memory of a tensor's storage."""
        return self.torch.from_numpy(tensor.storage)

    def host_view(self, tensor: Tensor) -> torch.Tensor:
        """View the tensor in its own memory; with an offset, through its storage, which numpy does not pass on."""
        if tensor.offset:
            return self._strided(self.host_bytes(tensor), tensor, tensor.offset)
        if dtype_name(tensor.dtype) in UNKNOWN_TO_NUMPY:
            return self.torch.from_numpy(tensor.array.view(np.int16)).view(self._dtype(tensor))
        return self.torch.from_numpy(tensor.array)

    def device_bytes(self, tensor: Tensor) -> torch.Tensor:
        """Copy a tensor's buffer, guard bands included, to the device."""
        return self.torch.from_numpy(tensor.buffer).to(self._device)

    def device_view(self, buffer: torch.Tensor, tensor: Tensor) -> torch.Tensor:
        return self._strided(buffer, tensor, tensor.guard // tensor.dtype.itemsize + tensor.offset)

    def _strided(self, memory: torch.Tensor, tensor: Tensor, start: int) -> torch.Tensor:
        return memory.view(self._dtype(tensor)).as_strided(tensor.shape, tensor.strides, start)

    def _dtype(self, tensor: Tensor) -> torch.dtype:
        return cast("torch.dtype", getattr(self.torch, dtype_name(tensor.dtype)))


UNKNOWN_TO_NUMPY = ("bfloat16",)
"""Dtypes of ml_dtypes, which torch does not take from numpy; all of two bytes."""


class Placed:
    """A call's tensors where torch can compute: by name the views for the operator, and their memory.

    On the host that is the caller's own, storages without their guard bands; on a device copies, with these.
    """

    def __init__(self, eager: TorchEager, call: Call) -> None:
        self.eager = eager
        self.call = call
        self._tensors = call.tensors.items()
        self.views = {
            name: eager.host_view(tensor) if eager.is_host else eager.device_view(self.buffers[name], tensor)
            for name, tensor in self._tensors
        }

    @cached_property
    def buffers(self) -> Mapping[str, torch.Tensor]:
        """The memory of each tensor; that of the host is asked for only by who puts a call among other work."""
        place = self.eager.host_bytes if self.eager.is_host else self.eager.device_bytes
        return {name: place(tensor) for name, tensor in self._tensors}

    def compute(self) -> None:
        """Queue the operator on the current stream."""
        self.eager.compute(self.call, self.views)

    def outcome(self, seconds: float) -> Outcome:
        """Bring back the memory of a completed call, and return its outcome."""
        if not self.eager.is_host:
            for name, tensor in self._tensors:
                tensor.buffer[:] = self.buffers[name].cpu().numpy()
        results, strides = {}, {}
        for name in self.call.operator.outputs:
            view = self.views[name]
            results[name] = tuple(view.shape), _dtype_name(view.dtype)
            strides[name] = view.stride()
        return Outcome(Status.COMPLETED, seconds=seconds, results=results, strides=strides)


def memory_format(call: Call) -> str:
    """Choose between torch's contiguous and channels-last kernels, as its sources do.

    With a batch axis the strides of ``self`` decide (``MemoryFormat.h``, ``is_channels_last_strides``): visited
    from the innermost axis of a channels-last tensor outwards they must not shrink, those of unit axes included,
    and a tensor that is ambiguous in N counts as contiguous. Without one, a 3-D pool looks whether the tensor,
    in its backward grad_output, is dense in channels-last order and no other (``DilatedMaxPool3d.cpp``).
    """
    rank = call.operator.spatial_rank
    tensor = call.tensors["self"]
    if len(tensor.shape) == rank + 2:
        return "channels_last" if _has_channels_last_strides(tensor) else "contiguous"
    if rank == 3:
        tensor = call.tensors[call.operator.inputs[0]]
    axes = tuple(range(len(tensor.shape)))
    only_channels_last = _is_dense(tensor, (*axes[1:], axes[0])) and not _is_dense(tensor, axes)
    return "channels_last" if rank == 3 and only_channels_last else "contiguous"


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
    """Check whether the elements lie without gaps when axes are nested in ``order``, outermost first."""
    expected = 1
    for axis in reversed(order):
        if tensor.shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= tensor.shape[axis]
    return True


_ACCUMULATION: dict[str, dict[tuple[str, str], AccumulationModel]] = {
    "cuda": {
        ("MaxPool2dWithIndicesBackward", "contiguous"): ACC32,
        ("MaxPool2dWithIndicesBackward", "channels_last"): ACC32,
    },
}
"""Per device, for float16 and bfloat16: the model that the probe measured for (operator, route); native elsewhere."""


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
    if device != "cpu" and not getattr(torch, device).is_available():
        raise BackendUnavailable(f"torch {torch.__version__} finds no {device} device here")
    return torch


@cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
