"""Rendering of all pages and Markdown: one template environment, one style sheet, everything inlined."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from poolproof.reports.clusters import asides
from poolproof.reports.figures.tables import Record, records
from poolproof.reports.rows.failures import message, replay_line, what_failed
from poolproof.reports.rows.text import count_of, figure
from poolproof.reports.rows.verdicts import Overall

VERDICT_CLASSES = {Overall.CONFORMS: "good", Overall.VIOLATES: "bad", Overall.INCOMPLETE: "incomplete"}
"""Style sheet classes of overall verdicts."""

_MARKS = {"good": "✅", "bad": "❌", "incomplete": "⚠️"}
"""Marks of these classes in Markdown."""

_SQUARE_CLASSES = (
    *(("violates", "bad"), ("missing", "incomplete"), ("undocumented", "incomplete")),
    *(("waived", "waived"), ("judged", "good")),
)
"""Style sheet classes of squares of a verdict matrix, by the first of these counts that is not zero."""


def paint(counts: Record) -> str:
    return next((paint for name, paint in _SQUARE_CLASSES if counts.get(name)), "none")


def write_page(path: Path, template: str, **values: Any) -> Path:
    """Render ``template``, a file of this package, into a file; an HTML one is a self-contained document."""
    path.write_text(_environment().get_template(template).render(**values), encoding="utf-8")
    return path


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("poolproof.reports", "pages"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: f"{value:,}",
        "figure": figure,
        "records": records,
        "count_of": count_of,
        "time": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "day": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d"),
        "words": lambda text: text.replace("_", " "),
        "breakable": _breakable,
        "replay_line": replay_line,
        "mark": _MARKS.__getitem__,
        "message": message,
        "what_failed": what_failed,
        "cell": lambda value: str(value).replace("|", "\\|").replace("\n", " "),
        "plain": lambda text: str(escape(text)).replace("*", "\\*").replace("\n", " "),
        "asides": asides,
        "anchor": lambda names: "-".join(re.sub(r"[^A-Za-z0-9_]", "_", name) for name in names),
        # from 0 for nothing to 1 for most, logarithmically: a single case is to be seen
        "shade": lambda count, most: 0.15 + 0.85 * math.log1p(count) / math.log1p(most) if count else 0.0,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _breakable(name: str) -> Markup:
    """Let a name break before its capitals and after its dots on a narrow screen."""
    return Markup(re.sub(r"(?<=\.)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", str(escape(name))))
