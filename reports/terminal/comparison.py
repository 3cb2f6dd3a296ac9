"""Two runs against each other, for the terminal: what got worse first, and one line at the end that says it all."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from rich.console import Console, RenderableType
from rich.text import Text

from poolproof.reports.figures.comparison import WORDS, Comparison
from poolproof.reports.figures.drift import MEASURED
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.painting import ending, frame_table

_MAX_LINES = 12
_FAILURE = ("cases", *MEASURED, "verdict", "violated", "case_id")


def show(comparison: Comparison, overall: Overall, console: Console) -> None:
    """Print what changed; ``overall`` is how the command will end."""
    for part in summary(comparison):
        console.print(part, soft_wrap=isinstance(part, Text))
    for side, libraries in zip(("before", "after"), comparison.libraries, strict=True):
        console.print(Text(f"{side}: {libraries}", style="dim"), soft_wrap=True)
    console.print(ending(WORDS[overall], overall, comparison.in_one_line), soft_wrap=True)


def summary(comparison: Comparison) -> list[RenderableType]:
    """Make a table for everything that changed; none for what did not."""
    precision = (*MEASURED, "statistic", "before", "after")
    return [
        *_section("Newly failing", comparison.newly_failing, _FAILURE, "red"),
        *_section("Newly not judged", comparison.newly_unjudged, ("cases", *GROUP, "because"), "yellow"),
        *_section("Fixed", comparison.fixed, _FAILURE, "green"),
        *_section("Cases that changed their state", comparison.transitions, ("cases", "before", "after")),
        *_section("Precision that got worse", comparison.less_precise, precision, "yellow"),
        *_section("Time that drifted", comparison.drifted, (*MEASURED, "ratio", "low", "high", "cases"), "yellow"),
        *_section("Environment", comparison.environment, ("what", "before", "after")),
    ]


def _section(title: str, frame: pd.DataFrame, columns: Sequence[str], style: str = "") -> list[RenderableType]:
    """Make a titled table of the first lines of a frame; none of an empty one."""
    if frame.empty:
        return []
    table = frame_table(frame.head(_MAX_LINES), {name: name.replace("_", " ") for name in columns})
    more = len(frame) - _MAX_LINES
    note = [Text(f"and {count_of(more, 'more line')}", style="dim")] if more > 0 else []
    return [Text(title, style=f"bold {style}"), table, *note]
