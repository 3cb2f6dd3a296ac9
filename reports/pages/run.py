"""The page of one run: its verdict, where it was reached, what failed and how to see it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pandas as pd

from poolproof.reports import tables
from poolproof.reports.pages.render import write_page
from poolproof.reports.store import read_run


def write_run_page(folder: Path) -> Path:
    """Write ``index.html`` into the run's folder and return its path."""
    rows, run = tables.load(folder), read_run(folder)
    aspects = [aspect for aspect in rows["aspect"].unique() if aspect]
    return write_page(
        folder / "index.html",
        "run.html.j2",
        run=run,
        totals=tables.verdict_counts(rows, ["backend"]).sum(),
        aspects=aspects,
        matrix=_matrix(rows, aspects),
        failures=[
            failure | {"line": failure["shrunk"] or failure["case"]} for failure in _records(tables.failures(rows))
        ],
        skipped=_records(tables.skip_reasons(rows).rename("count").reset_index()),
        checks=_records(tables.check_counts(rows).reset_index()),
        environment={"host": run["host"], **run["backends"]},
    )


def _matrix(rows: pd.DataFrame, aspects: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Per backend one line for each operator and pair of dtypes, with a cell for each aspect."""
    counts = tables.verdict_matrix(rows[rows["aspect"].isin(aspects)])
    matrix: dict[str, list[dict[str, Any]]] = {}
    for key, group in counts.groupby(level=[0, 1, 2, 3]):
        backend, operator, dtype, index_dtype = map(str, cast(tuple[Any, ...], key))
        by_aspect = cast(dict[str, dict[str, Any]], group.droplevel([0, 1, 2, 3]).to_dict("index"))
        line: dict[str, Any] = {"operator": operator, "dtype": dtype, "index_dtype": index_dtype}
        line["cells"] = [_cell(by_aspect.get(aspect)) for aspect in aspects]
        matrix.setdefault(backend, []).append(line)
    return matrix


def _cell(counts: dict[str, Any] | None) -> dict[str, Any]:
    if counts is None:
        return {"kind": "none"}
    kind = "bad" if counts["violates"] else "waived" if counts["waived"] else "good" if counts["judged"] else "none"
    return {"kind": kind, **{name: int(count) for name, count in counts.items()}}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain dictionaries, missing values as None."""
    return cast(list[dict[str, Any]], frame.astype(object).where(frame.notna(), None).to_dict("records"))
