"""Commands about finished runs, mounted into ``poolproof``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from poolproof.reports import tables, terminal
from poolproof.reports.store import NotARun, read_run

COULD_NOT_RUN = 3


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def show(run: Path) -> None:
    """Print the verdicts of the RUN in a report folder."""
    try:
        frame, record = tables.load(run), read_run(run)
    except NotARun as error:
        _give_up(str(error))
    terminal.show(frame, record, Console(width=None if sys.stdout.isatty() else 140))


COMMANDS = (show,)


def _give_up(reason: str) -> NoReturn:
    click.echo(f"poolproof: {reason}", err=True)
    sys.exit(COULD_NOT_RUN)
