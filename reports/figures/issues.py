"""What was wrong over a history: since when, on which products, and gone when."""

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
"""Of the newest runs that violate, whose rows are searched for conditions: each takes a second or more."""

Condition = tuple[str, ...]
"""The features that the terms of a suspect are about: its thresholds may differ from run to run."""


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
    """What is wrong now, then what is gone, the newest first."""
    found: dict[tuple[str, Condition], IssueHistory] = {}
    violating = [run["run"] for run in records(entries.runs) if run["verdict"] == "violates"][-MAX_RUNS:]
    for run in records(entries.runs):
        here = list(_claimed(entries, run)) if run["run"] in violating else []
        _end(found, run, {(cluster.backend, _condition(cluster)) for cluster in here})
        for cluster in here:
            _follow(found, run, cluster)
    return sorted(found.values(), key=lambda course: (course.gone is not None, -course.last))


def _claimed(entries: Entries, run: Record) -> Iterator[FailureCluster]:
    """The suspects with a condition; none where a run's rows cannot be read."""
    try:
        yield from (cluster for cluster in clusters_of(entries.paths[run["run"]]) if cluster.has_condition)
    except NotARun:
        return


def _follow(found: dict[tuple[str, Condition], IssueHistory], run: Record, cluster: FailureCluster) -> None:
    key, product = (cluster.backend, _condition(cluster)), str(cluster.smallest.get("product") or "")
    course = found.get(key)
    if course is None or course.gone is not None:
        course = found[key] = IssueHistory(*key, cluster.sentence, run["started"], run["started"], runs=0)
    course.sentence, course.last, course.runs = cluster.sentence, run["started"], course.runs + 1
    course.plans.add(run["plan"])
    if product and product not in course.products:
        course.products.append(product)


def _end(found: dict[tuple[str, Condition], IssueHistory], run: Record, here: set[tuple[str, Condition]]) -> None:
    """A run that judged the same backend by the same plan, and does not have it, ends what was wrong."""
    judged = json.loads(run["backends"])
    for key, course in found.items():
        if key not in here and course.backend in judged and run["plan"] in course.plans and course.gone is None:
            course.gone = run["started"]


def _condition(cluster: FailureCluster) -> Condition:
    return tuple(sorted({term.feature for term in cluster.terms}))
