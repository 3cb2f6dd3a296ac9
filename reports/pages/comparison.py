"""Page and Markdown of two runs against each other."""

from __future__ import annotations

from pathlib import Path

from poolproof.reports.figures.comparison import WORDS, Comparison
from poolproof.reports.figures.drift import MEASURED
from poolproof.reports.figures.tables import records
from poolproof.reports.pages.render import VERDICT_CLASSES, write_page
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.verdicts import Overall


def write_comparison(comparison: Comparison, overall: Overall, path: Path, template: str) -> Path:
    """Write ``template``, the page's or the Markdown's; ``overall`` is how the command ends."""
    return write_page(
        path,
        template,
        before=comparison.before,
        after=comparison.after,
        libraries=comparison.libraries,
        word=WORDS[overall],
        verdict_class=VERDICT_CLASSES[overall],
        one_line=comparison.in_one_line,
        newly_failing=records(comparison.newly_failing),
        fixed=records(comparison.fixed),
        newly_unjudged=records(comparison.newly_unjudged),
        transitions=records(comparison.transitions),
        precision=records(comparison.precision),
        less_precise=records(comparison.less_precise),
        time=records(comparison.time),
        drifted=records(comparison.drifted),
        environment=records(comparison.environment),
        group=GROUP,
        measured=MEASURED,
    )
