"""In what two records differ, by the first entry that does."""

from __future__ import annotations

from collections.abc import Mapping


def first_difference(name: str, was: object, now: object) -> tuple[str, object, object] | None:
    """The words that lead to it and what stands there in each record, None where they are equal."""
    if was == now:
        return None
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        key = next(key for key in (*was, *now) if was.get(key) != now.get(key))
        return first_difference(f"{name} {key}", was.get(key), now.get(key))
    return name, was, now
