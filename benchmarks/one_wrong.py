"""torch on the CPU with one wrong element: ``--backend one_wrong:OneWrong`` with this folder on PYTHONPATH."""

from __future__ import annotations

from poolproof.backends.base import Call, Outcome
from poolproof.backends.torch_eager import TorchEager


class OneWrong(TorchEager):
    """A backward that adds one too many to the first element of grad_input."""

    def __init__(self) -> None:
        super().__init__("cpu")

    def run(self, call: Call, mode: str = "") -> Outcome:
        outcome = super().run(call, mode)
        if call.operator.is_backward:
            grad_input = call.tensors["grad_input"].array
            grad_input[(slice(1),) * grad_input.ndim] += 1
        return outcome
