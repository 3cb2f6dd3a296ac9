"""What is wrong with the judged implementations, at the head of what the terminal says of a run that violates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.clusters import FailureCluster, asides, headline
from poolproof.reports.rows.failures import message, replay_line

_MARGIN = "   "


def suspected(found: Sequence[FailureCluster]) -> list[RenderableType]:
    """How many things are wrong; of each its condition, what is known besides, and the smallest case; or nothing."""
    told = headline(found)
    if not told:
        return []
    claimed = [cluster for cluster in found if cluster.has_condition]
    parts: list[RenderableType] = [Text(f"\n{told}", style="bold red")]
    for number, cluster in enumerate(claimed, 1):
        parts += _entry(number, cluster, len({each.backend for each in found}) > 1)
    return parts


def _entry(number: int, cluster: FailureCluster, names_backend: bool) -> Iterator[RenderableType]:
    """Texts that a terminal folds beside the number, and the line that shows the smallest case, in one piece."""
    told = f"{cluster.backend}: {cluster.sentence}" if names_backend else cluster.sentence
    yield Text("")
    table = Table.grid(padding=(0, 1))
    table.add_column(width=len(_MARGIN) - 1, justify="right")
    table.add_column(overflow="fold")
    table.add_row(Text(str(number), style="bold red"), Text(told, style="red"))
    for aside in asides(cluster):
        table.add_row("", Text(aside, style="dim"))
    table.add_row("", Text(f"smallest case: {message(cluster.smallest)}"))
    yield table
    yield Text(f"{_MARGIN}{replay_line(cluster.smallest)}", style="cyan")
