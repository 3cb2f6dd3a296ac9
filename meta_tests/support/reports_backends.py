"""Backends for the reports to be right about: torch on the CPU, with one fault each."""

import os
from dataclasses import replace

import numpy as np

from poolproof.backends.base import Call, Outcome, Status
from poolproof.backends.torch_eager import TorchEager


class TorchCpu(TorchEager):
    """Torch, under the name by which the copy is asked for."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.name = f"reports_backends:{type(self).__name__}"

    def run(self, call: Call, mode: str = "") -> Outcome:
        if self.dies(call):
            os.abort()
        return super().run(call, mode)

    def dies(self, call: Call) -> bool:
        return False


class Lossy(TorchCpu):
    """Loses the largest gradient of every large enough backward in float32."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if outcome.status is Status.COMPLETED and call.operator.is_backward and call.dtype == "float32":
            result = call.tensors["grad_input"].array
            if result.size > 30:
                result[np.unravel_index(np.abs(result).argmax(), result.shape)] = 0.0
        return outcome


class Crashing(TorchCpu):
    """Ends its process on planes that are wider than 4."""

    def dies(self, call: Call) -> bool:
        return call.tensors["self"].shape[-1] > 4


class Mixed(Lossy):
    """Loses gradients in float32, and ends its process in float64 on planes that are wider than 8."""

    def dies(self, call: Call) -> bool:
        return call.dtype == "float64" and call.tensors["self"].shape[-1] > 8


class Busy(TorchCpu):
    """Has no device left for float16."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if call.dtype != "float16":
            return outcome
        return replace(outcome, status=Status.UNAVAILABLE, message="no device is free")


class OnCard(TorchCpu):
    """Says on every row which card its process was given."""

    def route(self, call: Call) -> str:
        return f"card {os.environ.get('ASCEND_RT_VISIBLE_DEVICES')}"
