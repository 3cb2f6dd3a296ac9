"""Members of a cluster: how they fail, which is smallest, and those beyond the rows that were searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from poolproof.reports.clusters.cluster import FailureCluster, FailureKind
from poolproof.reports.clusters.terms import Mask, Term, columns_of
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.failures import is_shrunk, smallest_case
from poolproof.reports.rows.features import feature_table, geometry_of, read_case
from poolproof.reports.rows.schema import Row

CHUNK_ROWS = 20_000
"""Rows whose features are made at a time: those of a million would take gigabytes."""

SIZED = ("operator", "case", "shrunk")
"""Columns that `size_of` reads."""


def kind_of(verdict: str, violated: Any) -> FailureKind:
    return verdict, next(iter(checks_of(violated)), SURVIVAL)


def checks_of(clusters: Any) -> Sequence[str]:
    """Return the names of a column of checks; empty where it is no list."""
    return () if clusters is None or isinstance(clusters, float) else clusters


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Return the sort key of a row's case: whether it was not shrunk, its elements, windows, and length of line."""
    line = smallest_case(row)
    call = geometry_of(str(row["operator"]), read_case(line))
    if call is None:
        return not is_shrunk(row), float("inf"), float("inf"), len(line)
    return not is_shrunk(row), call.planes * prod(call.size), call.planes * prod(call.count), len(line)


def smallest_of(rows: pd.DataFrame) -> Row:
    """Return the row whose case is smallest."""
    sized = rows.reindex(columns=SIZED).to_numpy(object).tolist()
    sizes = [size_of(dict(zip(SIZED, clusters, strict=True))) for clusters in sized]
    (row,) = rows.iloc[[sizes.index(min(sizes))]].to_dict("records")
    return {str(name): value for name, value in row.items()}


def kinds_of_rows(rows: pd.DataFrame) -> Counter[FailureKind]:
    return Counter(kind_of(*row) for row in zip(rows["verdict"], rows["checks_violated"], strict=True))


def assign_others(found: Sequence[FailureCluster], others: pd.DataFrame) -> list[FailureCluster]:
    """Add ``others``, failing rows of the backend, each to the first cluster whose condition it meets.

    What meets none joins the cluster of its verdict without a condition, or makes a new one.
    """
    clusters = list(found)
    for start in range(0, len(others), CHUNK_ROWS):
        clusters = list(_assign(clusters, others.iloc[start : start + CHUNK_ROWS]))
    return clusters


def _assign(found: Sequence[FailureCluster], rows: pd.DataFrame) -> Iterator[FailureCluster]:
    columns = {column.feature: column for column in columns_of(feature_table(rows))}
    left = np.ones(len(rows), np.bool_)

    def meeting(terms: Sequence[Term]) -> Mask:
        met = left.copy()
        for term in terms:
            met &= term.holds(columns[term.feature]) if term.feature in columns else False
        return met

    enlarged = []
    for cluster in filter(lambda cluster: cluster.has_condition, found):
        taken = meeting(cluster.terms)
        left &= ~taken
        enlarged.append(_enlarged(cluster, rows[taken]))
    yield from (replace(cluster, failing_others=cluster.failing_others + int(left.sum())) for cluster in enlarged)
    without = {cluster.smallest["verdict"]: cluster for cluster in found if not cluster.has_condition}
    rest = {str(verdict): group for verdict, group in rows[left].groupby("verdict", sort=False)}
    for verdict in dict.fromkeys([*without, *rest]):
        added = rest.get(verdict, rows.iloc[:0])
        yield _enlarged(without[verdict], added) if verdict in without else unexplained(added)


def _enlarged(cluster: FailureCluster, rows: pd.DataFrame) -> FailureCluster:
    """Add failing rows to a cluster."""
    if not len(rows):
        return cluster
    kinds: Counter[FailureKind] = Counter(dict(cluster.kinds))
    kinds.update(kinds_of_rows(rows))
    return replace(
        cluster,
        failing=cluster.failing + len(rows),
        kinds=tuple(kinds.most_common()),
        cases=cluster.cases | frozenset(rows["case_id"]),
    )


def unexplained(rows: pd.DataFrame) -> FailureCluster:
    return without_terms(rows, 0, has_condition=False)


def without_terms(rows: pd.DataFrame, conforming_others: int, *, has_condition: bool) -> FailureCluster:
    """Make a cluster without terms, beside so many rows that conform."""
    return FailureCluster(
        backend=str(rows["backend"].iloc[0]),
        has_condition=has_condition,
        terms=(),
        failing=len(rows),
        conforming=0,
        failing_others=0,
        conforming_others=conforming_others,
        ties=(),
        bounds=(),
        kinds=tuple(kinds_of_rows(rows).most_common()),
        margin=0.0,
        smallest=smallest_of(rows),
        cases=frozenset(rows["case_id"]),
    )
