"""Issues over a history: since when each condition fails, on which products, and when it was gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from poolproof.reports.clusters import FailureCluster
from poolproof.reports.clusters.reading import clusters_of
from poolproof.reports.figures.history import Entries
from poolproof.reports.figures.tables import Record, records
from poolproof.reports.rows.store import NotARun

MAX_RUNS = 60
"""Newest violating runs whose rows are searched for conditions."""

Condition = tuple[str, ...]
"""Features of the terms of a cluster: its thresholds may differ from run to run."""


@dataclass
class IssueHistory:
    """A condition of a backend over its runs, the oldest first.

    ``sentence`` is that of the newest run that has it; ``since`` and ``last`` are the Unix times of the first and the
    newest of them; ``gone`` that of the first later run of the same plan that does not have it, None while there is
    none. ``products`` are those it was seen on, empty where the backend has none.
    """

    backend: str
    condition: Condition
    sentence: str
    since: float
    last: float
    runs: int = 1
    gone: float | None = None
    products: list[str] = field(default_factory=list)
    plans: set[str] = field(default_factory=set)


def issue_histories(entries: Entries) -> list[IssueHistory]:
    """Return what is wrong now, then what is gone, the newest first."""
    issues: dict[tuple[str, Condition], IssueHistory] = {}
    violating = [run["run"] for run in records(entries.runs) if run["verdict"] == "violates"][-MAX_RUNS:]
    for run in records(entries.runs):
        present = list(_root_causes(entries, run)) if run["run"] in violating else []
        _end(issues, run, {(cluster.backend, _condition(cluster)) for cluster in present})
        for cluster in present:
            _extend(issues, run, cluster)
    return sorted(issues.values(), key=lambda issue: (issue.gone is not None, -issue.last))


def _root_causes(entries: Entries, run: Record) -> Iterator[FailureCluster]:
    """Yield the clusters with a condition; none where a run's rows cannot be read."""
    try:
        yield from (cluster for cluster in clusters_of(entries.paths[run["run"]]) if cluster.has_condition)
    except NotARun:
        return


def _extend(issues: dict[tuple[str, Condition], IssueHistory], run: Record, cluster: FailureCluster) -> None:
    key, product = (cluster.backend, _condition(cluster)), str(cluster.smallest.get("product") or "")
    issue = issues.get(key)
    if issue is None or issue.gone is not None:
        issue = issues[key] = IssueHistory(*key, cluster.sentence, run["started"], run["started"], runs=0)
    issue.sentence, issue.last, issue.runs = cluster.sentence, run["started"], issue.runs + 1
    issue.plans.add(run["plan"])
    if product and product not in issue.products:
        issue.products.append(product)


def _end(issues: dict[tuple[str, Condition], IssueHistory], run: Record, present: set[tuple[str, Condition]]) -> None:
    """End the issues that a run does not show though it judged their backend by the same plan."""
    judged = json.loads(run["backends"])
    for key, issue in issues.items():
        if key not in present and issue.backend in judged and run["plan"] in issue.plans and issue.gone is None:
            issue.gone = run["started"]


def _condition(cluster: FailureCluster) -> Condition:
    return tuple(sorted({term.feature for term in cluster.terms}))
