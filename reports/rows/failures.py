"""What a failed row says: what failed, which failures are of the same kind, and the line that shows it again.

Whoever shrinks failures, keeps their evidence or lists "one of each kind" asks here what a kind is.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from poolproof.reports.rows.schema import Row

KIND = ("backend", "operator", "verdict", "violated")
"""Failures that agree in these are of the same kind; ``violated`` is the column that `violated_text` makes."""


def kind_of(row: Row) -> tuple[str, ...]:
    """The values of `KIND` of a failed row."""
    return row["backend"], row["operator"], row["verdict"], violated_text(row["checks_violated"])


def violated_text(checks: Iterable[str] | None) -> str:
    """The names of violated checks as one text; empty for deaths in rows of older suites."""
    return ", ".join(() if checks is None else checks)


def what_failed(row: Row) -> str:
    """The violated checks of a failed row, or how it ended where an older suite named none."""
    return violated_text(row["checks_violated"]) or str(row["verdict"])


def smallest_case(row: Row) -> str:
    """The case that shows the failure of a row: the shrunk one where there is one."""
    shrunk = row.get("shrunk")
    return shrunk if isinstance(shrunk, str) and shrunk else str(row["case"])


def replay_line(row: Row) -> str:
    """The command that judges the case again."""
    return f"poolproof replay --backend {shlex.quote(row['backend'])} {shlex.quote(smallest_case(row))}"
