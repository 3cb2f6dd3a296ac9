"""Backends for the reports to be right about: torch on the CPU, with faults."""

import os

import numpy as np

from poolproof.backends.base import Call, Outcome, Status
from poolproof.backends.torch_eager import TorchEager


class Lossy(TorchEager):
    """Loses the largest gradient of every large enough backward in float32; named as the copy is asked for."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.name = f"reports_backends:{type(self).__name__}"

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if outcome.status is Status.COMPLETED and call.operator.is_backward and call.dtype == "float32":
            result = call.tensors["grad_input"].array
            if result.size > 30:
                result[np.unravel_index(np.abs(result).argmax(), result.shape)] = 0.0
        return outcome


class Mixed(Lossy):
    """Loses gradients in float32, and ends its process in float64 on planes that are wider than 8."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        if call.dtype == "float64" and call.tensors["self"].shape[-1] > 8:
            os.abort()
        return super().run(call, mode)
