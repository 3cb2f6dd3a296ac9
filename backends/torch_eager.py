"""Torch in eager mode through its aten operators, on any device torch has: ``cpu``, ``cuda`` or ``npu``.

The ``out=`` overloads are used throughout, because only they let the caller own, poison and guard the output. An
operator may give the tensor object it was handed other strides; the caller reads through that object.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poolproof.backends.base import Backend, BackendUnavailable, Call, Outcome, Status, Tensor, dtype_name
from poolproof.backends.torch_streams import TorchStreams
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.operators import Direction, Operator

if TYPE_CHECKING:
    import torch

DTYPES = ("float64", "float32", "float16", "bfloat16")


class TorchEager(Backend):
    """One torch device. BackendUnavailable when torch or the device is missing."""

    def __init__(self, device: str) -> None:
        self._torch = _import_torch(device)
        self._device = device
        self.interface = f"torch-{device}"
        self.survives_fork = device == "cpu"
        self.streams = None if device == "cpu" else TorchStreams(self, getattr(self._torch, device))

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
        torch = self._torch
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
        """Queue ``work`` on an idle device and wait for it: what torch refused, if it did, and the seconds it took."""
        try:
            with self._torch.inference_mode():
                self._synchronize()
                started = time.perf_counter()
                work()
                self._synchronize()
                return None, time.perf_counter() - started
        except (RuntimeError, IndexError, ValueError) as error:
            return Outcome(Status.REFUSED, message=str(error).strip().splitlines()[0]), 0.0

    def place(self, call: Call) -> Placed:
        """The call's tensors on the device, in the mode of determinism that it asks for."""
        torch = self._torch
        if torch.are_deterministic_algorithms_enabled() != call.deterministic:
            torch.set_deterministic_debug_mode(2 * call.deterministic)  # as the usual setter, which imports a compiler
        buffers = {name: self._upload(tensor) for name, tensor in call.tensors.items()}
        views = {name: self._view(buffers[name], tensor) for name, tensor in call.tensors.items()}
        return Placed(self, call, buffers, views)

    def compute(self, call: Call, views: Mapping[str, torch.Tensor]) -> None:
        """Queue the operator on the current stream."""
        _INVOKE[call.operator.direction](self._torch, call, views)

    def _synchronize(self) -> None:
        if self._device != "cpu":
            getattr(self._torch, self._device).synchronize()

    def download(self, buffer: torch.Tensor, tensor: Tensor) -> None:
        if self._device != "cpu":
            tensor.buffer[:] = buffer.cpu().numpy()

    def empty(self, *shape: int) -> torch.Tensor:
        """Bytes on the device that hold anything."""
        return self._torch.empty(shape, dtype=self._torch.uint8, device=self._device)

    def _upload(self, tensor: Tensor) -> torch.Tensor:
        """The tensor's storage as a one-dimensional torch tensor; on the CPU it shares the memory."""
        if self._device == "cpu":
            return self._torch.from_numpy(tensor.storage)
        return self._torch.from_numpy(tensor.buffer).to(self._device)

    def _view(self, buffer: torch.Tensor, tensor: Tensor) -> torch.Tensor:
        typed = buffer.view(getattr(self._torch, dtype_name(tensor.dtype)))
        guard = 0 if self._device == "cpu" else tensor.guard // tensor.dtype.itemsize
        return typed.as_strided(tensor.shape, tensor.strides, guard + tensor.offset)


@dataclass(frozen=True, eq=False)
class Placed:
    """A call on a device: by name the buffers of its tensors, guard bands included, and the views that it is given."""

    eager: TorchEager
    call: Call
    buffers: Mapping[str, torch.Tensor]
    views: Mapping[str, torch.Tensor]

    def compute(self) -> None:
        """Queue the operator on the current stream."""
        self.eager.compute(self.call, self.views)

    def outcome(self, seconds: float) -> Outcome:
        """What came of the call, which the device has completed; every buffer is brought back."""
        for name, tensor in self.call.tensors.items():
            self.eager.download(self.buffers[name], tensor)
        outputs = {name: self.views[name] for name in self.call.operator.outputs}
        results = {name: (tuple(view.shape), _dtype_name(view)) for name, view in outputs.items()}
        strides = {name: tuple(view.stride()) for name, view in outputs.items()}
        return Outcome(Status.COMPLETED, seconds=seconds, results=results, strides=strides)


def memory_format(call: Call) -> str:
    """Torch's choice between its contiguous and its channels-last kernels, as its sources make it.

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
    """Whether the elements lie without gaps when axes are nested in ``order``, outermost first."""
    expected = 1
    for axis in reversed(order):
        if tensor.shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= tensor.shape[axis]
    return True


def _backward(torch: Any, call: Call, views: Mapping[str, torch.Tensor]) -> None:
    function = getattr(torch.ops.aten, str(call.operator.aten)).grad_input
    gradient, values, indices, out = (views[name] for name in call.operator.tensors)
    function(gradient, values, *call.operator.passed(call.attributes), indices, grad_input=out)


def _forward(torch: Any, call: Call, views: Mapping[str, torch.Tensor]) -> None:
    function = getattr(torch.ops.aten, str(call.operator.aten)).out
    values, out, indices = (views[name] for name in call.operator.tensors)
    function(values, *call.operator.passed(call.attributes), out=out, indices=indices)


_INVOKE: dict[Direction, Callable[[Any, Call, Mapping[str, Any]], None]] = {
    Direction.BACKWARD: _backward,
    Direction.FORWARD: _forward,
}

_ACCUMULATION: dict[str, dict[tuple[str, str], AccumulationModel]] = {
    "cuda": {
        ("MaxPool2dWithIndicesBackward", "contiguous"): ACC32,
        ("MaxPool2dWithIndicesBackward", "channels_last"): ACC32,
    },
}
"""Per device, for float16 and bfloat16: the model that the probe measured for (operator, route); else native."""


def _import_torch(device: str) -> Any:
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


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def cpu() -> TorchEager:
    return TorchEager("cpu")


def cuda() -> TorchEager:
    return TorchEager("cuda")


def npu() -> TorchEager:
    return TorchEager("npu")
