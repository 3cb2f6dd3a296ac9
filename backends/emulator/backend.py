"""The emulator as backends, one per product: the aclnn binding on a library that is built here."""

from __future__ import annotations

import os
from dataclasses import replace

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE, Aclnn
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable, Call
from poolproof.backends.emulator.build import BuildFailed, CompilerMissing, library
from poolproof.references.accumulation import NATIVE, AccumulationModel

PRODUCT_VARIABLE = "POOLPROOF_EMULATOR_PRODUCT"
SYSTEM_WORKSPACE_VARIABLE = "POOLPROOF_EMULATOR_SYSTEM_WORKSPACE"
_SMALL_SYSTEM_WORKSPACE = 1 << 14
"""Instead of the 16 MiB of the real one, which would have to be poisoned before each call."""

ACCUMULATION_VARIABLE = "POOLPROOF_EMULATOR_ACCUMULATION"


class Emulated(Aclnn):
    """The emulator, which declares the accumulation that it was told to have."""

    def __init__(self) -> None:
        chosen = {name: os.environ[name] for name in (DEVICE_VARIABLE, WORKER_VARIABLE) if name in os.environ}
        super().__init__(chosen | {LIBRARY_VARIABLE: str(library())})
        self._is_native = os.environ.get(ACCUMULATION_VARIABLE) == "native"

    def accumulation(self, call: Call) -> AccumulationModel:
        model = super().accumulation(call)
        return replace(NATIVE, saturates=model.saturates) if self._is_native and call.dtype != "float32" else model


def emulated(product: str) -> Emulated:
    """The emulator as ``product``, whatever else is installed; BackendUnavailable without a C++ compiler.

    The library reads its product once: a process can have one of them.
    """
    os.environ[PRODUCT_VARIABLE] = product
    os.environ.setdefault(SYSTEM_WORKSPACE_VARIABLE, str(_SMALL_SYSTEM_WORKSPACE))
    try:
        return Emulated()
    except (BuildFailed, CompilerMissing) as error:
        raise BackendUnavailable(str(error)) from error


def a2() -> Emulated:
    return emulated("A2")


def a3() -> Emulated:
    return emulated("A3")


def ascend_950() -> Emulated:
    return emulated("950")


def ascend_910() -> Emulated:
    return emulated("910")


def ascend_310p() -> Emulated:
    return emulated("310P")


def ascend_310b() -> Emulated:
    return emulated("310B")
