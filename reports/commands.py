"""Commands about finished runs, mounted into ``poolproof``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolproof.reports.bundle import attestation, packing, verification
from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.ci import SERVICES
from poolproof.reports.ci.services import annotate
from poolproof.reports.figures import comparison as comparisons
from poolproof.reports.figures import history as histories
from poolproof.reports.figures.comparison import WORDS
from poolproof.reports.figures.conclusion import in_part
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import HAS_FAILED, failing_row, records, spreadsheet
from poolproof.reports.pages.dashboard import write_dashboard
from poolproof.reports.pages.publishing import publish
from poolproof.reports.pages.render import VERDICT_CLASSES, write_page
from poolproof.reports.rows import merging
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import count_of, safe, visible, without_commands
from poolproof.reports.rows.verdicts import BadInput, Overall
from poolproof.reports.terminal import run as terminal
from poolproof.reports.terminal.command_line import PATH, SECONDS, CommandGroup
from poolproof.reports.terminal.painting import STYLES, console, ending, frame_table
from poolproof.reports.waivers import Waivers, append, check_terms, to_toml, waiver_for


@click.command()
@click.argument("run", type=PATH)
@click.option("--pages", type=PATH, help="Also write its pages into this folder.")
def show(run: Path, pages: Path | None) -> None:
    """Print the verdicts of the RUN, a report folder or a bundle, and exit with its overall verdict."""
    with verification.unpacked(run) if run.is_file() else nullcontext(read_digest(run)) as digest:
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
@click.option("-o", "--output", type=PATH, default=Path("waivers.toml"), show_default=True, help="File to append to.")
def waive(run: Path, case_id: str, expires: datetime, backend: str | None, output: Path, **accepted: Any) -> None:
    """Accept what the case CASE_ID of the RUN violates, until a day.

    Appends a waiver to a file for pytest's option --waivers. It is as narrow as it can be: this case on this backend
    at these versions, and the checks that it violates. With --scope it covers each case that has the case's values in
    these columns, and is named after them; how many of the RUN's failures these are is printed.
    """
    row = failing_row(run, case_id, backend)
    environments = read_run(run)["backends"]
    environment = environments[row["backend"]]
    if expires.date() < date.today():
        raise BadInput(f"--expires {expires.date()} is past: the waiver would cover nothing")
    waiver = waiver_for(row, environment, expires=expires.date(), **accepted)
    check_terms([waiver], date.today())
    append(waiver, output)
    columns = dict.fromkeys((*waiver.scope, "backend", "checks_violated"))
    failed, alone = read_rows(run, [*columns], HAS_FAILED).to_pylist(), Waivers([waiver], date.today())
    covered = sum(bool(alone.covering(each, environments[each["backend"]])) for each in failed)
    what = f"{covered:,} of {count_of(len(failed), 'failure')} in {run}"
    click.echo(f"{output} now waives {', '.join(waiver.checks)} on {row['backend']}; of this kind are {what}:")
    click.echo(visible(to_toml([waiver])), nl=False)
    click.echo(f"A run takes it into account with: pytest --pyargs poolproof.suites --waivers {output} ...")


@click.command()
@click.argument("run", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="The zip file to write.")
@click.option("--sign", "key", type=PATH, help="Private key (OpenSSH or PEM) to sign the bundle with.")
def package(run: Path, output: Path, key: Path | None) -> None:
    """Put the RUN and all that its verdict rests on into one archive.

    Prints the bundle's fingerprint: whoever gets the file can compare it (poolproof verify --fingerprint). A signature
    lies beside the archive, as OUTPUT.intoto.json.
    """
    fingerprint = packing.package(run, output)
    if key:
        click.echo(f"signed: {attestation.sign(output, read_digest(run), key)}")
    click.echo(f"{output}: {output.stat().st_size:,} bytes, fingerprint {fingerprint}")


def _checked_fingerprint(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Refuse what is no fingerprint: that is a mistake of who typed it, and says nothing about the bundle."""
    if value is None or re.fullmatch("[0-9a-f]{64}", value):
        return value
    raise click.BadParameter("a fingerprint is 64 hexadecimal digits, as package prints them.")


_REQUIREMENTS = "conforms|conforms-in-part|no-waivers|plan=NAME"


def _checked_requirements(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Sequence[str]:
    for value in values:
        if not re.fullmatch(r"conforms(-in-part)?|no-waivers|plan=\S+", value):
            raise click.BadParameter(f"{value!r:.80} is none of {_REQUIREMENTS.replace('|', ', ')}.")
    return values


def verify_with(draw: Redraw) -> click.Command:
    """Make the command ``verify``, with what draws a run's cases again."""

    @click.command("verify")
    @click.argument("bundle", type=PATH)
    @click.option(
        "--fingerprint", callback=_checked_fingerprint, help="The fingerprint that the maker of the bundle told you."
    )
    @click.option("--signer", type=PATH, help="Public key (OpenSSH or PEM) that the bundle must be signed with.")
    @click.option("--waivers", "agreed", multiple=True, type=PATH, help="File of the waivers agreed on; repeatable.")
    @click.option("--attestation", "signed", type=PATH, help="The signature [default: BUNDLE.intoto.json].")
    @click.option(
        "--require",
        "required",
        multiple=True,
        metavar=_REQUIREMENTS,
        callback=_checked_requirements,
        help="What the run in it has to be; repeatable. Of a narrowed run only conforms-in-part holds.",
    )
    def verify(
        bundle: Path,
        fingerprint: str | None,
        signer: Path | None,
        agreed: tuple[Path, ...],
        signed: Path | None,
        required: tuple[str, ...],
    ) -> None:
        """Check a BUNDLE offline: nothing in it is believed that can be derived.

        The cases are drawn again from the plan, each row is held against itself, the waivers and the evidence, and
        tables are made again from the rows. Exits with 0 when it stands, whatever its verdict is; with 1
        when something in it was changed or contradicts itself; with 2 when it is sound, but was judged by another
        version of the suite; with 3 when it is no bundle, or none that can be opened safely; with 6 when it stands, and
        its run is not what --require says.
        """
        by = (signer, signed or attestation.attestation_path(bundle)) if signer else None
        verified = verification.verify(bundle, fingerprint, draw, by, agreed, required)
        show_verification(verified, console())
        sys.exit(verified.overall)

    return verify


def merge_with(mandatory: merging.Mandatory) -> click.Command:
    """Make the command ``merge``, with what knows the mandatory groups of a run."""

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

        All shards (pytest --shard I/N) have to be named, each once or more: of a shard that was interrupted, or judged
        again, every case counts once. Parts of different plans, seeds, suites, backends or waivers are refused with
        status 3, and so is a case that two of them judged differently.
        """
        merging.merge(runs, output, mandatory)
        digest = read_digest(output)
        publish(digest, output)
        annotate(digest, ci, os.environ, click.echo)
        made = f"{count_of(len(set(runs)), 'run')} made one: {output}, page: {output / 'index.html'}"
        terminal.show(digest, console(), remarks=[made])
        sys.exit(digest.conclusion.overall)

    return merge


@click.command()
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@click.option("--markdown", type=PATH, help="Also write it as Markdown, for a comment on a change.")
@click.option("--fail-on-drift", is_flag=True, help="Slower calls and lost precision count as regressions, too.")
def compare(before: Path, after: Path, markdown: Path | None, fail_on_drift: bool) -> None:
    """Tell what got worse and what got better from the run BEFORE to the run AFTER.

    Exits with 1 when something fails that did not, with 2 when something is judged no more.
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


@click.group(cls=CommandGroup)
def history() -> None:
    """Keep finished runs in a folder that several machines may add to, and ask questions about them."""


@history.command("add")
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.argument("runs", nargs=-1, required=True, type=PATH)
def history_add(folder: Path, runs: tuple[Path, ...]) -> None:
    """Add finished RUNS to the HISTORY, which is made when there is none; a run is added once."""
    for run in runs:
        click.echo(histories.add(folder, run))


@history.command("list")
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.option("--all", "every", is_flag=True, help="All runs, not the latest 20 alone.")
def history_list(folder: Path, every: bool) -> None:
    """List the runs of a HISTORY, the latest last."""
    entries = _entries(folder)
    runs = entries.runs if every else entries.runs.tail(20)
    show_runs(runs, len(entries.runs), console())


_QUERY = """Answer a question in SQL (DuckDB's) about a HISTORY.

\b
Views:
  runs   one line per run: run, started, plan, asked, verdict, narrowed, counts of cases, suite, backends, host
  cells  one line per run and group of its matrix: counts, precision, times
  rows   one line per run and case, with all columns of the report
  libraries  one line per run and backend: which library it judged

\b
Example: which operators got slower?
  SELECT operator, dtype, run, median(call_seconds) FROM cells GROUP BY ALL ORDER BY ALL
"""


@history.command("query", help=_QUERY)
@click.argument("folder", metavar="HISTORY", type=PATH)
@click.argument("sql")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option(
    "--timeout", type=SECONDS, default=histories.QUERY_SECONDS, show_default=True, help="Seconds it may take."
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
    """Draw how a HISTORY stands and went, as pages that open from disk."""
    click.echo(write_dashboard(_entries(folder), site))


def _entries(folder: Path) -> histories.Entries:
    """Read the complete runs; print a warning for each one passed over."""
    entries = histories.read_entries(folder)
    for warning in entries.warnings:
        click.echo(safe(f"poolproof: warning: {warning}"), err=True)
    return entries


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


def show_runs(runs: pd.DataFrame, total: int, console: Console) -> None:
    """Print the lines of the view ``runs``; ``total`` is how many the history has."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("started (UTC), run", no_wrap=True)  # a name is broken where it has a hyphen
    for heading in ("plan", "backends", "verdict"):
        table.add_column(heading, overflow="fold")
    for heading in ("judged", "violated", "waived", "refused", "not judged"):
        table.add_column(heading, justify="right")
    for run in records(runs):
        started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%d %H:%M")
        word, shown = in_part(run["verdict"], Overall.of_word(run["verdict"]), run["narrowed"])
        verdict = Text(word, style=STYLES[shown])
        counts = (f"{run[name]:,}" for name in ("judged", "violates", "waived", "refused", "missing"))
        plan = run["narrowed"].removeprefix("narrowed: ") or run["plan"]
        name = run["run"].replace("-", "-\n", 1)
        table.add_row(f"{started}\n{name}", plan, ", ".join(json.loads(run["backends"])), verdict, *counts)
    if len(runs):
        console.print(table)
    earlier = total - len(runs)
    console.print(f"{count_of(total, 'run')}" + (f", {earlier:,} earlier ones left out (--all)" if earlier else ""))


_WORDS = {
    Overall.CONFORMS: "stands",
    Overall.VIOLATES: "does not stand",
    Overall.INCOMPLETE: "sound, but judged by another suite",
    Overall.UNMET: "stands, but is not what was required",
}


def show_verification(verified: verification.Verification, console: Console) -> None:
    for step in verified.steps:
        if not step.problems:
            console.print(Text("✓ ", style="green").append(step.text, style="default"), soft_wrap=True)
        for problem in step.problems:
            mark = "✗ " if step.overall is Overall.VIOLATES else "! "
            console.print(Text(mark, style=STYLES[step.overall]).append(problem, style="default"), soft_wrap=True)
    about = verified.verdict and f"the run in it {verified.verdict}"
    console.print(ending(_WORDS[verified.overall], verified.overall, about), soft_wrap=True)
    console.print(Text(f"fingerprint {verified.fingerprint}", style="dim"), soft_wrap=True)
    for what, line in zip(("left out", "vouched for", "judged"), verified.account, strict=False):
        console.print(Text(f"{what}: {line}"), soft_wrap=True)
