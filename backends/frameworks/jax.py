"""JAX on the CPU: the gradient of a maximum over windows, which finds the maxima itself.

``reduce_window`` with ``max`` has no indices; its gradient selects and scatters (``select_and_scatter_add``). Each new
shape is compiled.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call
from poolproof.backends.frameworks.copying import FLUSHED_SUMS, ArrayCall, CopyingBackend
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Windowed

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import jax
from jax import lax

_OP_BY_OP = "op by op"


class Jax(CopyingBackend):
    packages = (jax,)
    variants = (_OP_BY_OP,)
    without = Abilities(dilation=False, ceil_mode=False, indices=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        if not (operator.is_backward and operator.windows is Windowed and operator.aten):
            return "JAX has only gradients of maxima over windows"
        return None if index_dtype == "int64" else "JAX gets no indices: one dtype of them is enough"

    def backward(self, call: ArrayCall) -> NDArray:
        padding = ((0, 0), (0, 0), *((before, before) for before in call.padding))
        windows = (1, 1, *call.kernel_size), (1, 1, *call.stride), padding
        with jax.disable_jit(call.mode == _OP_BY_OP):
            return np.asarray(self.invoke(_gradient, call.values, call.gradient, windows))

    def accumulation(self, call: Call) -> AccumulationModel:
        return FLUSHED_SUMS[call.dtype]

    def forward_rule(self, call: Call) -> ForwardRule:
        """Return a rule in which NaN yields: ``select_and_scatter`` keeps a selection that is ``ge``, false for NaN."""
        return ForwardRule(nans=Nans.YIELDING, flushes_subnormals=call.dtype != "float16")


@partial(jax.jit, static_argnums=2)
def _gradient(values: jax.Array, gradient: jax.Array, windows: tuple[tuple[Any, ...], ...]) -> jax.Array:
    """Return the gradient of the maxima; ``windows`` are sizes, strides and padding of `lax.reduce_window`."""
    least = np.array(-np.inf, values.dtype)
    _, pull = jax.vjp(lambda given: lax.reduce_window(given, least, lax.max, *windows), values)
    (derivative,) = pull(gradient)
    return derivative
