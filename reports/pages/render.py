"""Rendering of all pages and Markdown: one template environment, one style sheet, everything inlined."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from poolproof.reports.clusters import asides, describe
from poolproof.reports.figures.tables import Record, records
from poolproof.reports.rows.failures import message, replay_line, what_failed
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.text import count_of, figure, visible
from poolproof.reports.rows.verdicts import Overall

VERDICT_CLASSES = {Overall.CONFORMS: "good", Overall.VIOLATES: "bad", Overall.INCOMPLETE: "incomplete"}
"""Style sheet classes of overall verdicts."""

_MARKS = {"good": "✅", "bad": "❌", "incomplete": "⚠️"}
"""Marks of these classes in Markdown."""

_SQUARE_CLASSES = (
    *(("violates", "bad"), ("missing", "incomplete"), ("undocumented", "incomplete")),
    *(("waived", "waived"), ("judged", "good")),
)
"""Style sheet class of a square of a verdict matrix: that of the first of these counts that is not zero."""


def paint(counts: Record) -> str:
    return next((paint for name, paint in _SQUARE_CLASSES if counts.get(name)), "none")


def write_page(path: Path, template: str, **values: Any) -> Path:
    """Render ``template``, a file of this package, into a file; an HTML one is a self-contained document."""
    with writing(path):
        path.write_text(read_template(template).render(**values), encoding="utf-8")
    return path


def read_template(name: str) -> Template:
    """Read a template that treats all values as plain text in HTML or Markdown."""
    return _environment(_markdown if name.endswith(".md.j2") else _plain).get_template(name)


def _plain(value: object) -> object:
    """Make a value visible before it is escaped for HTML; keep our own markup."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_MARKDOWN = {ord(each): f"\\{each}" for each in "\\`*|"} | {ord(each): str(escape(each)) for each in "&<>"}
_MARKDOWN |= {ord("@"): "@<!-- -->"}  # a name after it would be mentioned


def _markdown(value: object) -> object:
    """Turn a value into Markdown text without HTML, markup or line ends."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return Markup(" ".join(visible(value).splitlines()).translate(_MARKDOWN).replace("](", "]\\("))


@cache
def _environment(finalize: Callable[[object], object]) -> Environment:
    environment = Environment(
        loader=PackageLoader("poolproof.reports", "pages"),
        autoescape=True,
        finalize=finalize,
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
        "code": lambda line: Markup(visible(line).replace("\n", "\\n")),
        "strong": lambda text, is_strong: Markup(f"**{_markdown(text)}**") if is_strong else text,
        "cells": lambda names: Markup(" | ".join(names)),
        "asides": asides,
        "describe": describe,
        "anchor": lambda names: "-".join(re.sub(r"[^A-Za-z0-9_]", "_", name) for name in names),
        # logarithmic, from 0 for nothing to 1 for most: a single case must be visible
        "shade": lambda count, most: 0.15 + 0.85 * math.log1p(count) / math.log1p(most) if count else 0.0,
    }
    return environment


def _breakable(name: str) -> Markup:
    """Let a name break before capitals and after dots on a narrow screen."""
    return Markup(re.sub(r"(?<=\.)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", str(escape(visible(name)))))
