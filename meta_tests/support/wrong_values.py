"""Values that no field of a list expects, and ways to put one anywhere in a row."""

from collections.abc import Iterator
from typing import Any

WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**400, 1.5, 1e308, float("nan"), "", "nan", "x", [], [1, 2], [[1]], {}, ["nan"]),
    *(["-inf", "inf"], [2**40] * 2, {"name": "nd", "mean": ["inf", 1], "std": [0, 1]}, {"x": {"type": [1]}}, "int64"),
    {"name": "nd", "mean": "ab", "std": "ab"},
)


def places(given: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def put(given: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with ``value`` at a place."""
    if not path:
        return value
    changed = dict(given) if isinstance(given, dict) else list(given)
    changed[path[0]] = put(given[path[0]], path[1:], value)
    return changed
