"""Recipes: named, deterministic ways to fill grad_output, indices and self.

A recipe sees geometry and a `RandomStream` of random numbers derived from the case's seed, never a layout, an index
dtype or a backend: the same case has the same data everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolproof.suites.cases.recipes.gradients import GRADIENTS, OF_SELF
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.values import VALUES

RECIPES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "gradient": GRADIENTS | OF_SELF,
    "indices": INDICES,
    "values": VALUES,
}
"""Recipe functions by the field of `Case` that names them; values and gradients have `spreads`, too."""
