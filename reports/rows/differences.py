"""First difference of two records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)


def first_difference(name: str, was: object, now: object) -> tuple[str, object, object] | None:
    """Return the path that leads to it and the value there in each record; None where they are equal."""
    if was == now:
        return None
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        key = first_key(was, now)
        return first_difference(f"{name} {key}", was.get(key), now.get(key))
    return name, was, now


def first_key(was: Mapping[K, Any], now: Mapping[K, Any]) -> K | None:
    """Return the first key whose values differ; None where there is none."""
    return next((key for key in (*was, *now) if was.get(key) != now.get(key)), None)
