"""Optional parts that an option or a command needs."""

from __future__ import annotations

from typing import Any

from poolproof.references.optional import is_installed, optional
from poolproof.reports.rows.verdicts import BadInput


def part(place: str) -> Any:
    """Import ``place``, as module:attribute; raise `BadInput` if that part of poolproof is not installed."""
    if not is_installed(place):
        raise BadInput(f"{place.partition(':')[0]} is a part of poolproof that is not installed here: install it whole")
    return optional(place)
