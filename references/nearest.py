"""The sentence about a name that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is unknown, which known one may have been meant, and which there are."""
    near = get_close_matches(name, names := list(known), 1, 0.52)
    return f"unknown {what} {name!r}{f' (did you mean {near[0]}?)' if near else ''}; known are {', '.join(names)}"
