"""Clustering of failing rows: how many root causes there are, and under which condition each shows.

One cause breaks several checks, in several operators and dtypes. So the rows that fail are first looked at together:
the best condition among them takes the failing rows that meet it, whatever they break, as one cluster; the rest is
looked at again. What no condition explains stays together as a cluster without one, for each verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from poolproof.reports.clusters.cluster import Bound, FailureCluster, FailureKind
from poolproof.reports.clusters.conditions import MIN_FAILING, ClusterCondition, best_condition
from poolproof.reports.clusters.members import (
    assign_others,
    checks_of,
    kind_of,
    kinds_of_rows,
    smallest_of,
    without_terms,
)
from poolproof.reports.clusters.terms import AtLeast, Below, FeatureColumn, Mask, columns_of
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.features import READ, feature_table
from poolproof.reports.rows.verdicts import FAILED, Verdict

MAX_CLUSTERS = 8
"""Clusters with a condition that are searched for one backend."""

MAX_FAILING = MAX_CONFORMING = 20_000
"""Rows of one backend that are searched: more would give the same conditions, and take gigabytes."""

_MIN_SHARE = 0.1
"""Share of the cases of a cluster below which another that fails alike is no cluster of its own."""

NEEDED = tuple(dict.fromkeys((*READ, "backend", "verdict", "checks_judged", "checks_violated", "case_id", "shrunk")))
"""Columns that `cluster_failures` reads."""


def cluster_failures(rows: pd.DataFrame) -> tuple[FailureCluster, ...]:
    """Cluster the failing rows of each backend; what explains most failing cases comes first.

    Rows that are waived, refused or were not judged count for nothing. Conditions are sought among at most
    `MAX_FAILING` failing rows of a backend, and then all rows are counted; at most `MAX_CONFORMING` conforming rows are
    looked at.
    """
    relevant = rows[rows["verdict"].isin([*FAILED, Verdict.CONFORMS])].reset_index(drop=True)
    failing = relevant[relevant["verdict"].isin(FAILED)]
    backends = failing["backend"].value_counts().index
    return tuple(cluster for backend in backends for cluster in _of_backend(relevant[relevant["backend"] == backend]))


def _of_backend(rows: pd.DataFrame) -> list[FailureCluster]:
    failing, conforming = rows[rows["verdict"].isin(FAILED)], rows[~rows["verdict"].isin(FAILED)]
    searched, others = least_ids(failing, MAX_FAILING)
    comparable, _ = least_ids(conforming[_is_comparable(conforming, failing)], MAX_CONFORMING)
    search = _Search(pd.concat([searched, comparable]).sort_index().reset_index(drop=True))
    found = assign_others(list(search.cluster_failures()), others)
    return sorted(found, key=lambda cluster: (not cluster.has_condition, -cluster.failing))


def _is_comparable(conforming: pd.DataFrame, failing: pd.DataFrame) -> list[bool]:
    """Select the rows that conform to a check that a failing one breaks."""
    broken = {kind_of(*row)[1] for row in zip(failing["verdict"], failing["checks_violated"], strict=True)}
    if SURVIVAL in broken:
        return [True] * len(conforming)
    return [not broken.isdisjoint(checks_of(judged)) for judged in conforming["checks_judged"]]


def least_ids(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split off at most so many rows: those with the least ids, which are hashes, so the choice is repeatable."""
    if len(rows) <= most:
        return rows, rows.iloc[:0]
    chosen = rows["case_id"].sort_values(kind="stable").index[:most]
    return rows.loc[chosen], rows.drop(index=chosen)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A cluster, the failing rows that are its cases, and the failing rows that do not meet its condition."""

    cluster: FailureCluster
    cases: Mask
    others: Mask

    def merged_with(self, other: _Candidate) -> _Candidate:
        return _Candidate(self.cluster, self.cases | other.cases, self.others)


class _Search:
    """Search for the clusters of one backend's rows; keeps which failing rows have none yet."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows = rows.astype(object)  # columns of text are slow to take rows from
        self._failing = rows["verdict"].isin(FAILED).to_numpy()
        self._kinds = [kind_of(*row) for row in zip(rows["verdict"], rows["checks_violated"], strict=True)]
        self._judged = [frozenset(checks_of(checks)) for checks in rows["checks_judged"]]
        self._columns = columns_of(feature_table(rows))
        self._unassigned = self._failing.copy()

    def cluster_failures(self) -> Iterator[FailureCluster]:
        candidates: list[_Candidate] = []
        while len(candidates) < MAX_CLUSTERS and (found := self._next()) is not None:
            self._unassigned &= ~found.cases
            candidates.append(found)
        distinct = self._distinct(candidates)
        for found in distinct:
            others = [other.cases for other in distinct if other is not found]
            explained = np.logical_or.reduce(others or [~self._failing])
            yield self._with_cases(found.cluster, found.cases, found.others & ~explained)
        yield from self._unexplained()

    def _distinct(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Merge or drop candidates that may have the cause of an earlier one; dropped cases stay unexplained."""
        distinct: list[_Candidate] = []
        for found in candidates:
            kinds = self._kinds_among(found.cases)
            alike = [number for number, other in enumerate(distinct) if kinds <= self._kinds_among(other.cases)]
            vague = [number for number in alike if not distinct[number].cluster.is_sharp]
            if found.cluster.is_sharp or not alike:
                distinct.append(found)
            elif vague:
                distinct[vague[0]] = distinct[vague[0]].merged_with(found)
            elif any(found.cluster.failing <= _MIN_SHARE * distinct[number].cluster.failing for number in alike):
                self._unassigned |= found.cases
            else:
                distinct.append(found)
        return distinct

    def _kinds_among(self, group: Mask) -> set[FailureKind]:
        return {self._kinds[number] for number in np.flatnonzero(group)}

    def _with_cases(self, cluster: FailureCluster, group: Mask, others: Mask) -> FailureCluster:
        rows = self._rows[group]
        return replace(
            cluster,
            failing_others=int(others.sum()),
            kinds=tuple(kinds_of_rows(rows).most_common()),
            smallest=smallest_of(rows),
            cases=frozenset(rows["case_id"]),
        )

    def _next(self) -> _Candidate | None:
        """Return the candidate that explains most of the rest; None where nothing is left or no condition is found."""
        tried: list[_Candidate] = []
        for group in self._groups():
            tried += filter(None, [self._candidate(group)])
            if tried and tried[0].cluster.is_exact:
                break  # nothing explains more
        return max(tried, key=lambda found: found.cluster.margin, default=None)

    def _groups(self) -> Iterator[Mask]:
        """Yield the rest as a whole, and its most frequent kind, where there are others."""
        if not self._unassigned.any():
            return
        yield self._unassigned.copy()
        kinds = Counter(self._kinds[number] for number in np.flatnonzero(self._unassigned))
        if len(kinds) > 1:
            most = kinds.most_common(1)[0][0]
            yield self._unassigned & np.array([kind == most for kind in self._kinds])

    def _candidate(self, group: Mask) -> _Candidate | None:
        """Return the candidate that a group of failing rows leads to."""
        judged = np.flatnonzero(group | self._conforming(group))
        fails = group[judged]
        if fails.all():
            everything = _Candidate(self._without_terms(group, has_condition=True), group, np.zeros_like(group))
            return everything if group.sum() >= MIN_FAILING else None
        columns = [part for column in self._columns if (part := column.at(judged)).varies]
        found = best_condition(columns, fails)
        if found is None or not found.is_significant:
            return None
        taken = np.zeros(len(self._rows), np.bool_)
        taken[judged[found.mask & fails]] = True
        bounds = _bounds(found, {column.feature: column for column in columns}, fails)
        return _Candidate(self._cluster(found, bounds, taken, fails), taken, group & ~taken)

    def _conforming(self, group: Mask) -> Mask:
        """Select the rows that conform and judged a check which some of the group break."""
        broken = {self._kinds[number][1] for number in np.flatnonzero(group)}
        survived = SURVIVAL in broken
        judged = [bool(checks) and (survived or not broken.isdisjoint(checks)) for checks in self._judged]
        return ~self._failing & np.array(judged, np.bool_)

    def _cluster(self, found: ClusterCondition, bounds: tuple[Bound, ...], taken: Mask, fails: Mask) -> FailureCluster:
        return FailureCluster(
            backend=str(self._rows["backend"].iloc[0]),
            has_condition=True,
            terms=found.terms,
            failing=found.failing,
            conforming=found.conforming,
            failing_others=int(fails.sum()) - found.failing,
            conforming_others=int((~fails).sum()) - found.conforming,
            ties=found.ties,
            bounds=bounds,
            kinds=tuple(kinds_of_rows(self._rows[taken]).most_common()),
            margin=found.margin,
            smallest=smallest_of(self._rows[taken]),
            cases=frozenset(self._rows["case_id"][taken]),
        )

    def _unexplained(self) -> Iterator[FailureCluster]:
        verdicts = self._rows["verdict"].to_numpy(object)
        for verdict in dict.fromkeys(verdicts[self._unassigned]):
            yield self._without_terms(self._unassigned & (verdicts == verdict), has_condition=False)

    def _without_terms(self, group: Mask, *, has_condition: bool) -> FailureCluster:
        return without_terms(self._rows[group], int(self._conforming(group).sum()), has_condition=has_condition)


def _bounds(found: ClusterCondition, columns: dict[str, FeatureColumn], fails: Mask) -> tuple[Bound, ...]:
    """Return what was observed beside each threshold among the rows that meet the other terms."""
    made = []
    for number, term in enumerate(found.terms):
        others = [other.holds(columns[other.feature]) for place, other in enumerate(found.terms) if place != number]
        rest = np.logical_and.reduce(others) if others else np.ones(len(fails), np.bool_)
        column = columns[term.feature]
        within, beyond = column.distinct(found.mask & fails), column.distinct(rest & ~fails & ~term.holds(column))
        match term:
            case AtLeast():
                made.append(Bound(term.feature, int(within[0]), int(beyond[-1]) if len(beyond) else None))
            case Below():
                made.append(Bound(term.feature, int(within[-1]), int(beyond[0]) if len(beyond) else None))
            case _:
                pass
    return tuple(made)
