"""A headless Chromium that has no network, for tests of pages; tests are skipped where there is none."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE, DESK = 390, 1280
"""Widths of screens in CSS pixels."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of Playwright's; skips the test with the reason when there is none."""
    reason = "pages are tested through Playwright: pip install playwright"
    driver = pytest.importorskip("playwright.sync_api", reason=reason)
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"pages are tested in Chromium, and there is none of {', '.join(NAMES)}")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page in a window of its own, with everything it complained about or asked for."""

    def __init__(self, browser: Any, width: int, scheme: str = "light") -> None:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path) -> None:
        self.page.goto(path.resolve().as_uri())

    def overflow(self) -> int:
        """How many CSS pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def broken_links(site: Path) -> list[tuple[str, str]]:
    """(page, target) of all links of written pages that lead nowhere."""
    links = [
        (page, target)
        for page in site.rglob("*.html")
        for target in re.findall(r'(?:src|href)="([^"#]+)[^"]*"', page.read_text(encoding="utf-8"))
    ]
    return [(page.name, target) for page, target in links if not (page.parent / target).exists()]
