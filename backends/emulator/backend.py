"""The emulator as backends, one per product: the aclnn binding on a library that is built on first use."""

from __future__ import annotations

import os
from dataclasses import replace

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE, Aclnn
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable, Call
from poolproof.backends.emulator.build import BuildFailed, CompilerMissing, Tell, library
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.products import Product

KNOWN_PRODUCTS = ("A2", "A3", "950", "910", "310P", "310B")
"""Products of ``ascendcl/product.cpp``."""

PRODUCT_VARIABLE = "POOLPROOF_EMULATOR_PRODUCT"
SYSTEM_WORKSPACE_VARIABLE = "POOLPROOF_EMULATOR_SYSTEM_WORKSPACE"
_SMALL_SYSTEM_WORKSPACE = 1 << 14
"""Instead of the 16 MiB of the real one, which would have to be poisoned before each call."""

ACCUMULATION_VARIABLE = "POOLPROOF_EMULATOR_ACCUMULATION"


class Emulated(Aclnn):
    """The emulator, which declares the accumulation that the environment sets."""

    def __init__(self, product: Product) -> None:
        chosen = {name: os.environ[name] for name in (DEVICE_VARIABLE, WORKER_VARIABLE) if name in os.environ}
        super().__init__(chosen | {LIBRARY_VARIABLE: str(library())}, product)
        self._is_native = os.environ.get(ACCUMULATION_VARIABLE) == "native"

    def accumulation(self, call: Call) -> AccumulationModel:
        model = super().accumulation(call)
        return replace(NATIVE, saturates=model.saturates) if self._is_native and call.dtype != "float32" else model


def prepare(tell: Tell) -> None:
    """Build the emulator if need be; BackendUnavailable without a C++ compiler, or a folder to keep it in."""
    try:
        library(tell=tell)
    except (BuildFailed, CompilerMissing) as error:
        raise BackendUnavailable(str(error)) from error
    except OSError as error:
        raise BackendUnavailable(f"the emulator cannot be kept in {error.filename}: {error.strerror}") from error


def emulated(product: Product) -> Emulated:
    """Create the emulator of ``product``, whatever else is installed; BackendUnavailable without a C++ compiler.

    A product that the emulator does not know is emulated by the nearest that it is like. The library reads its product
    once, so a process can have only one.
    """
    names = [known.name for known in product.lineage if known.name in KNOWN_PRODUCTS]
    if not names:
        known = ", ".join(KNOWN_PRODUCTS)
        raise BackendUnavailable(f"the emulator is no {product.name}, nor anything that it is like, only {known}")
    os.environ[PRODUCT_VARIABLE] = names[0]
    os.environ.setdefault(SYSTEM_WORKSPACE_VARIABLE, str(_SMALL_SYSTEM_WORKSPACE))
    try:
        return Emulated(product)
    except (BuildFailed, CompilerMissing) as error:
        raise BackendUnavailable(str(error)) from error
