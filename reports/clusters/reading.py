"""Clusters of the run in a folder, each with the whole row of its smallest case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.clusters.cluster import FailureCluster
from poolproof.reports.clusters.clustering import NEEDED, cluster_failures
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED, Verdict

MAX_READ = 200_000
"""Conforming rows of a run that are read."""


def clusters_of(folder: Path) -> tuple[FailureCluster, ...]:
    """Cluster the failing rows of a run; `NotARun` if the folder is none."""
    has_failed = having("verdict", FAILED)
    if not read_rows(folder, ["verdict"], has_failed).num_rows:
        return ()
    failing = read_rows(folder, NEEDED, has_failed)
    conforming = _sample(read_rows(folder, NEEDED, having("verdict", [Verdict.CONFORMS])))
    found = cluster_failures(pa.concat_tables([failing, conforming]).to_pandas())
    chosen = having("case_id", {cluster.smallest["case_id"] for cluster in found})
    whole = {_identity(row): row for row in read_rows(folder, where=chosen & has_failed).to_pylist()}
    return tuple(replace(cluster, smallest=whole[_identity(cluster.smallest)]) for cluster in found)


def _sample(rows: pa.Table) -> pa.Table:
    """Take at most `MAX_READ` rows: those with the least ids, which are hashes, so the choice is repeatable."""
    if rows.num_rows <= MAX_READ:
        return rows
    return rows.take(pc.sort_indices(rows["case_id"])[:MAX_READ])


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("backend", "aspect", "case_id"))
