"""Calls that were only refused, though no document says that they may be: per class of calls, and in words."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.rows.store import having
from poolproof.reports.rows.verdicts import JUDGED, Verdict

ALL_CALLS = "every call"
"""The class of a line where no call of an operator and dtype ran."""

NEEDED = ("backend", "operator", "dtype", "classes", "verdict", "reason")
"""Columns that `never_run` needs."""

_SUBJECT = ["backend", "operator", "dtype"]
_UNDOCUMENTED = pc.field("verdict") == str(Verdict.UNDOCUMENTED)
_WAS_CALLED = having("verdict", JUDGED | {Verdict.UNDOCUMENTED})
_MAX_NAMED = 3


def never_run(rows: pa.Table) -> pd.DataFrame:
    """Return the classes of calls of which some were refused undocumented and none ran.

    Columns: backend, operator, dtype, class (`ALL_CALLS` where nothing of the dtype ran, which then stands for all of
    its classes), refused, because (the commonest reason). A class of which nothing was drawn is in no line.
    """
    judged = rows.filter(_WAS_CALLED).select(NEEDED)
    if not judged.filter(_UNDOCUMENTED).num_rows:
        return pd.DataFrame(columns=[*_SUBJECT, "class", "refused", "because"])
    by_class = _by_class(judged.to_pandas()).groupby([*_SUBJECT, "class"])
    commonest = ("reason", lambda reasons: str(next(iter(reasons.mode()), "")))
    lines = by_class.agg(ran=("ran", "sum"), refused=("refused", "sum"), because=commonest).reset_index()
    lines = lines[(lines["ran"] == 0) & (lines["refused"] > 0)].drop(columns="ran")
    return _without_covered(lines).sort_values("refused", ascending=False, kind="stable", ignore_index=True)


def _by_class(judged: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each case and class of it, with whether it ``ran`` or was ``refused`` undocumented."""
    is_refused = judged["verdict"] == Verdict.UNDOCUMENTED
    classes = [[ALL_CALLS, *(() if words is None else words)] for words in judged["classes"]]
    ran = ~is_refused & (judged["verdict"] != Verdict.REFUSED)
    reasons = judged["reason"].where(is_refused)
    counted = judged.assign(refused=is_refused, ran=ran, reason=reasons)
    counted["class"] = classes
    return counted.explode("class", ignore_index=True)


def _without_covered(lines: pd.DataFrame) -> pd.DataFrame:
    """Drop the classes of what never ran at all: one line covers them."""
    entirely = pd.MultiIndex.from_frame(lines.loc[lines["class"] == ALL_CALLS, _SUBJECT])
    is_covered = pd.MultiIndex.from_frame(lines[_SUBJECT]).isin(entirely) & (lines["class"] != ALL_CALLS)
    return lines[~is_covered]


def named(never: pd.DataFrame) -> str:
    """Describe the first lines, those of an operator's dtypes together; empty where there are none."""
    together: dict[str, set[str]] = {}
    for operator, dtype, what in zip(never["operator"], never["dtype"], never["class"], strict=True):
        together.setdefault(f"{what} of {operator}", set()).add(dtype)
    texts = [f"{what} ({', '.join(sorted(dtypes))})" for what, dtypes in together.items()]
    more = len(texts) - _MAX_NAMED
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
