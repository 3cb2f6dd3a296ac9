"""The aclnn operators behind the `Backend` interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from poolproof.backends.aclnn.device import Device
from poolproof.backends.aclnn.execution import TwoPhase, attempt, execute
from poolproof.backends.aclnn.libraries import load
from poolproof.backends.aclnn.sequences import ACTIONS, SET_ADDRESS, run_sequence
from poolproof.backends.aclnn.status import AclError
from poolproof.backends.base import (
    WORKER_VARIABLE,
    Attempt,
    Backend,
    BackendUnavailable,
    Call,
    Outcome,
    SequenceResult,
    Status,
)
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.statuses import PROVES_NOTHING
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.products import PRODUCTS, Product, product_of
from poolproof.references.sequences import Actions

DEVICE_VARIABLE = "POOLPROOF_NPU"
"""Number of the NPU to use. Without it, the workers of a run share all NPUs of the machine."""


class Aclnn(Backend):
    """One NPU, or any library that exports its interface.

    Args:
        environment: Names the NPU and the libraries, by the variable of ``--aclnn-library`` or by CANN's own.
        product: Replaces the product of the device.

    Raises:
        BackendUnavailable: A library or the device is missing.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, product: Product | None = None) -> None:
        self._libraries = load(environment)
        self._device = Device(self._libraries, partial(_number, environment))
        self._operators = {
            name: TwoPhase(self._device, name, phases)
            for name, operator in OPERATORS.items()
            if (phases := self._libraries.operator(operator)) is not None
        }
        if not self._operators:
            places = ", ".join(map(str, self._libraries.paths))
            raise BackendUnavailable(f"no operator of the family is exported by {places}")
        chip = self._device.soc_name
        known = product or product_of(chip)
        if known is None:
            raise BackendUnavailable(f"chip {chip!r} belongs to no known product ({', '.join(PRODUCTS)})")
        self.product: Product = known
        self.tags = self.product.tags
        self.actions = tuple(each for each in ACTIONS if each != "readdressed" or self._device.has(SET_ADDRESS))

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return None if operator.name in self._operators else f"symbol aclnn{operator.name} is not exported"

    def accumulation(self, call: Call) -> AccumulationModel:
        return replace(self.product.accumulation(call.operator.name, call.dtype), saturates=self._device.saturates)

    def route(self, call: Call) -> str:
        return self._device.route()

    def is_deterministic(self, call: Call) -> bool:
        """Declare what the pages promise: forwards always are; backwards only in the deterministic mode."""
        return call.deterministic or not call.operator.is_backward

    def environment(self) -> Mapping[str, str]:
        return {
            "product": self.product.name,
            "soc": self._device.soc_name,
            "npu": str(self._device.number),
            **self._device.versions(),
            "saturation": "saturate" if self._device.saturates else "inf and nan",
            "libraries": ", ".join(path.name for path in self._libraries.paths),
        }

    def is_usable(self) -> bool:
        return not self._device.is_lost

    def device_memory_in_use(self) -> int | None:
        return -self._device.free_memory()

    def run(self, call: Call, mode: str = "") -> Outcome:
        try:
            self._device.set_deterministic(call.deterministic)
            return execute(self._device, self._operators[call.operator.name], call, self._device.stream)
        except AclError as error:
            status = Status.UNAVAILABLE if error.code in PROVES_NOTHING else Status.REFUSED
            return Outcome(status, error.code, str(error))

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        return run_sequence(self._device, self._operators, actions, calls)

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        try:
            self._device.set_deterministic(False)
            return attempt(self._device, self._operators[call.api.removeprefix("aclnn")], call, runs)
        except AclError as error:
            if not self._device.is_lost:
                raise
            return Attempt(error.code, None, str(error))


def _number(environment: Mapping[str, str], count: int) -> int:
    """Return the number of the NPU to use, out of ``count``: the named one, or this worker's."""
    named = environment.get(DEVICE_VARIABLE)
    if named is None:
        return int(environment.get(WORKER_VARIABLE, "0")) % max(count, 1)
    if not named.isdecimal():
        raise BackendUnavailable(f"{DEVICE_VARIABLE} must be the number of an NPU, not {named!r}")
    return int(named)
