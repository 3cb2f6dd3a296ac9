"""Whether everything that had to be judged was: the mandatory cells of a run against its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.tables import WAS_SKIPPED
from poolproof.reports.rows.verdicts import JUDGED

NEVER_ASKED = "never asked"
"""Why a case was not judged when no row says so."""

COUNTS = ("planned", "judged", "missing", "because")
"""Columns of a coverage table besides those that tell the cells apart."""

_WAS_JUDGED = pc.field("verdict").isin([str(verdict) for verdict in sorted(JUDGED)])

Cell = Mapping[str, Any]
"""A mandatory cell: columns with the value that rows of the cell have, and ``planned``, how many of them there are."""


def cell_columns(mandatory: Sequence[Cell]) -> list[str]:
    """The columns that the cells are told apart by."""
    return list(dict.fromkeys(name for cell in mandatory for name in cell if name != "planned"))


def coverage(rows: pa.Table, mandatory: Sequence[Cell]) -> pd.DataFrame:
    """The cells with how many cases were ``judged`` and are ``missing``, and the commonest reason (``because``)."""
    by_columns: dict[tuple[str, ...], list[Cell]] = {}
    for cell in mandatory:
        by_columns.setdefault(tuple(cell_columns([cell])), []).append(cell)
    parts = [_coverage(rows, list(columns), pd.DataFrame(cells)) for columns, cells in by_columns.items()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COUNTS)


def _coverage(rows: pa.Table, columns: list[str], cells: pd.DataFrame) -> pd.DataFrame:
    judged = rows.filter(_WAS_JUDGED).group_by(columns).aggregate([([], "count_all")]).to_pandas()
    reasons = rows.filter(WAS_SKIPPED).group_by([*columns, "reason"]).aggregate([([], "count_all")]).to_pandas()
    commonest = reasons.sort_values(["count_all", "reason"], ascending=[False, True]).drop_duplicates(columns)
    cells = cells.merge(judged.rename(columns={"count_all": "judged"}), on=columns, how="left")
    cells = cells.merge(commonest[[*columns, "reason"]].rename(columns={"reason": "because"}), on=columns, how="left")
    cells["judged"] = cells["judged"].fillna(0).astype("int64")
    cells["missing"] = (cells["planned"] - cells["judged"]).clip(lower=0)
    cells["because"] = cells["because"].fillna(NEVER_ASKED).where(cells["missing"] > 0, "")
    return cells
