"""Verdicts on case lists, beside what the lists' own standards say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict

_COLUMNS = ("backend", "verdict", "list", "list_row", "list_standard", "list_standard_passes")


def listed_rows(folder: Path) -> pd.DataFrame:
    return read_rows(folder, list(_COLUMNS), pc.field("list").is_valid()).to_pandas()


def list_results(rows: pd.DataFrame) -> pd.DataFrame:
    """Count per backend, list and standard.

    rows, judged, conforms, violates, waived, refused (as documented); of the judged what the standard passes and fails;
    ``missed``, where it passes what violates, and ``accused``, where it fails what conforms.
    """
    verdicts, passes = rows["verdict"], rows["list_standard_passes"]
    violates = verdicts.isin([*FAILED, Verdict.WAIVED])
    passed, failed = passes.eq(True), passes.eq(False)
    flags = {
        "rows": pd.Series(True, rows.index),
        "judged": verdicts.isin(JUDGED),
        "conforms": verdicts == Verdict.CONFORMS,
        "violates": verdicts.isin(FAILED),
        "waived": verdicts == Verdict.WAIVED,
        "refused": verdicts == Verdict.REFUSED,
        "passed": passed,
        "failed": failed,
        "missed": passed & violates,
        "accused": failed & (verdicts == Verdict.CONFORMS),
    }
    by = ["backend", "list", "list_standard"]
    counted = pd.concat([rows[by].fillna(""), pd.DataFrame(flags).astype(int)], axis=1)
    return counted.groupby(by, as_index=False).sum()
