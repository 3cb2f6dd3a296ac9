"""A framework that lives elsewhere, as somebody would plug it in."""

from __future__ import annotations

from pathlib import Path

from poolproof.backends.base import Call
from poolproof.backends.frameworks.companion import CompanionBackend
from poolproof.references.accumulation import NATIVE, AccumulationModel
from poolproof.references.operators import Operator


class Beside(CompanionBackend):
    framework = "beside"
    calls = Path(__file__).with_name("companion_calls.py")

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        has = operator.name.startswith("MaxPool2dWithIndices") and dtype in ("float32", "bfloat16")
        return None if has else "only 2-D pools"

    def accumulation(self, call: Call) -> AccumulationModel:
        return NATIVE
