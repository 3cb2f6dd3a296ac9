"""Rendering shared by all pages: one template environment, one style sheet, everything inlined."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def render(template: str, **values: Any) -> str:
    """The page of ``template`` (a file of this package) as one self-contained document."""
    return _environment().get_template(template).render(**values)


def write_page(path: Path, template: str, **values: Any) -> Path:
    path.write_text(render(template, **values), encoding="utf-8")
    return path


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("poolproof.reports", "pages"),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["time"] = lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment.filters["words"] = lambda text: text.replace("_", " ")
    return environment
