"""Runs of a history, and answers about them, for the terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.tables import records
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.painting import STYLES


def show_runs(runs: pd.DataFrame, total: int, console: Console) -> None:
    """Print the lines of the view ``runs``; ``total`` is how many the history has."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("started (UTC)", "plan", "backends", "verdict"):
        table.add_column(heading)
    for heading in ("judged", "violated", "waived", "refused", "not judged"):
        table.add_column(heading, justify="right")
    table.add_column("run", overflow="fold")
    for run in records(runs):
        started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%d %H:%M")
        verdict = Text(run["verdict"], style=STYLES[Overall.of_word(run["verdict"])])
        counts = (f"{run[name]:,}" for name in ("judged", "violates", "waived", "refused", "missing"))
        table.add_row(started, run["plan"], ", ".join(json.loads(run["backends"])), verdict, *counts, run["run"])
    if len(runs):
        console.print(table)
    earlier = total - len(runs)
    console.print(f"{count_of(total, 'run')}" + (f", {earlier:,} earlier ones left out (--all)" if earlier else ""))


def in_form(answer: pd.DataFrame, form: str) -> str:
    """Format an answer as "csv", as "json" (a list of objects) or as a "table" for people."""
    if form == "csv":
        return answer.to_csv(index=False)
    if form == "json":
        return answer.to_json(orient="records", date_format="iso", indent=2) + "\n"
    return (answer.to_string(index=False, na_rep="") if len(answer) else "no lines") + "\n"
