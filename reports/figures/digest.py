"""Digest of a run: the data of pages, terminal, bundle and CI, read from its folder once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from poolproof.reports.clusters import FailureCluster, clusters_of
from poolproof.reports.figures import tables
from poolproof.reports.figures.clauses import clause_table
from poolproof.reports.figures.conclusion import NEEDED, conclude, never_run
from poolproof.reports.figures.coverage import coverage, factor_coverage, group_columns
from poolproof.reports.figures.precision import HAS_STATISTICS, precision_by_model
from poolproof.reports.rows.environment import judged_text
from poolproof.reports.rows.meetings import FactorCoverage
from poolproof.reports.rows.store import NotARun, having, is_used_up, read_rows, read_run
from poolproof.reports.rows.verdicts import JUDGED, Verdict
from poolproof.reports.waivers import Waiver, parse
from poolproof.reports.waivers.review import REVIEWED, Review, State, concerned, review, scope_columns


class Digest:
    """One run in small tables, with the columns of `tables`, `coverage` and `conclusion`.

    They do not count further cases, which only the clusters include. Large or rarely needed tables are read on access.
    ``run`` is run.json. ``products`` maps backends to their NPU product, or to empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = run = read_run(folder)
        waivers, mandatory = waivers_of(run), run["mandatory"]
        everything = read_rows(folder, ["backend", "aspect", "verdict"])
        for name in everything.column_names:
            if everything[name].null_count:
                raise NotARun(f"the rows of {folder} are damaged: not all have a value in the column {name}")
        scopes = scope_columns(concerned(waivers, run["backends"]))
        columns = (*tables.COUNTED, "block", *REVIEWED, *NEEDED, *group_columns(mandatory), *scopes)
        rows = read_rows(folder, list(dict.fromkeys(columns)), tables.COUNTED_CASES)
        self.counts = tables.counts(rows)
        self.coverage, self.never_run = coverage(rows, mandatory, is_used_up(run)), never_run(rows)
        self.waivers = tuple(review(waivers, rows, run["backends"], judging_day(run)))
        further = everything.num_rows - rows.num_rows
        beyond = rows.filter(tables.FURTHER & having("verdict", JUDGED)).num_rows
        mended = sorted(set(read_rows(folder, ["case_id"], pc.field("failed_before"))["case_id"].to_pylist()))
        self.conclusion = conclude(
            self.counts, self.coverage, self.never_run, self.waivers, run, further, beyond, mended
        )
        self.skips, self.checks = tables.skip_reasons(rows), tables.check_counts(rows)
        self.products = tables.products(rows)

    @property
    def gaps(self) -> pd.DataFrame:
        return self.coverage[self.coverage["missing"] > 0]

    @property
    def used_waivers(self) -> list[Review]:
        return [review for review in self.waivers if review.state is State.USED]

    @property
    def judged(self) -> list[str]:
        """Each backend with product, chip, library, and its variables and options."""
        return [judged_text(name, each, self.given.get(name, ())) for name, each in self.run["backends"].items()]

    @property
    def relevant_waivers(self) -> list[Review]:
        """The waivers that concern this run."""
        return [review for review in self.waivers if review.state is not State.ELSEWHERE]

    @property
    def supported_counts(self) -> pd.DataFrame:
        """The counts without unsupported groups."""
        return self.counts[self.counts.index.get_level_values("aspect") != ""]

    @cached_property
    def has_statistics(self) -> bool:
        return bool(read_rows(self.folder, ["n"], HAS_STATISTICS).num_rows)

    @cached_property
    def given(self) -> Mapping[str, list[str]]:
        return tables.given(self.folder)

    @cached_property
    def factors(self) -> Mapping[tuple[str, str, str], FactorCoverage]:
        """Coverage by the judged calls, by backend, operator and dtype."""
        return factor_coverage(self.folder, self.run)

    @cached_property
    def failures(self) -> pd.DataFrame:
        return tables.failures(self.folder)

    @property
    def root_causes(self) -> list[FailureCluster]:
        """The clusters with a condition, which explain the cases that meet it."""
        return [cluster for cluster in self.clusters if cluster.has_condition]

    @cached_property
    def clusters(self) -> tuple[FailureCluster, ...]:
        """The clusters of failing rows; the smallest case of each has all its columns."""
        return clusters_of(self.folder) if self.conclusion.totals["violates"] else ()

    @cached_property
    def refusals(self) -> tuple[FailureCluster, ...]:
        """The clusters of undocumented refusals."""
        refused = self.conclusion.totals["undocumented"]
        return clusters_of(self.folder, {Verdict.UNDOCUMENTED}) if refused else ()

    @cached_property
    def clauses(self) -> pd.DataFrame:
        return clause_table(self.folder)

    @cached_property
    def list_results(self) -> pd.DataFrame:
        """Numbers of the results of case lists' rows, see `tables.list_results`."""
        columns = ["backend", "verdict", "list", "list_standard", "list_standard_passes"]
        return tables.list_results(read_rows(self.folder, columns, pc.field("list").is_valid()))

    @cached_property
    def precision_details(self) -> list[tables.Record]:
        """Precision per backend, operator, dtype and accumulation model, with the details of pages."""
        return precision_by_model(self.folder)

    @cached_property
    def precision(self) -> pd.DataFrame:
        """Precision per backend, operator, dtype and accumulation model."""
        return tables.precision(read_rows(self.folder, [*_MODELS, *tables.PRECISION], tables.DRAWN_AGAIN), _MODELS)

    @cached_property
    def models(self) -> pd.DataFrame:
        """The accumulation models, and rules of forwards, that judged each operator and dtype."""
        named = read_rows(self.folder, _MODELS, pc.field("model").is_valid())
        return named.group_by(_MODELS, use_threads=False).aggregate([]).to_pandas()


_MODELS = ["backend", "operator", "dtype", "model"]


def read_digest(folder: Path) -> Digest:
    """Read a run; raise `NotARun` if the folder is none."""
    return Digest(folder)


def waivers_of(run: Mapping[str, Any]) -> list[Waiver]:
    return [parse(record, "run.json", dates=()) for record in run["waivers"]]


def judging_day(run: Mapping[str, Any]) -> date:
    """Return the day that decides which waivers of a run had expired."""
    return date.fromisoformat(run["waivers_judged_on"])
