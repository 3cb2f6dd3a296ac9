"""JAX on the CPU: the gradient of a maximum over windows, which finds the maxima itself.

``reduce_window`` with ``max`` has no indices; its gradient selects and scatters (``lax.select_and_scatter_add``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import BackendUnavailable, Call
from poolproof.backends.frameworks.copying import CopyingBackend, Question
from poolproof.references.forward_rule import ForwardRule, Nans
from poolproof.references.operators import Operator
from poolproof.references.windows import Windowed

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as error:
    raise BackendUnavailable("JAX is not installed: pip install 'poolproof[jax]'") from error


class Jax(CopyingBackend):
    without = Abilities(dilation=False, ceil_mode=False, indices=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:  # noqa: ARG002
        if not (operator.is_backward and operator.windows is Windowed and operator.aten):
            return "JAX has gradients of maxima over windows alone"
        return None if index_dtype == "int64" else "no indices are given to JAX: one dtype of them is enough"

    def backward(self, question: Question) -> NDArray:
        return np.asarray(self.ask(_gradient, question))

    def forward_rule(self, call: Call) -> ForwardRule:  # noqa: ARG002
        """``select_and_scatter`` keeps what it selected while that is ``ge``, which no NaN is, and nothing to NaN."""
        return ForwardRule(nans=Nans.YIELDING)

    def environment(self) -> Mapping[str, str]:
        return {"jax": jax.__version__}


def _gradient(question: Question) -> jax.Array:
    padding = [(0, 0), (0, 0), *((before, before) for before in question.padding)]
    windows = ((1, 1, *question.kernel_size), (1, 1, *question.stride), padding)
    _, pull = jax.vjp(partial(_maxima, windows=windows), jnp.asarray(question.values))
    (gradient,) = pull(jnp.asarray(question.gradient))
    return gradient


def _maxima(values: jax.Array, windows: tuple) -> jax.Array:
    return lax.reduce_window(values, np.array(-np.inf, values.dtype), lax.max, *windows)
