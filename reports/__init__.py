"""Reports: rows, tables, pages. Rows are the only input; of the other rooms only references is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poolproof.reports.loading import LoadedRun

__all__ = ["load"]


def load(run: Path | str) -> LoadedRun:
    """Read a run as pandas frames, from its folder; raise `NotARun` if that has none."""
    from poolproof.reports.loading import LoadedRun  # judging does not need pandas

    return LoadedRun(Path(run))
