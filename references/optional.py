"""Optional parts of the suite. No module imports one; callers name what it adds as ``module:attribute``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def is_installed(place: str) -> bool:
    """Tell whether the module of a ``place`` is installed, without an import if its file is in this package."""
    module = place.partition(":")[0]
    path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def optional(place: str) -> Any:
    """Import the attribute that ``place`` names; return None if that part of the suite is not installed."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute) if is_installed(module) else None
