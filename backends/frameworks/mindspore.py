"""MindSpore on the CPU: all pools with indices, forward and backward, in an environment of its own.

It needs numpy below 2, so that a companion makes its calls. Indices count cells of the plane, in either dtype.
"""

from __future__ import annotations

from pathlib import Path

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.backends.frameworks.companion import CompanionBackend
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive


class MindSpore(CompanionBackend):
    framework = "mindspore"
    calls = Path(__file__).with_name("mindspore_calls.py")
    without = Abilities(empty_batch=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if not operator.aten:
            return "MindSpore has no such operator"
        if dtype not in ("float64", "float32", "float16"):
            return "MindSpore has no kernel for this dtype on the CPU"
        if operator.windows is Adaptive and not operator.is_backward:
            made = "int64" if operator.spatial_rank == 2 else "int32"
            return None if index_dtype == made else f"MindSpore gives {made} indices there"
        return None

    def accumulation(self, call: Call) -> AccumulationModel:
        """Declare what the probe found: its threads flush, but for float16, whose arithmetic is emulated."""
        if call.dtype != "float16":
            return AccumulationModel("acc32", flushes_subnormals=True)
        is_wide = call.operator.windows is Adaptive and call.operator.spatial_rank == 3
        return ACC32 if is_wide else NATIVE

    def forward_rule(self, call: Call) -> ForwardRule:
        if call.operator.windows is Adaptive:
            return ForwardRule(nans=Nans.LEADING, flushes_subnormals=call.dtype != "float16")
        return ForwardRule(nans=Nans.IGNORED) if call.operator.spatial_rank == 2 else FAMILY_RULE
