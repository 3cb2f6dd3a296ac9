"""Case lists for the terminal: verdicts beside the lists' own standards, and what became of the data they promise."""

from __future__ import annotations

import pandas as pd
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.lists import honesty, standings
from poolproof.reports.figures.tables import Record, records

_STANDINGS = {
    "list": "list",
    "backend": "backend",
    "list_standard": "its standard",
    "rows": "rows",
    "judged": "judged",
    "conforms": "conform",
    "violates": "violate",
    "waived": "waived",
    "passed": "standard\npasses",
    "failed": "fails",
    "missed": "passes what\nviolates",
    "accused": "fails what\nconforms",
}
_HONESTY = {
    "list": "list",
    "backend": "backend",
    "tensor": "tensor",
    "rows": "rows",
    "kept": "as promised",
    "broken": "otherwise",
    "instead": "made instead",
    "promised": "promised",
}


def listed(rows: pd.DataFrame) -> list[RenderableType]:
    """Both tables, or nothing where no row is of a list."""
    if rows.empty:
        return []
    parts: list[RenderableType] = [Text("\nCase lists, beside their own standards", style="bold")]
    parts.append(_table(_STANDINGS, records(standings(rows))))
    promised = records(honesty(rows))
    if promised:
        parts += [Text("Case lists: data promised, and data made", style="bold"), _table(_HONESTY, promised)]
    return parts


def _table(headings: dict[str, str], lines: list[Record]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in headings.items():
        is_number = isinstance(lines[0][column], int)
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for line in lines:
        table.add_row(*(_told(line[column]) for column in headings))
    return table


def _told(value: int | str) -> Text:
    return Text(f"{value:,}" if isinstance(value, int) else value)
