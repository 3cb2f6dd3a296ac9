"""The failing rows of a suspect: how they fail, which is smallest, and those that were too many to be searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from poolproof.reports.clusters.case_fields import cells, leading_of, read_case, windows_of
from poolproof.reports.clusters.cluster import FailureCluster, FailureKind
from poolproof.reports.clusters.features import feature_table
from poolproof.reports.clusters.terms import Mask, Term, columns_of
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.failures import is_shrunk, smallest_case
from poolproof.reports.rows.schema import Row

AT_ONCE = 20_000
"""Rows whose features are made at a time: those of a million would take gigabytes."""

SIZED = ("operator", "case", "shrunk")
"""Columns that `size_of` reads."""


def kind_of(verdict: str, violated: Any) -> FailureKind:
    return verdict, next(iter(checks_of(violated)), SURVIVAL)


def checks_of(told: Any) -> Sequence[str]:
    """The names of a column of checks, which is empty or no list where none could tell."""
    return () if told is None or isinstance(told, float) else told


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Whether the case of a row was not made smaller, then its elements, its windows, and the length of its line."""
    line, operator = smallest_case(row), str(row["operator"])
    windows = windows_of(operator, case := read_case(line))
    if windows is None:
        return not is_shrunk(row), float("inf"), float("inf"), len(line)
    planes = cells(leading_of(operator, case))
    return not is_shrunk(row), planes * cells(windows.size), planes * cells(windows.count), len(line)


def smallest_of(rows: pd.DataFrame) -> Row:
    """The row whose case is smallest."""
    sized = rows.reindex(columns=SIZED).to_numpy(object).tolist()
    sizes = [size_of(dict(zip(SIZED, told, strict=True))) for told in sized]
    (row,) = rows.iloc[[sizes.index(min(sizes))]].to_dict("records")
    return {str(name): value for name, value in row.items()}


def kinds_of_rows(rows: pd.DataFrame) -> Counter[FailureKind]:
    return Counter(kind_of(*row) for row in zip(rows["verdict"], rows["checks_violated"], strict=True))


def with_others(found: Sequence[FailureCluster], others: pd.DataFrame) -> list[FailureCluster]:
    """The suspects of some failing rows with the ``others`` of their backend, each of which is of the first it meets.

    What meets none is of one without a condition: those of its verdict, or a new one.
    """
    told = list(found)
    for start in range(0, len(others), AT_ONCE):
        told = list(_with_some(told, others.iloc[start : start + AT_ONCE]))
    return told


def _with_some(found: Sequence[FailureCluster], rows: pd.DataFrame) -> Iterator[FailureCluster]:
    columns = {column.feature: column for column in columns_of(feature_table(rows))}
    left = np.ones(len(rows), np.bool_)

    def meeting(terms: Sequence[Term]) -> Mask:
        met = left.copy()
        for term in terms:
            met &= term.holds(columns[term.feature]) if term.feature in columns else False
        return met

    claimed = []
    for cluster in [each for each in found if each.has_condition]:
        taken = meeting(cluster.terms)
        left &= ~taken
        claimed.append(_grown(cluster, rows[taken]))
    yield from (replace(each, failing_others=each.failing_others + int(left.sum())) for each in claimed)
    without = {cluster.smallest["verdict"]: cluster for cluster in found if not cluster.has_condition}
    rest = {str(verdict): part for verdict, part in rows[left].groupby("verdict", sort=False)}
    for verdict in dict.fromkeys([*without, *rest]):
        part = rest.get(verdict, rows.iloc[:0])
        yield _grown(without[verdict], part) if verdict in without else unexplained(part)


def _grown(cluster: FailureCluster, rows: pd.DataFrame) -> FailureCluster:
    """The suspect with more failing rows of its own."""
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
    """Failing rows for which no condition is claimed."""
    return without_terms(rows, 0, has_condition=False)


def without_terms(rows: pd.DataFrame, conforming_others: int, *, has_condition: bool) -> FailureCluster:
    """Failing rows as a suspect without a condition, beside so many rows that conform."""
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
