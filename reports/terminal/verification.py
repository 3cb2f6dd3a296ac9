"""Findings about a bundle, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from poolproof.reports.bundle.verification import Step, Verification
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.terminal.painting import STYLES, ending

_WORDS = {
    Overall.CONFORMS: "stands",
    Overall.VIOLATES: "does not stand",
    Overall.INCOMPLETE: "sound, but judged by another suite",
}


def show(verification: Verification, console: Console) -> None:
    """Print each step with its problems, the fingerprint, and how it ends."""
    for step in verification.steps:
        for line in _lines(step):
            console.print(line, soft_wrap=True)
    about = verification.verdict and f"the run in it {verification.verdict}"
    console.print(ending(_WORDS[verification.overall], verification.overall, about), soft_wrap=True)
    console.print(Text(f"fingerprint {verification.fingerprint}", style="dim"), soft_wrap=True)


def _lines(step: Step) -> list[Text]:
    if not step.problems:
        return [Text("✓ ", style="green").append(step.text, style="default")]
    mark = "✗ " if step.overall is Overall.VIOLATES else "! "
    return [Text(mark, style=STYLES[step.overall]).append(problem, style="default") for problem in step.problems]
