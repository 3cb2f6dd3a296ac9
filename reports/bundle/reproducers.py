"""How to see a failing case again: the command line, and a script that needs nothing of this project."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def smallest_case(row: Mapping[str, Any]) -> str:
    """The case that shows the failure of a row: the shrunk one where there is one."""
    shrunk = row.get("shrunk")
    return shrunk if isinstance(shrunk, str) and shrunk else row["case"]


def replay_line(row: Mapping[str, Any]) -> str:
    """The command that judges the case again."""
    return f"poolproof replay --backend {shlex.quote(row['backend'])} {shlex.quote(smallest_case(row))}"


def evidence_script() -> str:
    """A script that judges the evidence beside it again, with numpy alone."""
    return files("poolproof.reports.rows").joinpath("rejudge.py").read_text(encoding="utf-8")
