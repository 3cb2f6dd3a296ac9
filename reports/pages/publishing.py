"""Files about one run for people and CI, in its folder; none depends on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from poolproof.reports.figures.digest import Digest
from poolproof.reports.pages.precision import write_precision_page
from poolproof.reports.pages.run import write_run_page, write_run_summary
from poolproof.reports.rows.io_errors import CannotWrite, writing

PAGES: Mapping[str, Callable[[Digest, Path], Path]] = {
    "index.html": write_run_page,
    "precision.html": write_precision_page,
    "summary.md": write_run_summary,
}
"""File -> function that writes it. Only a run with at least one backward has a page of precision."""


def publish(digest: Digest, folder: Path) -> dict[str, Path]:
    """Write the pages of a run into a folder; return their paths by name.

    `CannotWrite` names the first page that could not be written, after all others are.
    """
    written: dict[str, Path] = {}
    first: CannotWrite | None = None
    for name, write in PAGES.items():
        if name == "precision.html" and not digest.has_statistics:
            continue
        try:
            with writing(folder / name):
                written[name] = write(digest, folder / name)
        except CannotWrite as fault:
            first = first or fault
    if first is not None:
        raise first
    return written
