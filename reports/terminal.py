"""A run's verdicts for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports import tables

_ASPECT_ORDER = ["values", "precision", "special_values", "layouts", "determinism", "scale"]


def summary(rows: pd.DataFrame, run: Mapping[str, Any]) -> list[RenderableType]:
    """The verdict table, what was skipped and why, which waivers were used, and the failures with reproducers."""
    parts: list[RenderableType] = [_verdict_table(rows), _key()]
    skipped = tables.skip_reasons(rows)
    if len(skipped):
        parts.append(_reasons(skipped))
    parts.extend(_waiver_lines(run))
    parts.extend(_failure_lines(rows))
    return parts


def show(rows: pd.DataFrame, run: Mapping[str, Any], console: Console) -> None:
    """Print the summary; long lines are left whole, so that a reproducer can be copied."""
    for part in summary(rows, run):
        console.print(part, soft_wrap=isinstance(part, Text))


def _verdict_table(rows: pd.DataFrame) -> Table:
    """One line per backend, operator and dtype pair, one column per aspect."""
    counts = tables.verdict_matrix(rows[rows["aspect"] != ""])
    aspects = list(dict.fromkeys([*_ASPECT_ORDER, *counts.index.unique("aspect")]))
    aspects = [aspect for aspect in aspects if aspect in counts.index.unique("aspect")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("operator", "dtype", "index"):
        table.add_column(heading, no_wrap=True)
    for aspect in aspects:
        table.add_column(aspect.replace("_", "\n"), justify="right")
    table.add_column("all", justify="right")
    lines = counts.groupby(["backend", "operator", "dtype", "index_dtype"], sort=False)
    backend = ""
    for key, group in lines:
        name, operator, dtype, index_dtype = map(str, cast(tuple[Any, ...], key))
        if name != backend:
            table.add_section()
            table.add_row(Text(name, style="bold"))
            backend = name
        by_aspect = group.droplevel(["backend", "operator", "dtype", "index_dtype"])
        cells = [_cell(by_aspect.loc[aspect]) if aspect in by_aspect.index else Text("") for aspect in aspects]
        table.add_row(operator, dtype, index_dtype, *cells, _cell(by_aspect.sum()))
    return table


def _cell(counts: pd.Series) -> Text:
    text = Text(str(counts["judged"]))
    if counts["violates"]:
        text.append(f" ✗{counts['violates']}", style="bold red")
    if counts["waived"]:
        text.append(f" w{counts['waived']}", style="yellow")
    if counts["skipped"]:
        text.append(f" s{counts['skipped']}", style="dim")
    if not (counts["violates"] or counts["waived"] or counts["skipped"]):
        text.stylize("green")
    return text


def _key() -> Text:
    return Text("cases judged; ✗ violated, crashed or timed out; w waived; s skipped\n", style="dim")


def _reasons(skipped: pd.Series) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, title="Not judged", title_justify="left")
    for key, count in skipped.items():
        backend, verdict, reason = map(str, cast(tuple[Any, ...], key))
        table.add_row(f"{count:>6}", backend, verdict, Text(reason, overflow="fold"))
    return table


def _waiver_lines(run: Mapping[str, Any]) -> list[RenderableType]:
    waivers = run.get("waivers", [])
    if not waivers:
        return []
    table = Table(box=None, pad_edge=False, show_header=False, title="\nWaivers", title_justify="left")
    for waiver in waivers:
        style = {"expired": "bold red", "unused": "yellow"}.get(waiver["state"], "")
        table.add_row(
            f"{waiver['uses']:>6}",
            Text(waiver["state"], style=style),
            waiver["id"],
            Text(waiver["reason"], overflow="fold"),
        )
    return [table]


def _failure_lines(rows: pd.DataFrame) -> list[RenderableType]:
    failed = tables.failures(rows)
    if failed.empty:
        return []
    lines: list[RenderableType] = [Text("\nViolations, one of each kind", style="bold red")]
    for _, row in failed.iterrows():
        line = row["shrunk"] if isinstance(row["shrunk"], str) and row["shrunk"] else row["case"]
        title = f"{row['operator']} on {row['backend']}: {row['violated'] or row['verdict']} ({row['cases']} cases)"
        reproducer = f"poolproof replay --backend {row['backend']} '{line}'"
        lines.append(Text(f"\n{title}", style="red"))
        lines.append(Text(f"  {row['reason']}"))
        lines.append(Text(f"  {reproducer}", style="cyan"))
    return lines
