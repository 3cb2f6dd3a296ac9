"""Rows as tables: verdicts per operator, dtype and aspect, failures, and where each check was judged.

Everything takes and returns pandas; nothing prints.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from poolproof.reports.store import read_rows
from poolproof.reports.verdicts import FAILED, JUDGED, SKIPPED, Verdict


def load(folder: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """The rows of a run as a frame. `NotARun` if the folder is none."""
    return read_rows(folder, columns).to_pandas()


def verdict_counts(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Per group the number of cases judged, failed, waived and skipped, in order of appearance of the verdicts.

    Index: the columns ``by``. Columns: judged, conforms, violates (crashes and time-outs included), waived,
    refused, skipped.
    """
    verdicts = rows["verdict"]
    flags = pd.DataFrame(
        {
            "judged": verdicts.isin(JUDGED),
            "conforms": verdicts == Verdict.CONFORMS,
            "violates": verdicts.isin(FAILED),
            "waived": verdicts == Verdict.WAIVED,
            "refused": verdicts == Verdict.REFUSED,
            "skipped": verdicts.isin(SKIPPED),
        }
    )
    return pd.concat([rows[by], flags], axis=1).groupby(by, sort=True, dropna=False).sum()


def verdict_matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts of `verdict_counts` per (backend, operator, dtype, index_dtype, aspect)."""
    return verdict_counts(rows, ["backend", "operator", "dtype", "index_dtype", "aspect"])


def skip_reasons(rows: pd.DataFrame) -> pd.Series:
    """How many cells or cases were not judged, per (backend, verdict, reason), most first."""
    skipped = rows[rows["verdict"].isin(SKIPPED)]
    return skipped.groupby(["backend", "verdict", "reason"]).size().sort_values(ascending=False)


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """Failed rows, one per (backend, operator, verdict, violated checks): the smallest, with how many there are."""
    failed = rows[rows["verdict"].isin(FAILED)].copy()
    if failed.empty:
        return failed.assign(cases=pd.Series(dtype="int64"))
    failed["violated"] = failed["checks_violated"].map(lambda checks: ", ".join(checks if checks is not None else []))
    kind = ["backend", "operator", "verdict", "violated"]
    failed["cases"] = failed.groupby(kind)["case_id"].transform("size")
    failed["has_shrunk"] = failed["shrunk"].notna()
    ordered = failed.sort_values(["has_shrunk", "elements"], ascending=[False, True])
    return ordered.drop_duplicates(kind).sort_values("cases", ascending=False)


def check_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Per check the number of cases it judged and the number it found violated, waived ones apart."""
    judged = rows["checks_judged"].explode().value_counts()
    violated = rows.loc[rows["verdict"].isin(FAILED), "checks_violated"].explode().value_counts()
    waived = rows.loc[rows["verdict"] == Verdict.WAIVED, "checks_violated"].explode().value_counts()
    table = pd.DataFrame({"judged": judged, "violated": violated, "waived": waived}).fillna(0).astype(int)
    table.index.name = "check"
    return table.sort_index()
