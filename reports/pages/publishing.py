"""Files that people and CI read about one run, in its folder.

What is added to `PAGES` is written and linked from the first page; no file depends on another being there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from poolproof.reports.figures.digest import Digest
from poolproof.reports.pages.precision import write_precision_page
from poolproof.reports.pages.run import write_run_page, write_run_summary
from poolproof.reports.rows.io_errors import CannotWrite, writing


@dataclass(frozen=True)
class RunPage:
    """One file. ``title`` is the text of its link on the first page, empty for no link.

    ``is_applicable`` says whether it is written for a run.
    """

    name: str
    write: Callable[[Digest, Path], Path]
    title: str = ""
    is_applicable: Callable[[Digest], bool] = lambda _digest: True


def _write_first_page(digest: Digest, path: Path) -> Path:
    return write_run_page(digest, path, {page.name: page.title for page in pages_of(digest) if page.title})


PAGES = (
    RunPage("index.html", _write_first_page),
    RunPage(
        "precision.html",
        write_precision_page,
        "Errors beside their bounds, the standards of others, and backends side by side",
        lambda digest: digest.has_statistics,
    ),
    RunPage("summary.md", write_run_summary),
)


def pages_of(digest: Digest) -> list[RunPage]:
    return [page for page in PAGES if page.is_applicable(digest)]


def publish(digest: Digest, folder: Path) -> dict[str, Path]:
    """Write the pages of a run into a folder; return their paths by name.

    `CannotWrite` names the first that cannot be written, once all others are.
    """
    written: dict[str, Path] = {}
    first: CannotWrite | None = None
    for page in pages_of(digest):
        try:
            with writing(folder / page.name):
                written[page.name] = page.write(digest, folder / page.name)
        except CannotWrite as fault:
            first = first or fault
    if first is not None:
        raise first
    return written
