"""The score as a table, a Parquet file and a page: which defects a plan found, by which checks, and how soon.

Rows are defects, one column each for what a defect is and what became of it; ``checks`` lists the checks that the case
which found it violated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolproof.reports.pages.render import write_page
from poolproof.reports.rows.text import count_of

FILE = "score.parquet"
PAGE = "score.html"


@dataclass(frozen=True)
class Summary:
    """``found`` of ``defects``; ``median_seconds`` and ``median_cases`` until one was found."""

    defects: int
    found: int
    interrupted: int
    median_seconds: float
    median_cases: float

    def text(self) -> str:
        share = 100.0 * self.found / max(self.defects, 1)
        return (
            f"{self.found} of {self.defects} defects found ({share:.1f} %), "
            + (f"{count_of(self.interrupted, 'hunt')} interrupted, " if self.interrupted else "")
            + f"half of them within {self.median_cases:.0f} cases and {self.median_seconds:.1f} s"
        )


def summarise(frame: pd.DataFrame) -> Summary:
    found = frame[frame["found"]]
    seconds, cases = (float(found[name].median()) if len(found) else 0.0 for name in ("seconds", "cases"))
    return Summary(len(frame), len(found), int((frame["outcome"] == "interrupted").sum()), seconds, cases)


def needs(frame: pd.DataFrame, checks: Sequence[str]) -> dict[str, str]:
    """The need for each check.

    ``alone``: some defect was found by nothing else. ``shared``: others found the same ones. ``none``: never violated.
    """
    tripped = [list(found) for found in frame["checks"]]
    return {
        check: "alone" if [check] in tripped else "shared" if any(check in found for found in tripped) else "none"
        for check in checks
    }


def write_score(frame: pd.DataFrame, checks: Sequence[str], folder: Path, about: Mapping[str, object]) -> Path:
    """Write the Parquet file and the page into ``folder``; the page's path."""
    frame.to_parquet(folder / FILE, index=False)
    found = frame[frame["found"]]
    return write_page(
        folder / PAGE,
        "score.html.j2",
        about=about,
        summary=summarise(frame),
        lines=frame.to_dict("records"),
        checks=checks,
        needs=needs(frame, checks),
        slowest=found.sort_values("seconds", ascending=False).head(5).to_dict("records"),
    )


def show(frame: pd.DataFrame, checks: Sequence[str], console: Console) -> None:
    """Print the table, what no defect needs, and the numbers; operators and messages are on the page."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("defect", "class", "on", "found by", "aspect"):
        table.add_column(heading, overflow="fold")
    for heading in ("cases", "seconds"):
        table.add_column(heading, justify="right")
    for line in frame.to_dict("records"):
        found = ", ".join(line["checks"]) if line["found"] else line["outcome"]
        style = "" if line["found"] else "red"
        numbers = (f"{line['cases']:,}", f"{line['seconds']:.1f}")
        table.add_row(line["defect"], line["class"], line["product"], Text(found, style), line["aspect"], *numbers)
    console.print(table)
    for need, words in (("none", "No defect trips"), ("shared", "Never the only one to find a defect")):
        named = [check for check, found in needs(frame, checks).items() if found == need]
        if named:
            console.print(f"{words}: {', '.join(named)}", style="dim")
    console.print(summarise(frame).text(), style="bold")
