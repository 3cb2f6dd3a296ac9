"""Page and Markdown of two runs against each other."""

from __future__ import annotations

from pathlib import Path

from poolproof.reports.figures.comparison import MEASURED, WORDS, Comparison
from poolproof.reports.pages.render import VERDICT_CLASSES, write_page
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.verdicts import Overall


def write_comparison(comparison: Comparison, overall: Overall, path: Path, template: str) -> Path:
    """Write ``template``, the page's or the Markdown's; ``overall`` is how the command ends."""
    return write_page(
        path,
        template,
        comparison=comparison,
        word=WORDS[overall],
        verdict_class=VERDICT_CLASSES[overall],
        group=GROUP,
        measured=MEASURED,
    )
