"""The emulator as backends, one per product: the aclnn binding on a library that is built on first use."""

from __future__ import annotations

import os
from dataclasses import replace

from poolproof.backends.aclnn.backend import DEVICE_VARIABLE, Aclnn
from poolproof.backends.aclnn.libraries import LIBRARY_VARIABLE
from poolproof.backends.base import WORKER_VARIABLE, BackendUnavailable, Call
from poolproof.backends.emulator.build import library
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.products import PRODUCTS

KNOWN_PRODUCTS = ("A2", "A3", "950", "910", "310P", "310B")
"""Products of ``ascendcl/product.cpp``."""

_SMALL_SYSTEM_WORKSPACE = 1 << 14
"""Replaces the real 16 MiB, which would have to be poisoned before each call."""


class Emulated(Aclnn):
    """The emulator of a product, with the accumulation that the environment sets.

    Args:
        name: The product's name in lower case. A product that the emulator lacks is emulated by its nearest relative. A
            process can have only one product, because the library reads it once.

    Raises:
        BackendUnavailable: There is no C++ compiler.
    """

    def __init__(self, name: str) -> None:
        product = PRODUCTS[name.upper()]
        names = [known.name for known in product.lineage if known.name in KNOWN_PRODUCTS]
        if not names:
            known = ", ".join(KNOWN_PRODUCTS)
            raise BackendUnavailable(f"the emulator has neither {product.name} nor a relative of it, only {known}")
        os.environ["POOLPROOF_EMULATOR_PRODUCT"] = names[0]
        os.environ.setdefault("POOLPROOF_EMULATOR_SYSTEM_WORKSPACE", str(_SMALL_SYSTEM_WORKSPACE))
        chosen = {name: os.environ[name] for name in (DEVICE_VARIABLE, WORKER_VARIABLE) if name in os.environ}
        super().__init__(chosen | {LIBRARY_VARIABLE: str(library())}, product)
        self._is_native = os.environ.get("POOLPROOF_EMULATOR_ACCUMULATION") == "native"

    def accumulation(self, call: Call) -> AccumulationModel:
        model = super().accumulation(call)
        return replace(NATIVE, saturates=model.saturates) if self._is_native and call.dtype != "float32" else model
