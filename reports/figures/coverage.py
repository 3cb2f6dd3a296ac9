"""Coverage: the mandatory groups of a run against its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from poolproof.reports.rows.store import having
from poolproof.reports.rows.verdicts import JUDGED, SKIPPED, Verdict

NEVER_ASKED = "never asked"
"""Reason for a case without a row."""

COUNTS = ("planned", "judged", "refused", "missing", "because")
"""Columns of a coverage table besides those that identify the groups."""

_IS_COUNTED = having("verdict", JUDGED | SKIPPED)

MandatoryGroup = Mapping[str, Any]
"""A mandatory group: columns with the value that its rows have, and ``planned``, how many of them there are."""

Key = tuple[Any, ...]
"""The values of a group's columns."""


def group_columns(mandatory: Sequence[MandatoryGroup]) -> list[str]:
    """Return the columns that identify the mandatory groups."""
    return list(dict.fromkeys(name for group in mandatory for name in group if name != "planned"))


def coverage(rows: pa.Table, mandatory: Sequence[MandatoryGroup]) -> pd.DataFrame:
    """Count per group the cases ``judged``, ``missing`` and ``refused``, with the commonest reason (``because``).

    ``refused`` counts, of those missing, the refusals that no document allows.
    """
    by_columns: dict[tuple[str, ...], list[MandatoryGroup]] = {}
    for group in mandatory:
        by_columns.setdefault(tuple(group_columns([group])), []).append(group)
    parts = [_coverage(rows, list(columns), groups) for columns, groups in by_columns.items()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COUNTS)


def _coverage(rows: pa.Table, columns: list[str], groups: list[MandatoryGroup]) -> pd.DataFrame:
    """Count the groups that the same columns identify."""
    counted = rows.filter(_IS_COUNTED).group_by([*columns, "verdict", "reason"]).aggregate([([], "count_all")])
    judged, refused, reasons = Counter[Key](), Counter[Key](), defaultdict[Key, Counter[str | None]](Counter)
    for row in counted.to_pylist():
        key, number = tuple(row[name] for name in columns), row["count_all"]
        if row["verdict"] in JUDGED:
            judged[key] += number
        else:
            refused[key] += number if row["verdict"] == Verdict.UNDOCUMENTED else 0
            reasons[key][row["reason"]] += number
    lines = []
    for group in groups:
        key = tuple(group[name] for name in columns)
        missing = max(group["planned"] - judged[key], 0)
        reason = _commonest(reasons[key]) if missing else ""
        lines.append({**group, "judged": judged[key], "refused": refused[key], "because": reason, "missing": missing})
    return pd.DataFrame(lines)


def _commonest(reasons: Mapping[str | None, int]) -> str:
    """Return the commonest reason, of equally common ones the first of the alphabet; rows may have none."""
    commonest = min(reasons, key=lambda reason: (-reasons[reason], reason is None, reason), default=None)
    return NEVER_ASKED if commonest is None else commonest
