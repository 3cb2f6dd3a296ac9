"""Case lists for the terminal: verdicts beside the lists' own standards."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.lists import list_results
from poolproof.reports.figures.tables import records

_HEADINGS = {
    "list_standard": "its own standard",
    "rows": "rows",
    "judged": "judged",
    "conforms": "conform",
    "violates": "violate",
    "waived": "waived",
    "refused": "refused as\ndocumented",
    "passed": "standard\npasses",
    "failed": "\nfails",
    "missed": "passes what\nviolates",
    "accused": "fails what\nconforms",
}


def list_tables(rows: pd.DataFrame) -> list[RenderableType]:
    """Make a table of each list on each backend."""
    parts: list[RenderableType] = []
    for (backend, name), group in rows.groupby(["backend", "list"], sort=False):
        parts.append(Text(f"\nCase list {name} on {backend}", style="bold"))
        parts.append(_table(_HEADINGS, list_results(group)))
    return parts


def _table(headings: Mapping[str, str], lines: pd.DataFrame) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in headings.items():
        is_number = pd.api.types.is_integer_dtype(lines[column])
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for line in records(lines):
        table.add_row(*(_cell(line[column]) for column in headings))
    return table


def _cell(value: int | str) -> Text:
    return Text(f"{value:,}" if isinstance(value, int) else value or "–")
