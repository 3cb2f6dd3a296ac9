"""Where commands and runs print, and how: verdicts in their colours, and text from outside shown as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import Overall

STYLES = {Overall.CONFORMS: "green", Overall.VIOLATES: "red", Overall.INCOMPLETE: "yellow"}
"""How an overall verdict is painted."""


def ending(word: str, overall: Overall, text: str) -> Text:
    """The line at the end that says it all: a word for the verdict, the exit status, and why."""
    line = Text(f"\n{word.upper()}", style=f"bold {STYLES[overall]}")
    return line.append(f" (exit status {int(overall)}){text and f': {text}'}", style="default not bold")


class SafeConsole(Console):
    """A console that shows what text from outside would make the terminal do."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console() -> Console:
    """Where commands print: as wide as the terminal, wide enough for a reproducer where there is none."""
    return SafeConsole(width=None if sys.stdout.isatty() else 140)
