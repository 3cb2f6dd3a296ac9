"""Commands about finished runs, mounted into ``poolproof``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from poolproof.references.optional import optional
from poolproof.reports.figures import comparison as comparisons
from poolproof.reports.figures.comparison import WORDS
from poolproof.reports.figures.conclusion import in_part
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import HAS_FAILED, failing_row
from poolproof.reports.pages.publishing import publish
from poolproof.reports.pages.render import VERDICT_CLASSES, write_page
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import count_of, visible
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.reports.terminal import run as terminal
from poolproof.reports.terminal.command_line import PATH
from poolproof.reports.terminal.painting import console, ending, frame_table
from poolproof.reports.waivers import Waivers, append, check_terms, to_toml, waiver_for


@click.command()
@click.argument("run", type=PATH)
@click.option("--pages", type=PATH, help="Also write its pages into this folder.")
def show(run: Path, pages: Path | None) -> None:
    """Print the verdicts of the RUN, a report folder or a bundle, and exit with its overall verdict."""
    unpacked = optional("poolproof.reports.bundle.unpacking:unpacked") if run.is_file() else None
    with unpacked(run) if unpacked else nullcontext(read_digest(run)) as digest:
        if pages:
            with writing(pages):
                pages.mkdir(parents=True, exist_ok=True)
            publish(digest, pages)
        terminal.show(digest, console())
        sys.exit(digest.conclusion.overall)


@click.command()
@click.argument("run", type=PATH)
@click.argument("case_id")
@click.option("--reason", required=True, help="Why the deviation is accepted.")
@click.option("--owner", required=True, help="The person responsible for it.")
@click.option("--expires", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The last day it is accepted on.")
@click.option("--issue", default="", help="Where it is discussed.")
@click.option("--backend", help="Backend of the failure, if several fail the case.")
@click.option(
    "--scope",
    multiple=True,
    default=["case_id"],
    show_default=True,
    help="Column of the scope, repeatable; name others to waive more than the one case.",
)
@click.option("-o", "--output", type=PATH, default=Path("waivers.toml"), show_default=True, help="File to append to.")
def waive(run: Path, case_id: str, expires: datetime, backend: str | None, output: Path, **accepted: Any) -> None:
    """Accept what the case CASE_ID of the RUN violates, until a day.

    Appends a waiver to a file for pytest's option --waivers. The waiver is as narrow as possible: this case on this
    backend at these versions, and the checks that it violates. With --scope it covers each case that has the case's
    values in these columns, and is named after them. Prints how many of the RUN's failures it covers.
    """
    row = failing_row(run, case_id, backend)
    environments = read_run(run)["backends"]
    environment = environments[row["backend"]]
    if expires.date() < date.today():
        raise BadInput(f"--expires {expires.date()} is past: choose a later day")
    waiver = waiver_for(row, environment, expires=expires.date(), **accepted)
    check_terms([waiver], date.today())
    append(waiver, output)
    columns = dict.fromkeys((*waiver.scope, "backend", "checks_violated"))
    failed, waivers = read_rows(run, [*columns], HAS_FAILED).to_pylist(), Waivers([waiver], date.today())
    covered = sum(bool(waivers.covering(each, environments[each["backend"]])) for each in failed)
    what = f"{covered:,} of {count_of(len(failed), 'failure')} in {run}"
    click.echo(f"{output} now waives {', '.join(waiver.checks)} on {row['backend']}; of this kind are {what}:")
    click.echo(visible(to_toml([waiver])), nl=False)
    click.echo(f"A run takes it into account with: pytest --pyargs poolproof.suites --waivers {output} ...")


@click.command()
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@click.option("--markdown", type=PATH, help="Also write it as Markdown, for a comment on a change.")
@click.option("--fail-on-drift", is_flag=True, help="Slower calls and lost precision count as regressions, too.")
def compare(before: Path, after: Path, markdown: Path | None, fail_on_drift: bool) -> None:
    """Compare the run AFTER with the run BEFORE: failures, precision and time.

    Exits with 1 if a case fails that did not, with 2 if a case is no longer judged.
    """
    comparison = comparisons.compare(before, after)
    causes = read_digest(after).root_causes if len(comparison.newly_failing) else []
    drifted = fail_on_drift and comparison.has_drifted_for_the_worse
    overall = Overall.VIOLATES if drifted else comparison.overall
    if markdown:
        word, shown = in_part(WORDS[overall], overall, comparison.narrowed)
        words = {"word": word, "verdict_class": VERDICT_CLASSES[shown]}
        write_page(markdown, "comparison.md.j2", comparison=comparison, causes=causes, **words)
    for part in terminal.root_causes(causes, whole=False):
        console().print(part, soft_wrap=isinstance(part, Text))
    show_comparison(comparison, overall, console())
    sys.exit(overall)


_MAX_LINES = 12
_SECTION_STYLES = {"Newly failing": "red", "Fixed": "green"} | dict.fromkeys(
    ("Newly not judged", "Precision that got worse", "Time that drifted"), "yellow"
)


def show_comparison(comparison: comparisons.Comparison, overall: Overall, console: Console) -> None:
    """Print a table for everything that changed; ``overall`` is how the command will end."""
    for title, frame in comparison.sections.items():
        console.print(Text(title, style=f"bold {_SECTION_STYLES.get(title, '')}"), soft_wrap=True)
        console.print(frame_table(frame.head(_MAX_LINES), {str(name): str(name) for name in frame}))
        if (more := len(frame) - _MAX_LINES) > 0:
            console.print(Text(f"and {count_of(more, 'more line')}", style="dim"), soft_wrap=True)
    for side, libraries in zip(("before", "after"), comparison.libraries, strict=True):
        console.print(Text(f"{side}: {libraries}", style="dim"), soft_wrap=True)
    word, _ = in_part(WORDS[overall], overall, comparison.narrowed)
    console.print(ending(word, overall, comparison.in_one_line), soft_wrap=True)
