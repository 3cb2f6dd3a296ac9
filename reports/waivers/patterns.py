"""Patterns of a waiver: shell-style ones of texts, and bounds of numbers such as ``>= 50000``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

Patterns = Mapping[str, tuple[str, ...]]
"""Name -> patterns of which its value must match one."""

_BOUND = re.compile(r"(<=|>=|<|>) *(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def matches(patterns: Patterns, values: Mapping[str, Any]) -> bool:
    """Return whether every name's value matches."""
    return all(matches_any(values.get(name), choices) for name, choices in patterns.items())


def matches_any(value: Any, patterns: Sequence[str]) -> bool:
    """Return whether a value lies within one of the bounds, or its text, empty for None, matches another pattern."""
    text = "" if value is None else str(value)
    return any(fnmatchcase(text, pattern) or _within(value, pattern) for pattern in patterns)


def bound(pattern: str) -> tuple[Callable[[float, float], bool], float] | None:
    """Return (comparison, limit) of a bound, None of any other pattern; ValueError for a malformed bound."""
    if not pattern.startswith(("<", ">")):
        return None
    found = _BOUND.fullmatch(pattern)
    if found is None:
        raise ValueError(f'{pattern!r} is no bound like ">= 50000"')
    return _COMPARISONS[found[1]], float(found[2])


def _within(value: Any, pattern: str) -> bool:
    if type(value) not in (int, float):
        return False
    parts = bound(pattern)
    return parts is not None and parts[0](value, parts[1])
