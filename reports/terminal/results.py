"""What the commands found, for the terminal: two runs against each other, runs of a history, a bundle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from poolproof.reports.bundle.verification import Verification
from poolproof.reports.figures.comparison import MEASURED, WORDS, Comparison
from poolproof.reports.figures.tables import records
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.text import count_of
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.painting import STYLES, ending, frame_table

_MAX_LINES = 12
_FAILURE = ("cases", *MEASURED, "verdict", "violated", "case_id")


def show_comparison(comparison: Comparison, overall: Overall, console: Console) -> None:
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


def show_runs(runs: pd.DataFrame, total: int, console: Console) -> None:
    """Print the lines of the view ``runs``; ``total`` is how many the history has."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("started (UTC)", "plan", "backends", "verdict"):
        table.add_column(heading)
    for heading in ("judged", "violated", "waived", "refused", "not judged"):
        table.add_column(heading, justify="right")
    table.add_column("run", overflow="fold")
    for run in records(runs):
        started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%d %H:%M")
        verdict = Text(run["verdict"], style=STYLES[Overall.of_word(run["verdict"])])
        counts = (f"{run[name]:,}" for name in ("judged", "violates", "waived", "refused", "missing"))
        table.add_row(started, run["plan"], ", ".join(json.loads(run["backends"])), verdict, *counts, run["run"])
    if len(runs):
        console.print(table)
    earlier = total - len(runs)
    console.print(f"{count_of(total, 'run')}" + (f", {earlier:,} earlier ones left out (--all)" if earlier else ""))


def in_form(answer: pd.DataFrame, form: str) -> str:
    """Format an answer as "csv", as "json" (a list of objects) or as a "table" for people."""
    if form == "csv":
        return answer.to_csv(index=False)
    if form == "json":
        return answer.to_json(orient="records", date_format="iso", indent=2) + "\n"
    return (answer.to_string(index=False, na_rep="") if len(answer) else "no lines") + "\n"


_WORDS = {
    Overall.CONFORMS: "stands",
    Overall.VIOLATES: "does not stand",
    Overall.INCOMPLETE: "sound, but judged by another suite",
}


def show_verification(verification: Verification, console: Console) -> None:
    """Print each step with its problems, the fingerprint, and how it ends."""
    for step in verification.steps:
        if not step.problems:
            console.print(Text("✓ ", style="green").append(step.text, style="default"), soft_wrap=True)
        for problem in step.problems:
            mark = "✗ " if step.overall is Overall.VIOLATES else "! "
            console.print(Text(mark, style=STYLES[step.overall]).append(problem, style="default"), soft_wrap=True)
    about = verification.verdict and f"the run in it {verification.verdict}"
    console.print(ending(_WORDS[verification.overall], verification.overall, about), soft_wrap=True)
    console.print(Text(f"fingerprint {verification.fingerprint}", style="dim"), soft_wrap=True)
