"""Clusters of the run in a folder, each with the whole row of its smallest case, and those that are still open.

Whoever runs further cases knows no clusters, but learns from an `OpenCluster` which terms a row of a case meets. The
rows of these cases are rows like others, from which the clusters are then made anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.clusters.cluster import Bound, FailureCluster
from poolproof.reports.clusters.clustering import NEEDED, cluster_failures
from poolproof.reports.clusters.terms import FeatureColumn, Term
from poolproof.reports.rows.failures import smallest_case
from poolproof.reports.rows.features import Value, features_of
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
    conforming = read_rows(folder, NEEDED, having("verdict", [Verdict.CONFORMS]))
    if conforming.num_rows > MAX_READ:  # those with the least ids, which are hashes, so the choice is repeatable
        conforming = conforming.take(pc.sort_indices(conforming["case_id"])[:MAX_READ])
    found = cluster_failures(pa.concat_tables([failing, conforming]).to_pandas())
    chosen = having("case_id", {cluster.smallest["case_id"] for cluster in found})
    whole = {_identity(row): row for row in read_rows(folder, where=chosen & has_failed).to_pylist()}
    return tuple(replace(cluster, smallest=whole[_identity(cluster.smallest)]) for cluster in found)


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("backend", "aspect", "case_id"))


@dataclass(frozen=True, eq=False)
class OpenCluster:
    """One cluster, and what its condition says of a row that describes a case, judged or not."""

    cluster: FailureCluster

    @property
    def backend(self) -> str:
        return self.cluster.backend

    @property
    def name(self) -> str:
        """Return a name that is equal for equal conditions."""
        return " and ".join([self.backend, *map(str, self.cluster.terms or sorted(self.cluster.cases)[:1])])

    @property
    def failing(self) -> Row:
        """Return a row that fails and meets the condition."""
        return self.cluster.smallest

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the cases to begin with, the smallest first: the later ones are sure to meet the condition."""
        return tuple(dict.fromkeys((smallest_case(self.failing), str(self.failing["case"]))))

    @property
    def features(self) -> tuple[str, ...]:
        """Return the features of its terms."""
        return tuple(term.feature for term in self.cluster.terms)

    @property
    def fails_always(self) -> bool:
        return not self.cluster.conforming

    @property
    def thresholds(self) -> tuple[tuple[int, Bound], ...]:
        """Return (number of a term, the bound of its threshold) of those that can be narrowed."""
        values = [(self.features.index(bound.feature), bound) for bound in self.cluster.bounds]
        return tuple((number, bound) for number, bound in values if bound.conforms is not None)

    def met(self, row: Row) -> tuple[bool, ...]:
        """Return which of its terms the row meets; a term about what only an answer has counts as met."""
        values = self._features(row)

        def holds(term: Term) -> bool:
            return bool(term.holds(FeatureColumn(term.feature, np.array([values[term.feature]]), np.ones(1, bool)))[0])

        return tuple(term.feature not in values or holds(term) for term in self.cluster.terms)

    def value(self, row: Row, feature: str) -> int | None:
        """Return a number that the row has."""
        value = self._features(row).get(feature)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _features(self, row: Row) -> dict[str, Value]:
        return features_of(row | {"product": self.failing.get("product")})


def open_clusters_of(folder: Path) -> list[OpenCluster]:
    """Return the open clusters of the run in a folder."""
    return open_clusters(clusters_of(folder))


def open_clusters(found: Iterable[FailureCluster]) -> list[OpenCluster]:
    """Select the clusters but those that every case meets."""
    return [OpenCluster(cluster) for cluster in found if cluster.terms or not cluster.has_condition]
