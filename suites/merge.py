"""The command that makes one run of its shards."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from poolproof.reports.ci import SERVICES
from poolproof.reports.ci.services import annotate
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.pages.publishing import publish
from poolproof.reports.rows import merging
from poolproof.reports.rows.text import count_of
from poolproof.reports.terminal import run as terminal
from poolproof.reports.terminal.command_line import PATH
from poolproof.reports.terminal.painting import console
from poolproof.suites.plan.selection import mandatory


@click.command("merge")
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="The folder to write the whole run into.")
@click.option(
    "--ci",
    type=click.Choice(["auto", *SERVICES]),
    default="auto",
    show_default=True,
    help="The CI service to write annotations and a job summary for.",
)
def merge(runs: tuple[Path, ...], output: Path, ci: str) -> None:
    """Make one run of the RUNS that judged its shards, and exit with its overall verdict.

    All shards (pytest --shard I/N) must be named, each once or more. A case of a shard that was interrupted, or judged
    again, counts once. Parts of different plans, seeds, versions, backends or waivers are refused with status 3, and so
    is a case that two of them judged differently.
    """
    merging.merge(runs, output, mandatory)
    digest = read_digest(output)
    publish(digest, output)
    annotate(digest, ci, os.environ, click.echo)
    made = f"{count_of(len(set(runs)), 'run')} made one: {output}, page: {output / 'index.html'}"
    terminal.show(digest, console(), remarks=[made])
    sys.exit(digest.conclusion.overall)
