"""Recipes: named, deterministic ways to fill grad_output, indices and self.

A recipe sees geometry and a `RandomStream` of random numbers derived from the case's seed, never a layout, an index
dtype or a backend: the same case has the same data everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Recipe = TypeVar("_Recipe", bound=Callable[..., Any])


def described(text: str, recipe: _Recipe) -> _Recipe:
    """Make ``text`` the docstring of a recipe that has no ``def``; the reference prints it."""
    recipe.__doc__ = text
    return recipe
