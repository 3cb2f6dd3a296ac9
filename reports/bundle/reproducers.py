"""How to see a failing case again: the smallest case that shows it, and the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def smallest_case(row: Mapping[str, Any]) -> str:
    """The case that shows the failure of a row: the shrunk one where there is one."""
    shrunk = row.get("shrunk")
    return shrunk if isinstance(shrunk, str) and shrunk else row["case"]


def replay_line(row: Mapping[str, Any]) -> str:
    """The command that judges the case again."""
    return f"poolproof replay --backend {shlex.quote(row['backend'])} {shlex.quote(smallest_case(row))}"
