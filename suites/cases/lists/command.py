"""The command that writes cases as a list for another tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from poolproof.reports.rows.io_errors import check_replaceable, replacing
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import BadInput
from poolproof.reports.terminal.command_line import PATH
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.lists import FORMATS, export_rows, format_errors, format_named, read_lists
from poolproof.suites.commands import cases_of, plan_options, selected
from poolproof.suites.options import KnownName, library_options, run_options
from poolproof.suites.plan.aspects import CASE_ASPECTS

FORMAT = KnownName(lambda: FORMATS)
"""Built-in formats alone: those of packages are not loaded for completion."""


@click.command()
@click.option(
    "--format",
    "name",
    required=True,
    type=FORMAT,
    help="What to write: atk, json, or a format that an installed package brings.",
)
@click.option("-o", "--output", "path", type=PATH, required=True, help="File to write.")
@plan_options
@library_options
@run_options("--case", "--case-list", case_list={"type": PATH})
def export(
    name: str, path: Path, backend: str, case: tuple[str, ...], case_list: tuple[Path, ...], **values: Any
) -> None:
    """Write cases as a list for another tool, those that its format has words for.

    Read again by --case-list, each row is the case that was written, with its id. The other cases are counted with the
    reason.
    """
    check_replaceable(path)
    chosen = format_named(name)
    if case or case_list:
        cases = list(_given_cases(case, case_list))
    else:
        cases = cases_of(selected(backend, values | {"aspect": values["aspect"] or CASE_ASPECTS}))
    with format_errors(name, "write these cases"):
        rows, left_out = export_rows(chosen, cases)
        text = chosen.document(rows) if rows else ""
    for reason, count in left_out.most_common():
        click.echo(f"{count:>8,} left out: {reason}")
    if not rows:
        raise BadInput(f"none of {count_of(len(cases), 'case')} can be written as {name}: nothing was written")
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")
    click.echo(f"{len(rows):,} of {len(cases):,} cases written to {path}")


def _given_cases(lines: Iterable[str], lists: Sequence[Path]) -> Iterator[Case]:
    """Yield the cases of lines of JSON and of lists; `BadInput` at the first line or row that is not a case."""
    yield from map(Case.from_json, lines)
    for entry in read_lists(lists):
        if entry.case is None:
            raise BadInput(entry.fault)
        yield entry.case
