"""Recipes: named, deterministic ways to fill grad_output, indices and self.

A recipe sees geometry and a `RandomStream` from the case's seed, but no layout, index dtype or backend. So the same
case has the same data everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Recipe = TypeVar("_Recipe", bound=Callable[..., Any])


def described(text: str, recipe: _Recipe) -> _Recipe:
    """Set the docstring of a recipe without a ``def`` to ``text``; the reference prints it."""
    recipe.__doc__ = text
    return recipe
