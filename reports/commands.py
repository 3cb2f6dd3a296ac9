"""Commands about finished runs, mounted into ``poolproof``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from poolproof.reports import terminal
from poolproof.reports.command_line import console
from poolproof.reports.digest import read_digest
from poolproof.reports.store import read_run
from poolproof.reports.tables import failing_row
from poolproof.reports.waivers.writing import Acceptance, append, to_toml, waiver_for

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run", type=_PATH)
def show(run: Path) -> None:
    """Print the verdicts of the RUN in a report folder, and exit with its overall verdict."""
    digest = read_digest(run)
    terminal.show(digest, console())
    sys.exit(digest.conclusion.overall)


@click.command()
@click.argument("run", type=_PATH)
@click.argument("case_id")
@click.option("--reason", required=True, help="Why the deviation is accepted.")
@click.option("--owner", required=True, help="Who answers for that.")
@click.option("--expires", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The last day it is accepted on.")
@click.option("--issue", default="", help="Where it is discussed.")
@click.option("--backend", help="Whose failure, where several backends fail the case.")
@click.option(
    "--scope",
    multiple=True,
    default=["case_id"],
    show_default=True,
    help="Column whose value the waiver is about, repeatable; name others to waive more than the one case.",
)
@click.option("-o", "--output", type=_PATH, default=Path("waivers.toml"), show_default=True, help="File to append to.")
def waive(run: Path, case_id: str, expires: datetime, backend: str | None, output: Path, **accepted: Any) -> None:
    """Accept what the case CASE_ID of the RUN violates, until a day.

    Appends a waiver to a file for pytest's option --waivers. It is as narrow as it can be: this case on this backend
    at these versions, and the checks that it violates.
    """
    row = failing_row(run, case_id, backend)
    environment = read_run(run)["backends"][row["backend"]]
    waiver = waiver_for(row, environment, Acceptance(expires=expires.date(), **accepted))
    append(waiver, output)
    click.echo(f"{output} now waives {', '.join(waiver.checks)} of {row['operator']} on {row['backend']}:")
    click.echo(to_toml([waiver]), nl=False)


COMMANDS = (show, waive)
