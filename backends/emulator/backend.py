"""The emulator as backends, one per product: the aclnn binding on a library that is built here."""

from __future__ import annotations

import os

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE, Aclnn
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable
from poolproof.backends.emulator.build import BuildFailed, CompilerMissing, library


def emulated(product: str) -> Aclnn:
    """The emulator as ``product``, whatever else is installed; BackendUnavailable without a C++ compiler.

    The library reads its product once: a process can have one of them.
    """
    os.environ["POOLPROOF_EMULATOR_PRODUCT"] = product
    chosen = {name: os.environ[name] for name in (DEVICE_VARIABLE, WORKER_VARIABLE) if name in os.environ}
    try:
        return Aclnn(chosen | {LIBRARY_VARIABLE: str(library())})
    except (BuildFailed, CompilerMissing) as error:
        raise BackendUnavailable(str(error)) from error


def a2() -> Aclnn:
    return emulated("A2")


def a3() -> Aclnn:
    return emulated("A3")


def ascend_950() -> Aclnn:
    return emulated("950")


def ascend_910() -> Aclnn:
    return emulated("910")


def ascend_310p() -> Aclnn:
    return emulated("310P")


def ascend_310b() -> Aclnn:
    return emulated("310B")
