"""What is wrong with the judged implementations, at the head of what the terminal says of a run that violates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.rows.failures import message, replay_line
from poolproof.reports.suspects import Suspect, asides, headline

_MARGIN = "   "


def suspected(found: Sequence[Suspect]) -> list[RenderableType]:
    """How many things are wrong; of each its condition, what is known besides, and the smallest case; or nothing."""
    told = headline(found)
    if not told:
        return []
    claimed = [suspect for suspect in found if suspect.is_claimed]
    parts: list[RenderableType] = [Text(f"\n{told}", style="bold red")]
    for number, suspect in enumerate(claimed, 1):
        parts += _entry(number, suspect, len({each.backend for each in found}) > 1)
    return parts


def _entry(number: int, suspect: Suspect, names_backend: bool) -> Iterator[RenderableType]:
    """Texts that a terminal folds beside the number, and the line that shows the smallest case, in one piece."""
    told = f"{suspect.backend}: {suspect.sentence}" if names_backend else suspect.sentence
    yield Text("")
    table = Table.grid(padding=(0, 1))
    table.add_column(width=len(_MARGIN) - 1, justify="right")
    table.add_column(overflow="fold")
    table.add_row(Text(str(number), style="bold red"), Text(told, style="red"))
    for aside in asides(suspect):
        table.add_row("", Text(aside, style="dim"))
    table.add_row("", Text(f"smallest case: {message(suspect.smallest)}"))
    yield table
    yield Text(f"{_MARGIN}{replay_line(suspect.smallest)}", style="cyan")
