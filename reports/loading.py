"""A run as pandas frames, for notebooks and foreign programs: `poolproof.reports.load` returns a `LoadedRun`.

Names of attributes and columns are stable, or the change log says what replaces them.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures import tables
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.store import read_rows

_TYPES = {pa.bool_(): pd.BooleanDtype(), pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}
_LISTS = ("shape", "kernel_size", "stride", "padding", "dilation", "output_size")


class LoadedRun:
    """One run. Every frame is made on access, and is yours to change."""

    def __init__(self, folder: Path) -> None:
        """Read the run in a folder; raise `NotARun` if there is none."""
        self._digest = read_digest(folder)
        self.folder = folder

    @property
    def overall(self) -> str:
        """Verdict of the run: "conforms", "violates" or "incomplete"."""
        return self._digest.conclusion.overall.word

    @property
    def exit_status(self) -> int:
        return int(self._digest.conclusion.overall)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences on why the run does not conform."""
        return self._digest.conclusion.reasons

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row per case of the plan and backend, judged or not; see `columns`.

        Types are nullable, with NA for what does not apply. ``judged_at`` is a time in UTC. ``shape`` and
        ``kernel_size`` are lists, as are the case's other attributes: ``stride``, ``padding``, ``dilation``,
        ``output_size``.
        """
        return self._typed(tables.DRAWN_AGAIN & ~tables.FURTHER)

    @cached_property
    def further_rows(self) -> pd.DataFrame:
        """Rows of cases beside the plan, as `rows`: of diagnosis, the search and further seeds."""
        return self._typed(~tables.DRAWN_AGAIN | tables.FURTHER)

    def _typed(self, where: pc.Expression) -> pd.DataFrame:
        frame = read_rows(self.folder, where=where).to_pandas(types_mapper=_TYPES.get)
        frame["judged_at"] = pd.to_datetime(frame["judged_at"], unit="s", utc=True)
        cases = pd.DataFrame([json.loads(case) for case in frame["case"].fillna("{}")], frame.index)
        lists = cases.reindex(columns=_LISTS)
        return frame.assign(**lists.where(lists.notna(), None))

    @cached_property
    def columns(self) -> pd.DataFrame:
        """Description of the columns of `rows`. Index: column; columns: kind (its Arrow type), unit, meaning."""
        lines = [(column.name, str(column.kind), column.unit, column.meaning) for column in COLUMNS]
        return pd.DataFrame(lines, columns=["column", "kind", "unit", "meaning"]).set_index("column")

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """Numbers of cases per group and ending.

        Index: backend, operator, dtype, index_dtype, aspect. Columns: judged, conforms, violates (including crashes and
        timeouts), crashed (only those), waived, refused (as documented), undocumented (refusals that no document
        allows), skipped (all else that was not judged), and of those suite_errors and adapter_errors.
        """
        return self._digest.supported_counts.copy()

    @cached_property
    def missing(self) -> pd.DataFrame:
        """Mandatory cases that were not judged.

        One line per group, with the columns that identify it (backend, operator, dtype, ..., clause), planned, judged
        and missing cases, and because, the most frequent reason.
        """
        return self._digest.gaps.copy()

    @cached_property
    def failures(self) -> pd.DataFrame:
        """One failed row of each kind; cases is the size of its kind, violated the names of the checks."""
        return self._digest.failures.copy()

    @cached_property
    def precision(self) -> pd.DataFrame:
        """Precision of conforming rows. Index: backend, operator, dtype, model.

        Columns: those of `rows` that combine (sums, maxima or minima), and the quantities of pages
        (`poolproof.reports.figures.quantities`): exact_share and single_valued_share in percent, largest_error in ulp
        of max(P, N), bias_ulp in ulp of S, margin_min.
        """
        return self._digest.precision.copy()
