"""Rows as tables: verdicts per group, precision, failures, and the judgements of each check.

Rows are Arrow tables with the needed columns only, because a run may have millions; results are small pandas frames.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.quantities import NEEDED, add_quantities
from poolproof.reports.rows.checks import BESIDE_PLAN, FURTHER_SEED, NARROWING, SEARCH
from poolproof.reports.rows.evidence import file_name
from poolproof.reports.rows.failures import KIND, violated_text
from poolproof.reports.rows.schema import COMBINED, GROUP
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, JUDGED, SKIPPED, BadInput, Verdict

COUNTED = (*GROUP, "product", "verdict", "reason", "checks_judged", "checks_violated", "waivers", "call_seconds")
"""Columns that the counts of this module need."""

_ENDINGS: Mapping[str, Collection[Verdict]] = {
    "judged": JUDGED,
    "conforms": {Verdict.CONFORMS},
    "violates": FAILED,
    "crashed": FAILED - {Verdict.VIOLATES},
    "waived": {Verdict.WAIVED},
    "refused": {Verdict.REFUSED},
    "undocumented": {Verdict.UNDOCUMENTED},
    "skipped": SKIPPED - {Verdict.UNDOCUMENTED},
    "suite_errors": {Verdict.SUITE_ERROR},
    "adapter_errors": {Verdict.ADAPTER_ERROR},
}
COUNTS = tuple(_ENDINGS)

DISJOINT = ("judged", "undocumented", "skipped", "suite_errors", "adapter_errors")
"""The counts that include each row once."""

_ASPECT_ORDER = ("values", "precision", "special_values", "layouts", "determinism", "scale")

HAS_FAILED = having("verdict", FAILED)
_ASPECT, _BLOCK = (pc.coalesce(pc.field(name), pc.scalar("")) for name in ("aspect", "block"))

COUNTED_CASES = ~_ASPECT.isin(list(NARROWING))
"""Filter for all rows except further cases, which repeat the failures of others."""

DRAWN_AGAIN = ~_ASPECT.isin(list(BESIDE_PLAN))
"""Filter for the rows of cases that follow from plan and seed; other cases are known from their own line only."""

FURTHER = pc.match_substring_regex(_BLOCK, FURTHER_SEED) | (_ASPECT == SEARCH)
"""Filter for the cases of further seeds and of the search, which no plan counts."""

CONFORMS = pc.field("verdict") == str(Verdict.CONFORMS)
WAS_SKIPPED = having("verdict", SKIPPED)


Record = dict[str, Any]
"""One line of a frame; missing values are None."""


def load(folder: Path, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pd.DataFrame:
    """Read rows of a run as a frame; raise `NotARun` if the folder is none."""
    return read_rows(folder, columns, where).to_pandas()


def counts(rows: pa.Table, by: Sequence[str] = GROUP) -> pd.DataFrame:
    """Return the numbers of cases per group and ending. Index: the columns ``by``. Columns: `COUNTS`."""
    counted = rows.group_by([*by, "verdict"], use_threads=False).aggregate([([], "count_all")]).to_pandas()
    verdicts, number = counted["verdict"], counted["count_all"]
    columns = pd.DataFrame({name: verdicts.isin(among) * number for name, among in _ENDINGS.items()})
    return pd.concat([counted[list(by)], columns], axis=1).groupby(list(by), dropna=False).sum()


def records(frame: pd.DataFrame) -> list[Record]:
    """Return the lines of a frame, without its index."""
    lines = frame.to_numpy(object, na_value=None).tolist()  # type: ignore[arg-type]
    return [dict(zip(frame.columns, line, strict=True)) for line in lines]


def spreadsheet(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame for CSV, with no text that is a formula or that controls a terminal."""
    return frame.apply(lambda column: column if pd.api.types.is_numeric_dtype(column) else column.map(_as_text))


def _as_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "'" * value.startswith(("=", "+", "-", "@", "\t", "\r")) + visible(value)


def total(lines: Iterable[Record], names: Iterable[str]) -> Record:
    counted = list(lines)
    return {name: sum(line[name] for line in counted) for name in names}


def matrix_lines(counted: pd.DataFrame) -> dict[tuple[str, ...], dict[str, Record]]:
    """Arrange the verdict counts per `GROUP` as lines of a matrix, with a square per aspect."""
    lines = defaultdict[tuple[str, ...], dict[str, Record]](dict)
    for record in records(counted.reset_index()):
        *line, aspect = (record.pop(name) for name in GROUP)
        lines[tuple(line)][aspect] = record
    return lines


def aspects_in_order(counted: pd.DataFrame) -> list[str]:
    """Return the aspects of a table of counts, the best known first."""
    present = list(counted.index.unique("aspect"))
    return [*(aspect for aspect in _ASPECT_ORDER if aspect in present), *sorted(set(present) - set(_ASPECT_ORDER))]


def products(rows: pa.Table) -> dict[str, str]:
    """Return the NPU product of each backend; a case that killed its process does not know it."""
    pairs = rows.group_by(["backend", "product"], use_threads=False).aggregate([]).to_pylist()
    known = {pair["backend"]: pair["product"] for pair in pairs if pair["product"]}
    return {pair["backend"]: known.get(pair["backend"], "") for pair in pairs}


def given(folder: Path) -> dict[str, list[str]]:
    """Return the variables and options of each backend's judgements, as a shell reads them."""
    rows = read_rows(folder, ["backend", "given"], pc.field("given").is_valid())
    words = pa.table({"backend": rows["backend"], "given": pc.binary_join(rows["given"], "\0")})
    by_backend = defaultdict[str, list[str]](list)
    for row in words.group_by(["backend", "given"], use_threads=False).aggregate([]).to_pylist():
        by_backend[row["backend"]].append(shlex.join(row["given"].split("\0")))
    return {backend: sorted(texts) for backend, texts in by_backend.items()}


def skip_reasons(rows: pa.Table) -> pd.DataFrame:
    """Return the numbers of groups or cases that were not judged, by backend, verdict and reason, most first.

    `conclusion.never_run`, or the group that misses them, has the refusals. Reasons of unreadable list rows are counted
    without the row: thousands of rows may have the same.
    """
    skipped_rows = rows.filter(WAS_SKIPPED & (pc.field("verdict") != str(Verdict.UNDOCUMENTED)))
    reasons = pc.replace_substring_regex(skipped_rows["reason"], r"^row \d+ of .*? \(.*?\): ", "")
    skipped_rows = skipped_rows.set_column(skipped_rows.column_names.index("reason"), "reason", reasons)
    skipped = skipped_rows.group_by(["backend", "verdict", "reason"], use_threads=False)
    counts = skipped.aggregate([([], "count_all")]).to_pandas().rename(columns={"count_all": "count"})
    return counts.sort_values(["count", "reason"], ascending=[False, True], ignore_index=True)


def commonest_reasons(rows: pa.Table, by: Sequence[str]) -> dict[tuple[Any, ...], str]:
    """Return the commonest reason why rows were not judged, by the values of the columns ``by``.

    Equally common ones are chosen by the alphabet. Groups without a reason are left out.
    """
    skipped = rows.filter(WAS_SKIPPED & pc.field("reason").is_valid()).group_by([*by, "reason"], use_threads=False)
    counted = skipped.aggregate([([], "count_all")]).sort_by([("count_all", "ascending"), ("reason", "descending")])
    return {tuple(row[name] for name in by): row["reason"] for row in counted.to_pylist()}  # the last one stays


def check_counts(rows: pa.Table) -> pd.DataFrame:
    """Return the numbers of cases that each check judged and found violated, waived ones separately."""
    waived = rows.filter(pc.field("verdict") == str(Verdict.WAIVED))
    columns = {
        "judged": _word_counts(rows["checks_judged"]),
        "violated": _word_counts(rows.filter(HAS_FAILED)["checks_violated"]),
        "waived": _word_counts(waived["checks_violated"]),
    }
    return pd.DataFrame(columns).fillna(0).astype(int).rename_axis("check").sort_index()


def precision(rows: pa.Table, by: Sequence[str]) -> pd.DataFrame:
    """Combine the precision of the conforming rows: every column that combines, and the `QUANTITIES`.

    Deviating rows are left out: one garbage cell would hide all others, and their verdict reports it.
    """
    judged = add_quantities(rows.filter(CONFORMS & (pc.field("n") > 0)))
    aggregations = COMBINED | {"largest_error": "max", "outward": "sum", "inexact": "sum"}
    combined = judged.group_by(list(by), use_threads=False).aggregate(list(aggregations.items())).to_pandas()
    combined = combined.rename(columns={f"{name}_{function}": name for name, function in aggregations.items()})
    combined["bias_ulp"] = combined.pop("outward") / combined.pop("inexact")
    combined["exact_share"] = 100.0 * combined["n_bitexact"] / combined["n"]
    combined["single_valued_share"] = 100.0 * combined["n_single_valued"] / combined["n"]
    return combined.set_index(list(by)).sort_index()


PRECISION = tuple(dict.fromkeys(("verdict", *COMBINED, *NEEDED)))
"""Columns that `precision` needs besides those it groups by."""


def failures(folder: Path, kind: Sequence[str] = KIND) -> pd.DataFrame:
    """Return failed rows, one per ``kind``: shrunk, repeated ones with evidence first, then the smallest.

    ``cases`` is the size of its kind, ``violated`` the names of the checks. Further cases are left out.
    """
    wanted = [*GROUP, "verdict", "case_id", "elements", "shrunk", "asked_again", "checks_violated"]
    failed = with_violated(load(folder, wanted, HAS_FAILED & COUNTED_CASES))
    key = ["backend", "aspect", "case_id"]
    kinds = failed.groupby(list(kind))
    failed["cases"] = kinds["case_id"].transform("size")
    failed["grown"], failed["once"] = failed["shrunk"].isna(), failed["asked_again"].isna()
    left = {path.stem for path in (folder / "evidence").glob("*.npz")}
    stems = failed["backend"].map(file_name) + "-" + failed["case_id"]
    failed["bare"] = ~stems.isin(left)
    smallest = failed.sort_values(["grown", "once", "bare", "elements", "case_id"]).drop_duplicates(list(kind))
    chosen = having("case_id", smallest["case_id"])
    whole = load(folder, where=HAS_FAILED & chosen).drop_duplicates(key)
    chosen_rows = smallest[[*key, "violated", "cases"]].merge(whole, on=key)
    return chosen_rows.sort_values("cases", ascending=False, kind="stable")


def list_results(rows: pa.Table) -> pd.DataFrame:
    """Return the results of case lists' rows per backend, list and standard, with those of the lists' standards.

    Besides some of `COUNTS`: ``rows``, and those that the standard ``passed`` and ``failed``. It passes ``missed`` ones
    though they violate, and fails ``accused`` ones though they conform.
    """
    by = ["backend", "list", "list_standard"]
    ended = counts(rows, [*by, "list_standard_passes"]).reset_index()
    passed, failed = (ended["list_standard_passes"].eq(passes) for passes in (True, False))
    ended["rows"] = ended["judged"] + ended["undocumented"] + ended["skipped"]
    ended["passed"], ended["failed"] = ended["rows"].where(passed, 0), ended["rows"].where(failed, 0)
    ended["missed"] = (ended["violates"] + ended["waived"]).where(passed, 0)
    ended["accused"] = ended["conforms"].where(failed, 0)
    shown = ["rows", "judged", "conforms", "violates", "waived", "refused", "passed", "failed", "missed", "accused"]
    return ended.fillna(dict.fromkeys(by, "")).groupby(by, as_index=False)[shown].sum()


class NoSuchFailure(BadInput):
    """No failing row fits, or several do; the text lists them."""


def failing_row(folder: Path, case_id: str, backend: str | None = None) -> Record:
    """Return the failing row of a case; raise `NoSuchFailure` if it does not fail, or fails on several backends."""
    rows = read_rows(folder, where=pc.field("case_id") == case_id).to_pylist()
    if not rows:
        raise NoSuchFailure(f"{folder} has no case {case_id}" if case_id else "a case id is needed, not an empty text")
    failing = {row["backend"]: row for row in rows if row["verdict"] in FAILED and backend in (None, row["backend"])}
    if not failing:
        verdicts = ", ".join(f"{row['verdict']} on {row['backend']}" for row in rows)
        raise NoSuchFailure(f"case {case_id} does not fail: it is {verdicts}")
    if len(failing) > 1:
        known = ", ".join(failing)
        raise NoSuchFailure(f"case {case_id} fails on several backends: choose one of {known} by --backend")
    return next(iter(failing.values()))


def with_violated(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``violated``: the names of the violated checks as one text."""
    return rows.assign(violated=rows["checks_violated"].map(violated_text).astype("str"))


def _word_counts(lists: pa.ChunkedArray) -> pd.Series:
    counts = pc.value_counts(pc.list_flatten(lists).combine_chunks()).to_pylist()
    return pd.Series({item["values"]: item["counts"] for item in counts}, dtype="int64")
