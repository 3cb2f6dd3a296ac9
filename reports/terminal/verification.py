"""What was found about a bundle, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from poolproof.reports.bundle.verification import Step, Verification
from poolproof.reports.rows.verdicts import Overall

_ENDINGS = {
    Overall.CONFORMS: ("STANDS", "bold green"),
    Overall.VIOLATES: ("DOES NOT STAND", "bold red"),
    Overall.INCOMPLETE: ("SOUND, BUT JUDGED BY ANOTHER SUITE", "bold yellow"),
}


def show(verification: Verification, console: Console) -> None:
    """Print each step with its problems, the fingerprint, and how it ends."""
    for step in verification.steps:
        for line in _lines(step):
            console.print(line, soft_wrap=True)
    word, style = _ENDINGS[verification.overall]
    ending = Text(f"\n{word}", style=style)
    ending.append(f" (exit status {int(verification.overall)})", style="default not bold")
    if verification.verdict:
        ending.append(f": the run in it {verification.verdict}", style="default not bold")
    console.print(ending, soft_wrap=True)
    console.print(Text(f"fingerprint {verification.fingerprint}", style="dim"), soft_wrap=True)


def _lines(step: Step) -> list[Text]:
    if not step.problems:
        return [Text("✓ ", style="green").append(step.text, style="default")]
    mark, style = ("✗ ", "red") if step.overall is Overall.VIOLATES else ("! ", "yellow")
    return [Text(mark, style=style).append(problem, style="default") for problem in step.problems]
