"""Commands about histories of runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.conclusion import in_part, is_narrowed
from poolproof.reports.figures.tables import records, spreadsheet
from poolproof.reports.history import entries as histories
from poolproof.reports.history.dashboard import write_dashboard
from poolproof.reports.rows.text import count_of, safe, visible, without_commands
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.command_line import PATH, SECONDS, CommandGroup
from poolproof.reports.terminal.painting import STYLES, console


@click.group(cls=CommandGroup)
def history() -> None:
    """Keep finished runs in a folder that several machines may add to, and query them."""


@history.command("add")
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.argument("runs", nargs=-1, required=True, type=PATH)
def history_add(folder: Path, runs: tuple[Path, ...]) -> None:
    """Add finished RUNS to the HISTORY, which is created if it does not exist; a run is added once."""
    for run in runs:
        click.echo(histories.add(folder, run))


@history.command("list")
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.option("--all", "every", is_flag=True, help="All runs, not only the latest 20.")
def history_list(folder: Path, every: bool) -> None:
    """List the runs of a HISTORY, the latest last."""
    entries = _entries(folder)
    runs = entries.runs if every else entries.runs.tail(20)
    show_runs(runs, len(entries.runs), console())


_QUERY = """Query a HISTORY in SQL (DuckDB).

\b
Views:
  runs   one line per run: run, started, plan, asked, verdict, narrowed, counts of cases, suite, backends, host
  cells  one line per run and group of its matrix: counts, precision, times
  rows   one line per run and case, with all columns of the report
  libraries  one line per run and backend: the library that it judged

\b
Example: did operators get slower?
  SELECT operator, dtype, run, median(call_seconds) FROM cells GROUP BY ALL ORDER BY ALL
"""


@history.command("query", help=_QUERY)
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
@click.option(
    "--timeout", type=SECONDS, default=histories.QUERY_SECONDS, show_default=True, help="Time limit in seconds."
)
def history_query(folder: Path, sql: str, form: str, timeout: float) -> None:
    answer = histories.query(_entries(folder), sql, timeout)
    if form == "csv":
        text = spreadsheet(answer).to_csv(index=False)
    elif form == "json":
        text = answer.to_json(orient="records", date_format="iso", indent=2) + "\n"
    else:
        text = (answer.to_string(index=False, na_rep="") if len(answer) else "no lines") + "\n"
    click.echo(without_commands(visible(text)), nl=False)


@click.command()
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.option("-o", "--output", "site", type=PATH, required=True, help="Folder to write the pages into.")
def dashboard(folder: Path, site: Path) -> None:
    """Draw the state and the trends of a HISTORY, as pages that open from disk."""
    click.echo(write_dashboard(_entries(folder), site))


def _entries(folder: Path) -> histories.Entries:
    """Read the complete runs; print a warning for each skipped one."""
    entries = histories.read_entries(folder)
    for warning in entries.warnings:
        click.echo(safe(f"poolproof: warning: {warning}"), err=True)
    return entries


def show_runs(runs: pd.DataFrame, total: int, console: Console) -> None:
    """Print the lines of the view ``runs``; ``total`` is the number of runs in the history."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("started (UTC), run", no_wrap=True)  # whole, to be copied
    for heading in ("plan", "backends", "verdict"):
        table.add_column(heading, overflow="fold")
    for heading in ("judged", "violated", "waived", "refused", "not judged"):
        table.add_column(heading, justify="right")
    for run in records(runs):
        started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%d %H:%M")
        word, shown = in_part(run["verdict"], Overall.of_word(run["verdict"]), run["narrowed"])
        verdict = Text(word, style=STYLES[shown])
        counts = (f"{run[name]:,}" for name in ("judged", "violates", "waived", "refused", "missing"))
        plan = f"part of {run['plan']}" if is_narrowed(run["narrowed"]) else run["plan"]
        table.add_row(f"{started}\n{run['run']}", plan, ", ".join(json.loads(run["backends"])), verdict, *counts)
    if len(runs):
        console.print(table)
    earlier = total - len(runs)
    console.print(f"{count_of(total, 'run')}" + (f", {earlier:,} earlier ones left out (--all)" if earlier else ""))
