"""From the names a person types to backends: the built-in ones, installed plugins and ``module:attribute``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points

from poolproof.backends.base import Backend

ENTRY_POINT_GROUP = "poolproof.backends"

_BUILT_IN = {
    "torch-cpu": "poolproof.backends.torch_eager:cpu",
    "torch-cuda": "poolproof.backends.torch_eager:cuda",
    "torch-npu": "poolproof.backends.torch_eager:npu",
    "aclnn": "poolproof.backends.aclnn.backend:npu",
    "emulator-a2": "poolproof.backends.emulator.backend:a2",
    "emulator-a3": "poolproof.backends.emulator.backend:a3",
    "emulator-950": "poolproof.backends.emulator.backend:ascend_950",
    "emulator-910": "poolproof.backends.emulator.backend:ascend_910",
    "emulator-310p": "poolproof.backends.emulator.backend:ascend_310p",
    "emulator-310b": "poolproof.backends.emulator.backend:ascend_310b",
}


class UnknownBackend(Exception):
    """No backend of that name; the text lists those there are."""


def names() -> list[str]:
    """Every backend that can be named here, whether or not it can run."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))})


def create(name: str) -> Backend:
    """A fresh backend; `UnknownBackend` or `BackendUnavailable` with one clear sentence otherwise."""
    return _factory(name)()


def check_name(name: str) -> None:
    """Raise `UnknownBackend` unless ``name`` can be created in principle; imports nothing heavy."""
    if ":" not in name and name not in names():
        raise UnknownBackend(
            f"unknown backend {name!r}: choose from {', '.join(names())}, or name your own as module:attribute"
        )


def _factory(name: str) -> Callable[[], Backend]:
    check_name(name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return point.load()
    module, _, attribute = _BUILT_IN.get(name, name).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownBackend(f"backend {name!r} cannot be loaded: {error}") from error
