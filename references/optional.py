"""Optional parts of the suite: nothing imports one; who offers what it adds names it by ``module:attribute``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def is_installed(place: str) -> bool:
    """Tell whether the module of a ``place`` is here; nothing is imported where its file lies beside this room."""
    module = place.partition(":")[0]
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def optional(place: str) -> Any:
    """Import what a ``place`` names; None where that part of the suite is not installed."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute) if is_installed(module) else None
