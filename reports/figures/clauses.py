"""Clauses of the contract as a table: their judged calls, the verdicts, and which description the library follows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from poolproof.reports.figures.tables import COUNTS, Record, counts
from poolproof.reports.rows.store import read_rows

CLAUSE = ("backend", "operator", "clause")
"""Columns that identify a line; an empty clause means the legal calls."""

LEGAL = "Calls that are just legal."

ANSWERS = {"code and page": "both", "code": "as_code", "page": "as_page", "an earlier release": "as_earlier"}
"""Description of the contract that an answer agrees with -> column with its number of answers."""

COLUMNS = (*CLAUSE, "product", "statement", *COUNTS, *ANSWERS.values())


def clause_table(folder: Path) -> pd.DataFrame:
    """Return one line per `CLAUSE` of a run, without an index; empty if no contract was judged.

    The columns are those of `tables.counts` and of `ANSWERS`, ``product``, and ``statement``, the clause in a sentence.
    A backend without a product has no lines: sequences of its calls have no clause.
    """
    is_about_one = pc.field("statement").is_valid() & (pc.field("statement") != "") & (pc.field("product") != "")
    rows = read_rows(folder, [*CLAUSE, "product", "statement", "follows", "verdict"], is_about_one)
    if not rows.num_rows:
        return pd.DataFrame(columns=COLUMNS)
    counted = counts(rows, CLAUSE)
    named = rows.select([*CLAUSE, "product", "statement"]).to_pandas()
    named["length"] = named["statement"].str.len()
    named = named.sort_values("length", kind="stable").groupby(list(CLAUSE))[["product", "statement"]].first()
    answers = rows.group_by([*CLAUSE, "follows"]).aggregate([([], "count_all")]).to_pandas()
    for answer, column in ANSWERS.items():
        agreeing = answers[answers["follows"] == answer].set_index(list(CLAUSE))["count_all"]
        counted[column] = agreeing.reindex(counted.index, fill_value=0).astype("int64")
    table = named.join(counted).reset_index()
    return table.assign(statement=table["statement"].where(table["clause"] != "", LEGAL))


def follows(line: Record) -> str:
    """Return the description that a library follows where they differ: ``code``, ``page``, or the number of each."""
    parts = {answer: line[column] for answer, column in ANSWERS.items() if column != "both" and line[column]}
    return ", ".join(f"{name} {count:,}" for name, count in parts.items()) if len(parts) > 1 else "".join(parts)


def notable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines to read: violated clauses, and answers that differ from the code's."""
    return table[(table["violates"] > 0) | (table["as_page"] > 0) | (table["as_earlier"] > 0)]


def totals(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line per backend and product: numbers of ``clauses`` and ``operators``, and sums of all counts."""
    by = ["backend", "product"]
    sums = table.groupby(by).sum(numeric_only=True)
    sums["clauses"] = table[table["clause"] != ""].groupby(by).size().reindex(sums.index, fill_value=0)
    sums["operators"] = table.groupby(by)["operator"].nunique()
    return sums.reset_index()
