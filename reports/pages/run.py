"""The page of one run."""

from __future__ import annotations

from pathlib import Path


def write_run_page(folder: Path) -> Path:
    return folder
