"""Clustering of failing rows: the number of root causes, and the condition of each.

One cause may break several checks, in several operators and dtypes. So the search begins with all failing rows. The
best condition makes the failing rows that meet it one cluster, whatever they break; the search goes on with the rest.
Rows without a condition form a cluster for each kind of failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import compress
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.clusters.cluster import (
    SIZED,
    Bound,
    Counts,
    FailureCluster,
    FailureKind,
    is_independent,
    is_planned,
    kind_of,
    size_of,
)
from poolproof.reports.clusters.conditions import MIN_FAILING, SHARP, best_condition
from poolproof.reports.clusters.describing import SCOPES, probe_lines
from poolproof.reports.clusters.terms import AT_LEAST, Mask, Term, feature_columns, varying
from poolproof.reports.rows.checks import SURVIVAL
from poolproof.reports.rows.features import READ
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows, read_run
from poolproof.reports.rows.verdicts import FAILED, Verdict

MAX_CLUSTERS = 8
"""Most clusters with a condition for one backend."""

MAX_SEARCHED = 20_000
"""Most failing and most conforming rows of a backend to search: more give the same conditions."""

_OF_ROWS = ("backend", "aspect", "block", "verdict", "checks_judged", "checks_violated", "case_id", "reason")

NEEDED = tuple(dict.fromkeys((*READ, *SIZED, *_OF_ROWS)))
"""Columns that `cluster_failures` reads."""


def clusters_of(folder: Path, failed: Set[Verdict] = FAILED) -> tuple[FailureCluster, ...]:
    """Return clusters of a run's ``failed`` rows, each with the whole row of its smallest case.

    `NotARun` is raised if the folder is none.
    """
    has_failed = having("verdict", failed)
    failing = read_rows(folder, NEEDED, has_failed)
    rows, unsearched, silent = list[Row](), dict[str, int](), dict[str, Counter[str]]()
    for backend in pc.unique(failing["backend"]).to_pylist():
        own = failing.filter(pc.field("backend") == backend)
        searched = _least_ids(own).to_pylist()
        broken = {check for _, check in map(kind_of, searched)}
        conforming = read_rows(folder, NEEDED, having("backend", [backend]) & having("verdict", [Verdict.CONFORMS]))
        speak = pa.array([_speaks_of(broken, checks) for checks in conforming["checks_judged"].to_pylist()], pa.bool_())
        rows += searched + _least_ids(conforming.filter(speak)).to_pylist()
        silent[backend] = Counter(conforming.filter(pc.invert(speak))["aspect"].to_pylist())
        unsearched[backend] = len(own) - len(searched)
    clusters = cluster_failures(rows, unsearched, failed)
    chosen = having("case_id", {cluster.smallest["case_id"] for cluster in clusters})
    identity = itemgetter("backend", "aspect", "case_id")
    whole = {identity(row): row for row in read_rows(folder, where=chosen & has_failed).to_pylist()} if clusters else {}
    probes = read_run(folder).get("probes", {})
    return tuple(
        replace(
            cluster,
            members=(whole[identity(cluster.smallest)], *cluster.members[1:]),
            probed=probe_lines(cluster, probes),
            passing=tuple(silent[cluster.backend].most_common()) if len(clusters) == 1 else (),
        )
        for cluster in clusters
    )


def _least_ids(rows: pa.Table) -> pa.Table:
    """Return at most `MAX_SEARCHED` rows, those with the least ids: hashes, so the choice is repeatable."""
    return rows.take(pc.sort_indices(rows["case_id"])[:MAX_SEARCHED]) if len(rows) > MAX_SEARCHED else rows


def _speaks_of(broken: set[str], checks_judged: Sequence[str] | None) -> bool:
    """Tell whether a row's checks include a broken one; if survival broke, any check will do."""
    own = checks_judged or ()
    return len(own) > 0 and (SURVIVAL in broken or not broken.isdisjoint(own))


def open_clusters(found: Iterable[FailureCluster]) -> list[FailureCluster]:
    """Return the clusters that further cases can narrow down, without those of every case."""
    return [cluster for cluster in found if cluster.terms or not cluster.has_condition]


def cluster_failures(
    rows: Iterable[Row], unsearched: Mapping[str, int] | None = None, failed: Set[Verdict] = FAILED
) -> tuple[FailureCluster, ...]:
    """Return clusters of each backend's ``failed`` rows; those that explain most failing cases come first.

    They are compared with the conforming rows; other rows do not count. ``unsearched`` is the number of failing rows by
    backend that are not among these.
    """
    by_backend: dict[str, list[Row]] = {}
    judged = (row for row in rows if row["verdict"] in failed or row["verdict"] == Verdict.CONFORMS)
    for row in sorted(judged, key=itemgetter("case_id")):
        by_backend.setdefault(row["backend"], []).append(row)
    clusters = [
        cluster
        for backend, own in by_backend.items()
        for cluster in _Search(own, (unsearched or {}).get(backend, 0)).clusters()
    ]
    return tuple(sorted(clusters, key=lambda cluster: (not cluster.has_condition, -len(cluster.members))))


@dataclass(eq=False)
class _Candidate:
    """A cluster during the search.

    Attributes:
        group: Failing rows among which it was found.
        compared: These, and the conforming rows that were compared with them.
        met: Rows of them that meet the condition.
        cases: Failing rows that it explains.
    """

    condition: tuple[Term, ...] | None
    group: Mask
    compared: Mask
    met: Mask
    cases: Mask
    margin: float = 0.0


class _Search:
    """Search for the clusters of one backend's rows; keeps the failing rows without a cluster."""

    def __init__(self, rows: Sequence[Row], unsearched: int) -> None:
        self._rows, self._unsearched = rows, unsearched
        self._failing = np.array([row["verdict"] != Verdict.CONFORMS for row in rows], np.bool_)
        self._planned = np.array([is_planned(row) for row in rows], np.bool_)
        self._independent = np.array([is_independent(row) for row in rows], np.bool_)
        self._kinds = [kind_of(row) for row in rows]
        self._columns = feature_columns(rows) if self._failing.any() else {}
        self._unassigned = self._failing.copy()

    def clusters(self) -> Iterator[FailureCluster]:
        candidates: list[_Candidate] = []
        while len(candidates) < MAX_CLUSTERS and self._unassigned.any() and (found := self._next()) is not None:
            self._unassigned = self._unassigned & ~found.cases
            candidates.append(found)
        distinct = self._distinct(candidates)
        for found in distinct:
            further = [other.cases for other in distinct if other is not found]
            yield self._cluster(found, self._counts(found, np.logical_or.reduce(further or [~self._failing])))
        parts = [self._unassigned & self._is_of(kind) for kind in self._kinds_among(self._unassigned)]
        if not all(map(self._is_nearly_every_case, parts)) and self._is_nearly_every_case(self._unassigned):
            parts = [self._unassigned]
        for part in parts:
            left = self._of(() if self._is_nearly_every_case(part) else None, part)
            yield self._cluster(left, self._counts(left, part))

    def _is_nearly_every_case(self, group: Mask) -> bool:
        """Tell whether these rows are nearly all independent rows that the broken checks judged."""
        failing, judged = (int((rows & self._independent).sum()) for rows in (group, self._of((), group).compared))
        return failing >= max(MIN_FAILING, SHARP * judged)

    def _distinct(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Merge a vague candidate with an earlier one of the same kinds of failures: probably one cause."""
        distinct: list[_Candidate] = []
        sharp = {id(found): self._counts(found, found.cases).is_sharp for found in candidates}
        kinds = {id(found): self._kinds_of_plan(found.cases) for found in candidates}
        for found in candidates:
            alike = [other for other in distinct if kinds[id(found)] <= kinds[id(other)]]
            if sharp[id(found)] or not alike:
                distinct.append(found)
            else:
                first = min(alike, key=lambda other: sharp[id(other)])
                first.cases = first.cases | found.cases
        return distinct

    def _next(self) -> _Candidate | None:
        """Return the candidate that explains most of the rest, or of its most frequent kind; None if there is none."""
        whole = self._candidate(self._unassigned)
        kinds = self._kinds_among(self._unassigned)
        if len(kinds) == 1 or (whole and not (whole.met & ~whole.group).any()):  # nothing explains more
            return whole
        is_most_frequent = self._is_of(kinds.most_common(1)[0][0])
        tried = filter(None, [whole, self._candidate(self._unassigned & is_most_frequent)])
        return max(tried, key=lambda found: found.margin, default=None)

    def _candidate(self, group: Mask) -> _Candidate | None:
        """Return the best condition of a group of failing rows; an empty one without rows to compare."""
        all_of_them = self._of((), group)
        judged = np.flatnonzero(all_of_them.compared)
        fails = group[judged]
        if fails.all():
            return all_of_them if len(fails) >= MIN_FAILING else None
        best = best_condition(varying(self._columns, judged), fails, self._independent[judged])
        if best is None:
            return None
        (terms, mask, margin), met = best, np.zeros(len(self._rows), np.bool_)
        met[judged] = mask
        return _Candidate(terms, group, all_of_them.compared, met, met & group, margin)

    def _of(self, condition: tuple[Term, ...] | None, group: Mask) -> _Candidate:
        """Return the candidate of a group's failing rows, compared with conforming rows that the same checks judged."""
        broken = {check for _, check in self._kinds_among(group)}
        speak = np.array([_speaks_of(broken, row["checks_judged"]) for row in self._rows], np.bool_)
        compared = group | (~self._failing & speak)
        return _Candidate(condition, group, compared, compared, group)

    def _is_of(self, kind: FailureKind) -> Mask:
        return np.array([each == kind for each in self._kinds], np.bool_)

    def _kinds_among(self, group: Mask) -> Counter[FailureKind]:
        return Counter(compress(self._kinds, group))

    def _kinds_of_plan(self, group: Mask) -> Set[FailureKind]:
        planned = group & self._planned
        return self._kinds_among(planned if planned.any() else group).keys()

    def _counts(self, found: _Candidate, explained: Mask) -> Counts:
        """Return the counts of a candidate; ``explained`` are the failing rows of other clusters."""
        fails, conforms = found.met & found.group, found.met & ~found.group
        contrasting, terms = found.compared & ~found.group & self._independent, found.condition or ()
        return Counts(
            failing=int((fails & self._planned).sum()),
            conforming=int((conforms & self._planned).sum()),
            further=(int((fails & ~self._planned).sum()), int((conforms & ~self._planned).sum())),
            contrast=tuple(
                int((self._meeting((*terms[:at], term.negated, *terms[at + 1 :])) & contrasting).sum())
                for at, term in enumerate(terms)
            ),
            others=int((found.group & ~found.met & self._planned & ~explained).sum()),
            elsewhere=int((self._failing & ~found.met & self._planned).sum()),
        )

    def _cluster(self, found: _Candidate, counts: Counts) -> FailureCluster:
        members = self._chosen(found.cases)
        members.insert(0, members.pop(members.index(min(members, key=size_of))))
        compared = self._chosen(found.compared & self._independent)
        is_about_members = found.condition is None and len(members) < MIN_FAILING
        common = {column: {row[column] for row in (members if is_about_members else compared)} for column in SCOPES}
        scope = tuple((column, *values) for column, values in common.items() if len(values) == 1)
        bounds = tuple(self._bounds(found))
        cluster = FailureCluster(found.condition, tuple(members), counts, scope, bounds, self._unsearched)
        return cluster if cluster.has_condition else self._by_clause(cluster, compared)

    @staticmethod
    def _by_clause(cluster: FailureCluster, compared: Sequence[Row]) -> FailureCluster:
        """Add the numbers of cases per clause, if all failing cases have one, and some clauses do not fail."""
        cases_of = Counter(row.get("clause") for row in compared if row.get("clause"))
        failing = Counter(row.get("clause") for row in cluster.members if is_planned(row))
        clauses = [(name, fails, cases_of[name]) for name, fails in failing.most_common() if name]
        if not clauses or len(clauses) < len(failing) or len(clauses) == len(cases_of):
            return cluster
        return replace(cluster, clauses=tuple(clauses), clauses_asked=len(cases_of))

    def _chosen(self, mask: Mask) -> list[Row]:
        return list(compress(self._rows, mask))

    def _bounds(self, found: _Candidate) -> Iterator[Bound]:
        """Yield the observed values beside each threshold, among the rows that meet the other terms."""
        terms, conforms = found.condition or (), found.compared & ~found.group
        for at, term in enumerate(terms):
            if term.is_threshold:
                column = self._columns[term.feature]
                opposite = self._meeting((*terms[:at], *terms[at + 1 :])) & conforms & ~term.holds(column)
                within, beyond = column.distinct(found.met & found.group), column.distinct(opposite)
                fails_at, conforms_at = (0, -1) if term.relation == AT_LEAST else (-1, 0)
                yield Bound(term.feature, int(within[fails_at]), int(beyond[conforms_at]) if len(beyond) else None)

    def _meeting(self, terms: Iterable[Term]) -> Mask:
        held = [term.holds(self._columns[term.feature]) for term in terms]
        return np.logical_and.reduce(held) if held else np.ones(len(self._rows), np.bool_)
