"""Clustering of failing rows: how many root causes there are, and under which condition each shows.

One cause breaks several checks, in several operators and dtypes. So the rows that fail are first looked at together:
the best condition among them takes the failing rows that meet it, whatever they break, as one cluster; the rest is
looked at again. What no condition explains stays together as a cluster without one, for each verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.clusters.cluster import SCOPES, Bound, FailureCluster, FailureKind
from poolproof.reports.clusters.conditions import MIN_FAILING, ClusterCondition, best_condition
from poolproof.reports.clusters.places import LiesAt, ends_of, way_astray
from poolproof.reports.clusters.terms import AT_LEAST, FeatureColumn, Mask, Term, feature_column, varying
from poolproof.reports.rows.checks import DIAGNOSIS, SURVIVAL
from poolproof.reports.rows.failures import is_shrunk, smallest_case
from poolproof.reports.rows.features import READ, feature_table, geometry_of, read_case
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows, read_run
from poolproof.reports.rows.verdicts import FAILED, Verdict

MAX_CLUSTERS = 8
"""Clusters with a condition that are searched for one backend."""

MAX_FAILING = MAX_CONFORMING = 20_000
"""Rows of one backend that are searched: more would give the same conditions, and take gigabytes."""

MAX_READ = 200_000
"""Conforming rows of a run that are read."""

_OWN = ("backend", "verdict", "checks_judged", "checks_violated", "case_id", "shrunk", "decoded_faults", "findings")
NEEDED = tuple(dict.fromkeys((*READ, *_OWN)))
"""Columns that `cluster_failures` reads."""


def clusters_of(folder: Path, counts_all: bool = True) -> tuple[FailureCluster, ...]:
    """Cluster the failing rows of a run, with the whole row of each smallest case; `NotARun` if the folder is none.

    ``counts_all`` as in `cluster_failures`.
    """
    has_failed = having("verdict", FAILED)
    failing = read_rows(folder, NEEDED, has_failed)
    if not failing.num_rows:
        return ()
    conforming = read_rows(folder, NEEDED, having("verdict", [Verdict.CONFORMS]))
    if conforming.num_rows > MAX_READ:  # those with the least ids, which are hashes, so the choice is repeatable
        conforming = conforming.take(pc.sort_indices(conforming["case_id"])[:MAX_READ])
    found = cluster_failures(pa.concat_tables([failing, conforming]).to_pandas(), counts_all)
    chosen = having("case_id", {cluster.smallest["case_id"] for cluster in found})
    identity = itemgetter("backend", "aspect", "case_id")
    whole = {identity(row): row for row in read_rows(folder, where=chosen & has_failed).to_pylist()}
    probes = read_run(folder).get("probes", {})
    return tuple(
        replace(cluster, smallest=whole[identity(cluster.smallest)], probed=_probed(cluster, probes))
        for cluster in found
    )


def _probed(cluster: FailureCluster, probes: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """Say what the probe found of a cluster's sums that no declared model admits, each with its evidence.

    "the probe of float16: no model admits this rounding: toward zero (predicts 3047 of 3047 sums of two)". Where exact
    data do not arrive, nothing follows from others.
    """
    for account in probes.get(cluster.backend, ()) if cluster.is_about_sums else ():
        seen = {each["trait"]: each for each in account["observations"]}
        arrive = seen.get("exact data", {}).get("found") == "right"
        if arrive and (account["operator"], account["dtype"]) == cluster.place:
            said = []
            for sentence in account["disagreements"]:
                told = [each["evidence"] for each in seen.values() if f"{each['trait']}: {each['found']}" in sentence]
                if not sentence.startswith("declared "):  # that, the failing cases have said
                    said.append("".join([sentence, *(f" ({evidence})" for evidence in told if evidence)]))
            if account["model"] not in ("", account["declared"]):
                said.append(f"{account['model']} admits all that was seen, declared is {account['declared']}")
            return tuple(f"the probe of {' in '.join(cluster.place)}: {sentence}" for sentence in said)
    return ()


def open_clusters(found: Iterable[FailureCluster]) -> list[FailureCluster]:
    """Select the clusters that further cases can narrow down: not those that every case meets."""
    return [cluster for cluster in found if cluster.terms or not cluster.has_condition]


def cluster_failures(rows: pd.DataFrame, counts_all: bool = True) -> tuple[FailureCluster, ...]:
    """Cluster the failing rows of each backend; what explains most failing cases comes first.

    Rows that are waived, refused or were not judged count for nothing. Conditions are sought among at most
    `MAX_FAILING` failing and `MAX_CONFORMING` conforming rows of a backend, and then all rows are counted: of the
    conforming ones those alone unless it ``counts_all``, which takes longer than the search.
    """
    relevant = rows[rows["verdict"].isin([*FAILED, Verdict.CONFORMS])].reset_index(drop=True)
    failing = relevant[relevant["verdict"].isin(FAILED)]
    backends = failing["backend"].value_counts().index
    return tuple(
        cluster for backend in backends for cluster in _of_backend(relevant[relevant["backend"] == backend], counts_all)
    )


def _of_backend(rows: pd.DataFrame, counts_all: bool) -> list[FailureCluster]:
    failing, conforming = rows[rows["verdict"].isin(FAILED)], rows[~rows["verdict"].isin(FAILED)]
    searched, others = least_ids(failing, MAX_FAILING)
    broken = {check for _, check in _kinds(failing)}
    comparable, unseen = least_ids(conforming[_speak_of(broken, conforming)], MAX_CONFORMING)
    search = _Search(pd.concat([searched, comparable]).sort_index().reset_index(drop=True))
    found = list(search.cluster_failures())
    for start in range(0, len(others), CHUNK_ROWS):
        found = list(_assign(found, others.iloc[start : start + CHUNK_ROWS]))
    for start in range(0, len(unseen) if counts_all else 0, CHUNK_ROWS):
        found = list(_with_conforming(found, unseen.iloc[start : start + CHUNK_ROWS]))
    return sorted(found, key=lambda cluster: (not cluster.has_condition, -len(cluster.cases)))


def least_ids(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split off at most so many rows: those with the least ids, which are hashes, so the choice is repeatable."""
    if len(rows) <= most:
        return rows, rows.iloc[:0]
    chosen = rows["case_id"].sort_values(kind="stable").index[:most]
    return rows.loc[chosen], rows.drop(index=chosen)


def _speak_of(broken: set[str], rows: pd.DataFrame) -> Mask:
    """Select the rows whose checks could have shown that some are broken: any check, if that is survival."""
    judged = map(_checks, rows["checks_judged"])
    speak = [len(own) > 0 and (SURVIVAL in broken or not broken.isdisjoint(own)) for own in judged]
    return np.array(speak, np.bool_)


@dataclass(eq=False)
class _Candidate:
    """A cluster, the failing rows that are its cases, and those of the plan that do not meet its condition."""

    cluster: FailureCluster
    cases: Mask
    others: Mask


class _Search:
    """Search for the clusters of one backend's rows; keeps which failing rows have none yet."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows = rows.astype(object)  # columns of text are slow to take rows from
        self._failing = rows["verdict"].isin(FAILED).to_numpy()
        self._planned = _are_planned(rows)
        self._kinds = _kinds(rows)
        self._columns = _columns_of(rows)
        self._unassigned = self._failing.copy()

    def cluster_failures(self) -> Iterator[FailureCluster]:
        candidates: list[_Candidate] = []
        while len(candidates) < MAX_CLUSTERS and self._unassigned.any() and (found := self._next()) is not None:
            self._unassigned = self._unassigned & ~found.cases
            candidates.append(found)
        distinct = self._distinct(candidates)
        for found in distinct:
            others = [other.cases for other in distinct if other is not found]
            explained = np.logical_or.reduce(others or [~self._failing])
            members = vars(_cluster_of(self._rows[found.cases]))
            own = {name: members[name] for name in ("kinds", "smallest", "cases", "astray", "ends")}
            yield replace(found.cluster, failing_others=int((found.others & ~explained).sum()), **own)
        for kind in self._kinds_among(self._unassigned):
            left = self._unassigned & self._is_of(kind)
            conforming = self._conforming(left)
            number, scope = int((conforming & self._planned).sum()), self._scope(left | conforming)
            cluster = _cluster_of(self._rows[left], has_condition=False, conforming=number, scope=scope)
            yield replace(cluster, has_condition=cluster.failing >= MIN_FAILING and cluster.is_sharp)

    def _distinct(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Merge a vague candidate with an earlier one that fails alike: one symptom is one cause, as far as known."""
        distinct: list[_Candidate] = []
        for found in candidates:
            kinds = dict(found.cluster.kinds).keys()
            alike = [other for other in distinct if kinds <= dict(other.cluster.kinds).keys()]
            if found.cluster.is_sharp or not alike:
                distinct.append(found)
            else:
                first = min(alike, key=lambda other: other.cluster.is_sharp)
                first.cases = first.cases | found.cases
        return distinct

    def _next(self) -> _Candidate | None:
        """Return the candidate that explains most of the rest, or of its most frequent kind; None if there is none."""
        whole = self._candidate(self._unassigned)
        kinds = self._kinds_among(self._unassigned)
        if len(kinds) == 1 or (whole and whole.cluster.is_exact):  # nothing explains more
            return whole
        is_most_frequent = self._is_of(kinds.most_common(1)[0][0])
        tried = filter(None, [whole, self._candidate(self._unassigned & is_most_frequent)])
        return max(tried, key=lambda found: found.cluster.margin, default=None)

    def _is_of(self, kind: FailureKind) -> Mask:
        return np.array([each == kind for each in self._kinds])

    def _kinds_among(self, group: Mask) -> Counter[FailureKind]:
        return Counter(self._kinds[number] for number in np.flatnonzero(group))

    def _candidate(self, group: Mask) -> _Candidate | None:
        judged = np.flatnonzero(group | self._conforming(group))
        fails = group[judged]
        if fails.all():
            cluster = _cluster_of(self._rows[group], scope=self._scope(group))
            return _Candidate(cluster, group, np.zeros_like(group)) if group.sum() >= MIN_FAILING else None
        columns, planned = varying(self._columns, judged), self._planned[judged]
        found = best_condition(columns, fails, planned)
        if found is None:
            return None
        taken = np.zeros(len(self._rows), np.bool_)
        taken[judged[found.mask & fails]] = True
        cluster = _cluster_of(
            self._rows[taken],
            terms=found.terms,
            conforming=int((found.mask & ~fails & planned).sum()),
            further=tuple(int((found.mask & ~planned & ends).sum()) for ends in (fails, ~fails)),
            contrast=found.contrast,
            ties=found.ties,
            bounds=_bounds(found, columns, fails),
            margin=found.margin,
            scope=self._scope(group | self._conforming(group)),
        )
        return _Candidate(cluster, taken, group & ~taken & self._planned)

    def _scope(self, compared: Mask) -> tuple[tuple[str, str], ...]:
        """Return (column, value) of what rows that are compared have in common, those of diagnosis left out."""
        planned = self._rows[compared & self._planned]
        return tuple((column, values[0]) for column in SCOPES if len(values := planned[column].unique()) == 1)

    def _conforming(self, group: Mask) -> Mask:
        """Select the rows that conform and judged a check which some of the group break."""
        broken = {check for _, check in self._kinds_among(group)}
        return ~self._failing & _speak_of(broken, self._rows)


def _bounds(found: ClusterCondition, columns: dict[str, FeatureColumn], fails: Mask) -> tuple[Bound, ...]:
    """Return what was observed beside each threshold among the rows that meet the other terms."""
    made = []
    for number, term in enumerate(found.terms):
        if term.is_threshold:
            column, others = columns[term.feature], found.terms[:number] + found.terms[number + 1 :]
            rest = [other.holds(columns[other.feature]) for other in others]
            within = column.distinct(found.mask & fails)
            beyond = column.distinct(np.logical_and.reduce([~fails, ~term.holds(column), *rest]))
            fails_at, conforms_at = (0, -1) if term.relation == AT_LEAST else (-1, 0)
            conforms = int(beyond[conforms_at]) if len(beyond) else None
            made.append(Bound(term.feature, int(within[fails_at]), conforms))
    return tuple(made)


CHUNK_ROWS = 20_000
"""Rows whose features are made at a time: those of a million would take gigabytes."""

SIZED = ("operator", "case", "shrunk")
"""Columns that `size_of` reads."""


def _are_planned(rows: pd.DataFrame) -> Mask:
    """Return which rows are of the plan: diagnosis makes the others, from cases that fail."""
    return (rows["aspect"] != DIAGNOSIS).to_numpy(np.bool_)


def _kinds(rows: pd.DataFrame) -> list[FailureKind]:
    pairs = zip(rows["verdict"], rows["checks_violated"], strict=True)
    return [(verdict, next(iter(_checks(violated)), SURVIVAL)) for verdict, violated in pairs]


def _checks(value: Any) -> Sequence[str]:
    """Return the names of a column of checks; empty where it is no list."""
    return () if value is None or isinstance(value, float) else value


def size_of(row: Row) -> tuple[bool, float, float, int]:
    """Return the sort key of a row's case: whether it was not shrunk, its elements, windows, and length of line."""
    line = smallest_case(row)
    call = geometry_of(str(row["operator"]), read_case(line))
    elements, windows = (call.planes * prod(call.size), call.planes * prod(call.count)) if call else (inf, inf)
    return not is_shrunk(row), elements, windows, len(line)


def _astray(rows: pd.DataFrame) -> Counter[str]:
    """Count what became of gradients in the cases that the decoder reads."""
    decoded = rows.reindex(columns=["operator", "decoded_faults"]).itertuples(index=False)
    return Counter(way for row in decoded if (way := way_astray(*row)))


def _ends(rows: pd.DataFrame) -> Counter[LiesAt]:
    named = rows.reindex(columns=["operator", "case", "findings"]).to_dict("records")
    return Counter(end for row in named for end in ends_of({str(name): value for name, value in row.items()}))


def _cluster_of(rows: pd.DataFrame, *, has_condition: bool = True, **about: Any) -> FailureCluster:
    """Make a cluster of failing rows, with what is known ``about`` its condition and the other rows."""
    planned = _are_planned(rows)
    sizes = [size_of(dict(zip(SIZED, row, strict=True))) for row in rows.reindex(columns=SIZED).to_numpy(object)]
    (smallest,) = rows.iloc[[sizes.index(min(sizes))]].to_dict("records")
    further = int((~planned).sum())
    known: dict[str, Any] = {"failing": len(rows) - further, "further": (further, 0)} | about
    return FailureCluster(
        backend=str(rows["backend"].iloc[0]),
        has_condition=has_condition,
        kinds=tuple(Counter(_kinds(rows[planned] if planned.any() else rows)).most_common()),
        smallest={str(name): value for name, value in smallest.items()},
        cases=frozenset(rows["case_id"]),
        astray=tuple(_astray(rows).most_common()),
        ends=tuple(_ends(rows).items()),
        **known,
    )


def _assign(found: Sequence[FailureCluster], rows: pd.DataFrame) -> Iterator[FailureCluster]:
    """Add further failing rows of the backend, each to the first cluster whose condition it meets.

    What meets none joins the cluster of its verdict without a condition, or makes a new one.
    """
    columns, left = _columns_of(rows), np.ones(len(rows), np.bool_)
    enlarged = []
    for cluster in filter(lambda cluster: cluster.has_condition, found):
        taken = _meeting(cluster.terms, columns, left)
        left = left & ~taken
        enlarged.append(_enlarged(cluster, rows[taken]))
    others = int((left & _are_planned(rows)).sum())
    yield from (replace(cluster, failing_others=cluster.failing_others + others) for cluster in enlarged)
    without = {cluster.kinds[0][0]: cluster for cluster in found if not cluster.has_condition}
    kinds = pd.Series(_kinds(rows[left]), rows.index[left], dtype=object)
    for kind in dict.fromkeys([*without, *kinds]):
        added = rows.loc[kinds.index[[each == kind for each in kinds]]]
        yield _enlarged(without[kind], added) if kind in without else _cluster_of(added, has_condition=False)


def _with_conforming(found: Sequence[FailureCluster], rows: pd.DataFrame) -> Iterator[FailureCluster]:
    """Count further conforming rows of the backend for each cluster: a sentence is as good as its exceptions."""
    columns, are_planned = _columns_of(rows), _are_planned(rows)
    for cluster in found:
        broken = {check for (_, check), _ in cluster.kinds}
        speaks = _speak_of(broken, rows)
        terms, planned = cluster.terms, speaks & are_planned
        contrast = [
            count + _meeting((*terms[:number], terms[number].negated, *terms[number + 1 :]), columns, planned).sum()
            for number, count in enumerate(cluster.contrast)
        ]
        yield replace(
            cluster,
            conforming=cluster.conforming + int(_meeting(terms, columns, planned).sum()),
            further=(cluster.further[0], cluster.further[1] + int(_meeting(terms, columns, speaks & ~planned).sum())),
            contrast=tuple(map(int, contrast)),
        )


def _columns_of(rows: pd.DataFrame) -> dict[str, FeatureColumn]:
    return {name: feature_column(name, values) for name, values in feature_table(rows).items()}


def _meeting(terms: Iterable[Term], columns: Mapping[str, FeatureColumn], among: Mask) -> Mask:
    """Select of the rows ``among`` those in which all terms hold; one about a feature that no row has holds in none."""
    nothing = np.zeros_like(among)
    held = [term.holds(columns[term.feature]) if term.feature in columns else nothing for term in terms]
    return np.logical_and.reduce([among, *held])


def _enlarged(cluster: FailureCluster, rows: pd.DataFrame) -> FailureCluster:
    planned = _are_planned(rows)
    kinds = Counter(dict(cluster.kinds)) + Counter(_kinds(rows[planned]))
    return replace(
        cluster,
        failing=cluster.failing + int(planned.sum()),
        further=(cluster.further[0] + int((~planned).sum()), cluster.further[1]),
        kinds=tuple(kinds.most_common()),
        cases=cluster.cases | frozenset(rows["case_id"]),
        scope=tuple((column, value) for column, value in cluster.scope if (rows[column] == value).all()),
        astray=tuple((Counter(dict(cluster.astray)) + _astray(rows)).most_common()),
        ends=tuple((Counter(dict(cluster.ends)) + _ends(rows)).items()),
    )
