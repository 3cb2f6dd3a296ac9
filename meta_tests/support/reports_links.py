"""Where the links of written pages lead."""

from __future__ import annotations

import re
from pathlib import Path


def broken_links(site: Path) -> list[tuple[str, str]]:
    """(page, target) of all that leads nowhere."""
    links = [
        (page, target)
        for page in site.rglob("*.html")
        for target in re.findall(r'(?:src|href)="([^"#]+)[^"]*"', page.read_text(encoding="utf-8"))
    ]
    return [(page.name, target) for page, target in links if not (page.parent / target).exists()]
