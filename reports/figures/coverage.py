"""Whether everything that had to be judged was: the mandatory groups of a run against its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from poolproof.reports.figures.tables import WAS_SKIPPED
from poolproof.reports.rows.store import having
from poolproof.reports.rows.verdicts import JUDGED, Verdict

NEVER_ASKED = "never asked"
"""Why a case was not judged when no row says so."""

COUNTS = ("planned", "judged", "refused", "missing", "because")
"""Columns of a coverage table besides those that tell the groups apart."""

_WAS_JUDGED = having("verdict", JUDGED)
_UNDOCUMENTED = having("verdict", [Verdict.UNDOCUMENTED])

Owed = Mapping[str, Any]
"""A mandatory group: columns with the value that its rows have, and ``planned``, how many of them there are."""


def told_apart_by(mandatory: Sequence[Owed]) -> list[str]:
    """The columns that the mandatory groups are told apart by."""
    return list(dict.fromkeys(name for owed in mandatory for name in owed if name != "planned"))


def coverage(rows: pa.Table, mandatory: Sequence[Owed]) -> pd.DataFrame:
    """The groups with how many cases were ``judged`` and are ``missing``, and the commonest reason (``because``).

    ``refused`` counts, of those missing, the refusals that no document allows.
    """
    by_columns: dict[tuple[str, ...], list[Owed]] = {}
    for owed in mandatory:
        by_columns.setdefault(tuple(told_apart_by([owed])), []).append(owed)
    parts = [_coverage(rows, list(columns), pd.DataFrame(groups)) for columns, groups in by_columns.items()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COUNTS)


def _coverage(rows: pa.Table, columns: list[str], groups: pd.DataFrame) -> pd.DataFrame:
    reasons = rows.filter(WAS_SKIPPED).group_by([*columns, "reason"]).aggregate([([], "count_all")]).to_pandas()
    commonest = reasons.sort_values(["count_all", "reason"], ascending=[False, True]).drop_duplicates(columns)
    for name, which in (("judged", _WAS_JUDGED), ("refused", _UNDOCUMENTED)):
        counts = rows.filter(which).group_by(columns).aggregate([([], "count_all")]).to_pandas()
        groups = groups.merge(counts.rename(columns={"count_all": name}), on=columns, how="left")
        groups[name] = groups[name].fillna(0).astype("int64")
    groups = groups.merge(commonest[[*columns, "reason"]].rename(columns={"reason": "because"}), on=columns, how="left")
    groups["missing"] = (groups["planned"] - groups["judged"]).clip(lower=0)
    groups["because"] = groups["because"].fillna(NEVER_ASKED).where(groups["missing"] > 0, "")
    return groups
