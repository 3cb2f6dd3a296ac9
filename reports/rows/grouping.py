"""Which rows belong together: those of one square of a verdict matrix, and failures that are taken for one defect.

Whoever counts, shrinks, keeps evidence of or lists failures "one of each kind" asks here what a kind is.
"""

from __future__ import annotations

from collections.abc import Iterable

from poolproof.reports.rows.schema import Row

GROUP = ("backend", "operator", "dtype", "index_dtype", "aspect")
"""Columns that rows of one square of a verdict matrix agree in; what had to be judged is counted per group, too."""

KIND = ("backend", "operator", "verdict", "violated")
"""Failures that agree in these are of the same kind; ``violated`` is the column that `violated_text` makes."""


def violated_text(checks: Iterable[str] | None) -> str:
    """The names of violated checks as one text; empty where a process died instead."""
    return ", ".join(() if checks is None else checks)


def kind_of(row: Row) -> tuple[str, ...]:
    """The values of `KIND` of a failed row."""
    return row["backend"], row["operator"], row["verdict"], violated_text(row["checks_violated"])


def what_failed(row: Row) -> str:
    """The violated checks of a failed row, or how it ended where there are none."""
    return violated_text(row["checks_violated"]) or str(row["verdict"])
