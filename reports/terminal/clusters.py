"""Root causes of a run's failures, at the head of its summary in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.clusters import FailureCluster, asides, headline
from poolproof.reports.rows.failures import message, replay_line

_MARGIN = "   "


def cluster_summary(found: Sequence[FailureCluster]) -> list[RenderableType]:
    """Say how many things are wrong; of each show its condition and its smallest case. Nothing where none is."""
    title = headline(found)
    if not title:
        return []
    root_causes = [cluster for cluster in found if cluster.has_condition]
    parts: list[RenderableType] = [Text(f"\n{title}", style="bold red")]
    for number, cluster in enumerate(root_causes, 1):
        parts += _entry(number, cluster, len({cluster.backend for cluster in found}) > 1)
    return parts


def _entry(number: int, cluster: FailureCluster, names_backend: bool) -> Iterator[RenderableType]:
    """Yield texts that a terminal folds beside the number, and the replay line in one piece."""
    title = f"{cluster.backend}: {cluster.sentence}" if names_backend else cluster.sentence
    yield Text("")
    table = Table.grid(padding=(0, 1))
    table.add_column(width=len(_MARGIN) - 1, justify="right")
    table.add_column(overflow="fold")
    table.add_row(Text(str(number), style="bold red"), Text(title, style="red"))
    for aside in asides(cluster):
        table.add_row("", Text(aside, style="dim"))
    table.add_row("", Text(f"smallest case: {message(cluster.smallest)}"))
    yield table
    yield Text(f"{_MARGIN}{replay_line(cluster.smallest)}", style="cyan")
