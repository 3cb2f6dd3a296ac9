"""What follows from a record, made once: for tests in which something else than tables and pages is at stake."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolproof.reports.bundle.packing import derived_files
from poolproof.reports.figures.digest import Digest
from poolproof.reports.pages.publishing import PAGES
from poolproof.reports.rows.store import content_hash


def empty_pages(digest: Digest, folder: Path) -> dict[str, Path]:
    """In place of `publish`, which takes most of the time of a bundle: its pages by their names, and empty."""
    for page in PAGES:
        (folder / page.name).touch()
    return {page.name: folder / page.name for page in PAGES}


class DerivedOnce:
    """In place of `derived_files`: those of a record with the same content are made once, and nobody writes to them."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._made: dict[str, dict[str, Path]] = {}

    def __call__(self, digest: Digest, scratch: Path) -> dict[str, Path]:
        content = content_hash(digest.folder)
        if content not in self._made:
            self._made[content] = derived_files(digest, self._factory.mktemp("derived"))
        return self._made[content]
