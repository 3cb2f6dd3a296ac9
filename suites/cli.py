"""The ``poolproof`` command: what can run here, what would run, and one case again."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolproof.backends.base import BackendUnavailable
from poolproof.backends.registry import UnknownBackend, names
from poolproof.references.contract import ContractError
from poolproof.reports.command_line import EXIT_STATUSES, CommandGroup, give_up
from poolproof.reports.commands import COMMANDS
from poolproof.reports.evidence import evidence_path, read_evidence
from poolproof.reports.recorder import DEFAULT_FOLDER
from poolproof.reports.schema import Row
from poolproof.reports.verdicts import FAILED, SKIPPED, Overall
from poolproof.suites.case import CaseError
from poolproof.suites.evidence import Shelf
from poolproof.suites.isolation import Bench, Survey, survey
from poolproof.suites.jury import failure_text, with_shelf
from poolproof.suites.plans import ASPECTS, PLANS, blocks
from poolproof.suites.replay import given_questions

_console = Console(width=None if sys.stdout.isatty() else 140, soft_wrap=True)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUSES,
)
@click.version_option(package_name="poolproof")
def main() -> None:
    """Conformance of max pooling with argmax, backward.

    A run is made by pytest (pytest --pyargs poolproof.suites --help shows its options, group "poolproof"); the
    commands here look before it and after it.
    """


@main.command()
def backends() -> None:
    """List the backends and whether each can run here."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("backend", "here", "what it says"):
        table.add_column(heading, overflow="fold")
    for name in names():
        try:
            environment = survey(name).environment
            said = ", ".join(f"{key} {value}" for key, value in environment.items())
            table.add_row(name, Text("yes", style="green"), said)
        except (BackendUnavailable, UnknownBackend) as error:
            table.add_row(name, Text("no", style="red"), str(error))
    _console.print(table)


@main.command(name="list", short_help="Show what a plan would run.")
@click.option("--backend", default="torch-cpu", show_default=True, help="Backend to plan for.")
@click.option("--plan", "plan_name", type=click.Choice(sorted(PLANS)), default="smoke", show_default=True)
def list_blocks(backend: str, plan_name: str) -> None:
    """Show what a plan would run on a backend, and what it would not and why."""
    cells = _survey_or_exit(backend).cells
    counts: Counter[tuple[str, str]] = Counter()
    for block in blocks(cells, list(ASPECTS.values()), PLANS[plan_name], seed=0):
        counts[block.cell.operator.name, block.aspect.id] += block.count
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"{sum(counts.values()):,} cases of plan {plan_name} on {backend}",
        title_justify="left",
    )
    table.add_column("operator")
    table.add_column("dtypes")
    table.add_column("indices")
    for aspect in ASPECTS.values():
        table.add_column(aspect.id.replace("_", "\n"), justify="right")
    for operator in dict.fromkeys(cell.operator.name for cell in cells):
        supported = [cell for cell in cells if cell.operator.name == operator and not cell.unsupported]
        if supported:
            dtypes = ", ".join(dict.fromkeys(cell.dtype for cell in supported))
            indices = ", ".join(dict.fromkeys(cell.index_dtype for cell in supported))
            table.add_row(operator, dtypes, indices, *(str(counts[operator, aspect] or "") for aspect in ASPECTS))
    _console.print(table)
    reasons = Counter((cell.operator.name, cell.unsupported) for cell in cells if cell.unsupported)
    for (operator, reason), count in reasons.items():
        _console.print(f"not run: {operator}, {count} pairs of dtypes: {reason}", style="dim")


@main.command(short_help="Judge one case again.")
@click.argument("case")
@click.option(
    "--backend",
    "backend_names",
    multiple=True,
    default=["torch-cpu"],
    show_default=True,
    help="Backend to judge, repeatable.",
)
@click.option("--timeout", default=60.0, show_default=True, help="Seconds the case may take.")
@click.option(
    "--evidence",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder for what a violation leaves behind: what came out, what was owed, and for torch a program that "
    "makes the call without this suite.",
)
def replay(case: str, backend_names: tuple[str, ...], timeout: float, folder: Path | None) -> None:
    """Judge one CASE again: the line of JSON that a failure prints, a case or a low-level call."""
    failed = False
    for name in backend_names:
        with tempfile.TemporaryDirectory() as scratch:
            bench = Bench(name, Path(scratch), "replay", timeout)
            try:
                given_questions([case], "A2")  # a wrong line is told before a backend is loaded
                questions = given_questions([case], bench.start().product)
                (row,) = bench.judge(with_shelf(questions, Shelf(folder, name)) if folder else questions)
            except (BackendUnavailable, UnknownBackend, CaseError, ContractError) as error:
                give_up(str(error))
            finally:
                bench.close()
        failed |= row["verdict"] in FAILED
        _print_row(row)
        if row["verdict"] in FAILED:
            _print_evidence(row, folder)
    sys.exit(Overall.VIOLATES if failed else Overall.CONFORMS)


for _command in COMMANDS:
    main.add_command(_command)


def _print_row(row: Row) -> None:
    if row["verdict"] in FAILED:
        _console.print(Text(failure_text(row), style="red"))
        return
    style = "yellow" if row["verdict"] in SKIPPED else "green"
    reason = f": {row['reason']}" if row["reason"] else ""
    checks = ", ".join(row["checks_judged"] or [])
    _console.print(
        Text(f"{row['verdict']}{reason} ({row['backend']} {row['operator']}, case {row['case_id']})", style=style)
    )
    _console.print(f"judged: {checks}")
    if row.get("max_ulp") is not None:
        owed = f"{row['n_bits_owed']} of {row['n']} cells owed bits"
        _console.print(f"largest error {row['max_ulp']:.3g} ulp, {owed}, model {row['model']}")


def _print_evidence(row: Row, folder: Path | None) -> None:
    """Name the evidence that was left now, or by the run in the default folder, and put its program beside it."""
    path = evidence_path(folder or DEFAULT_FOLDER, row["case_id"], row["backend"])
    if not path.exists():
        hint = "this kind of failure leaves none" if folder else "add --evidence DIR to keep some"
        _console.print(f"no evidence: {hint}", style="dim")
        return
    _console.print(f"evidence, judged again by: python -m poolproof.reports.rejudge {path}", style="dim")
    script = read_evidence(path).meta.get("script")
    if folder and script:
        call = path.with_suffix(".py")
        call.write_text(script, encoding="utf-8")
        _console.print(f"the call with torch alone: python {call}", style="dim")


def _survey_or_exit(name: str) -> Survey:
    try:
        return survey(name)
    except (BackendUnavailable, UnknownBackend) as error:
        give_up(str(error))
