"""Output of commands and runs: verdicts in their colours, and foreign text made visible."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from poolproof.reports.figures.tables import records
from poolproof.reports.rows.text import figure, visible, without_commands
from poolproof.reports.rows.verdicts import Overall

STYLES = {
    Overall.CONFORMS: "green",
    Overall.VIOLATES: "red",
    Overall.INCOMPLETE: "yellow",
    Overall.COULD_NOT_RUN: "red",
    Overall.UNMET: "yellow",
}


def ending(word: str, overall: Overall, text: str, status: int | None = None) -> Text:
    """Return the last line: the verdict's word, the exit status, by default the verdict's own, and the reason."""
    line = Text(f"\n{word.upper()}", style=f"bold {STYLES[overall]}")
    return line.append(
        f" (exit status {int(overall if status is None else status)}){text and f': {text}'}", style="default not bold"
    )


class SafeConsole(Console):
    """A console that escapes what a terminal or the CI service would obey in foreign text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        line = ""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            before, text = "." if line.strip() else "", visible(segment.text)
            yield Segment(without_commands(before + text)[len(before) :], segment.style)
            line = (line + text).rpartition("\n")[2]


def frame_table(frame: pd.DataFrame, headings: Mapping[str, str], absent: str = "") -> Table:
    """Return a table of the columns that have headings, with numbers on the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in headings.items():
        is_number = pd.api.types.is_numeric_dtype(frame[column])
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for line in records(frame):
        table.add_row(*(absent if line[name] in (None, "") else str(figure(line[name])) for name in headings))
    return table


def console(**options: Any) -> SafeConsole:
    """Open the console of a command: as wide as the terminal or COLUMNS, else wide enough for a replay line."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return SafeConsole(width=None if is_known else 140, **options)
