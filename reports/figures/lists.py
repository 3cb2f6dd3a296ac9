"""What a run says about the case lists that it was given: verdicts beside the lists' own standards, and whether the
data of each tensor are those that the list promises.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import FAILED, JUDGED, Verdict

_COLUMNS = (
    *("backend", "verdict", "list", "list_row", "list_standard", "list_standard_passes"),
    *("list_promised", "list_made"),
)
_MOST_NAMED = 2


def listed_rows(folder: Path) -> pd.DataFrame:
    """The rows of a run that are those of case lists."""
    return read_rows(folder, list(_COLUMNS), pc.field("list").is_valid()).to_pandas()


def standings(rows: pd.DataFrame) -> pd.DataFrame:
    """Per backend, list and standard: rows, judged, conforms, violates, waived, refused (as documented); what the
    standard passes and fails of the judged; where it passes what violates (``missed``) or fails what conforms
    (``accused``).
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


def honesty(rows: pd.DataFrame) -> pd.DataFrame:
    """Per backend, list and tensor: ``rows`` that promise data, ``kept`` where these are made, ``broken`` where others
    are; ``instead``, what is made then, and ``promised``, what was promised, the commonest first.
    """
    lines = [
        {"backend": backend, "list": name, "tensor": tensor, "promised": promised, "made": made}
        for backend, name, all_promised, all_made in zip(
            rows["backend"], rows["list"], rows["list_promised"], rows["list_made"], strict=True
        )
        if all_promised is not None
        for (tensor, promised), (_, made) in zip(map(_parted, all_promised), map(_parted, all_made), strict=True)
    ]
    columns = ["backend", "list", "tensor", "rows", "kept", "broken", "instead", "promised"]
    if not lines:
        return pd.DataFrame(columns=columns)
    told = pd.DataFrame(lines)
    groups = told.groupby(["backend", "list", "tensor"], sort=False)
    return pd.DataFrame([dict(zip(groups.keys, key, strict=True)) | _kept(group) for key, group in groups])[columns]


def _kept(group: pd.DataFrame) -> dict[str, object]:
    broken = group[group["promised"] != group["made"]]
    told = {"rows": len(group), "kept": len(group) - len(broken), "broken": len(broken)}
    return told | {"instead": _commonest(broken["made"]), "promised": _commonest(broken["promised"])}


def _parted(text: str) -> tuple[str, str]:
    tensor, _, what = text.partition(": ")
    return tensor, what


def _commonest(texts: pd.Series) -> str:
    counts = texts.value_counts(sort=False).sort_values(ascending=False, kind="stable")
    more = len(counts) - _MOST_NAMED
    named = "; ".join(map(str, counts.index[:_MOST_NAMED]))
    return named + (f" and {more:,} more" if more > 0 else "")
