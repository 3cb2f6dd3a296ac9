"""Commands about histories of runs."""

from __future__ import annotations

import json
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
from poolproof.reports.rows.verdicts import BadInput, Overall
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
@click.argument("run", default="")
@click.option("--all", "every", is_flag=True, help="All runs, not only the latest 20.")
def history_list(folder: Path, run: str, every: bool) -> None:
    """List the runs of a HISTORY, a line each, the latest last; of one RUN, print all that its entry holds."""
    entries = _entries(folder)
    if run:
        for entry in records(entries.runs[entries.runs["run"] == run]):
            click.echo(safe("\n".join(f"{name}: {value}" for name, value in entry.items())))
            return
        raise BadInput(f"{folder} has no run {run}: poolproof history list {folder} prints their ids")
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
        if text.index("\n") > console().width:  # a terminal would fold each line into many that are blank
            lines = (line.items() for line in records(answer.fillna("")))
            text = "\n".join("".join(f"{name}: {value}\n" for name, value in line) for line in lines)
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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("run, by its start in UTC", "plan", "verdict"):
        table.add_column(heading, no_wrap=True)  # the id whole, to be copied
    for heading in ("judged", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("backends")
    for run in records(runs):
        word, shown = in_part(run["verdict"], Overall.of_word(run["verdict"]), run["narrowed"])
        word += ", narrowed" if is_narrowed(run["narrowed"]) and word == run["verdict"] else ""
        backends = Text(", ".join(json.loads(run["backends"])), no_wrap=True, overflow="ellipsis")
        counts = (f"{run[name]:,}" for name in ("judged", "violates"))
        table.add_row(run["run"], run["plan"], Text(word, style=STYLES[shown]), *counts, backends)
    if len(runs):
        console.print(table)
    earlier = total - len(runs)
    console.print(f"{count_of(total, 'run')}" + (f", {earlier:,} earlier ones left out (--all)" if earlier else ""))
