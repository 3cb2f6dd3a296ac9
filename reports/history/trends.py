"""Trends of a history: the current state, its course run by run, and since when each condition fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pandas as pd

from poolproof.reports.clusters import FailureCluster, clusters_of, describe
from poolproof.reports.figures.conclusion import is_narrowed
from poolproof.reports.figures.tables import records
from poolproof.reports.history.entries import Entries, connect
from poolproof.reports.rows.store import NotARun

IMPLEMENTATION = ("backend", "product", "library")
"""Columns of what is accepted or refused as a whole; a library by its content, empty if a run did not record it."""

MATRIX_CELL = (*IMPLEMENTATION, "operator", "dtype")
"""Columns of one square of the dashboard's matrix."""

MAX_POINTS = 150
"""Most points of a chart's line; with more runs, neighbours share a point, which shows the worst of them."""

MAX_LIBRARIES = 3
"""Newest libraries of a backend and product with a current state; older ones only have trends."""

_COUNTS = (
    *("judged", "conforms", "violates", "crashed", "waived", "refused", "undocumented", "skipped"),
    *("planned", "missing"),
)

_RESULTS = f"""
CREATE TEMP TABLE results AS
SELECT run, started, plan, seed, narrowed, asked,
       regexp_replace(asked, ' --(operator|dtype) \\S+', '', 'g') AS asked_of_cell,
       backend, product, coalesce(library, '') AS library, operator, dtype, index_dtype, aspect,
       {", ".join(_COUNTS)}, n, n_bitexact, margin_min, call_seconds
FROM cells JOIN (SELECT run, started, plan, seed, narrowed, asked FROM runs) USING (run)
     LEFT JOIN libraries USING (run, backend)
WHERE aspect <> ''
"""

_SHOWN = f"""
CREATE TEMP TABLE shown AS
SELECT {", ".join(IMPLEMENTATION)} FROM results GROUP BY {", ".join(IMPLEMENTATION)}
QUALIFY row_number() OVER (PARTITION BY backend, product ORDER BY max(started) DESC, library) <= {MAX_LIBRARIES}
"""

_CURRENT = f"""
WITH newest AS (SELECT {", ".join(MATRIX_CELL)}, arg_max(run, (started, run)) AS run
                FROM results JOIN shown USING ({", ".join(IMPLEMENTATION)}) GROUP BY ALL)
SELECT {{by}}, run, plan, narrowed, started,
       {", ".join(f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in _COUNTS)}
FROM results JOIN newest USING (run, {", ".join(MATRIX_CELL)})
GROUP BY ALL ORDER BY ALL
"""

_TREND = """
WITH per_run AS (
    SELECT {by}, run, started,
           100.0 * (1.0 - sum(violates) / nullif(sum(judged), 0)) AS passed,
           100.0 * sum(n_bitexact) / nullif(sum(n), 0) AS exact,
           min(margin_min) AS margin,
           1e6 * exp(avg(ln(call_seconds)) FILTER (call_seconds > 0)) AS microseconds
    FROM results GROUP BY ALL
), numbered AS (
    SELECT *, row_number() OVER line - 1 AS number, count(*) OVER (PARTITION BY {by}) AS total
    FROM per_run WINDOW line AS (PARTITION BY {by} ORDER BY started, run)
)
SELECT {by}, max(started) AS started, count(*) AS runs,
       min(passed) AS passed, min(exact) AS exact, min(margin) AS margin, median(microseconds) AS microseconds
FROM numbered
GROUP BY {by}, number * least(total, {most}) // total
ORDER BY ALL
"""


_LAST_TWO = f"""
WITH theirs AS (SELECT DISTINCT {", ".join(IMPLEMENTATION)}, run, started, asked FROM results),
     newest AS (
         SELECT backend, product, library AS digest, max(started) AS latest,
                arg_max(run, (started, run)) AS last, arg_max(asked, (started, run)) AS asked
         FROM theirs JOIN shown USING ({", ".join(IMPLEMENTATION)}) GROUP BY ALL
     )
SELECT backend, product, digest AS library, last,
       coalesce(arg_max(run, (started, run)) FILTER (run <> last AND started <= latest), '') AS before
FROM newest JOIN theirs USING (backend, product, asked)
GROUP BY ALL ORDER BY ALL
"""


class Trends:
    """A history of at least one run, in tables.

    Attributes:
        current: Counts of the newest run of each `MATRIX_CELL`, for the newest `MAX_LIBRARIES` only. They are summed
            over aspects and index dtypes.
        current_by_aspect: The same per index dtype and aspect.
        overall, squares: Points over time per `IMPLEMENTATION` and per `MATRIX_CELL`: ``passed`` and ``exact``
            (correctly rounded) in percent, ``margin`` (least margin), ``microseconds`` (typical time of a call),
            ``runs`` behind the point. A line joins runs of the same selection and seed; for a square, other squares'
            selection does not matter.
        last_two: Per `IMPLEMENTATION`, the newest run and the last earlier one with the same selection, of any library;
            empty if there is none.
    """

    def __init__(self, entries: Entries) -> None:
        with connect(entries) as connection:
            connection.execute(_RESULTS)
            connection.execute(_SHOWN)

            def table(query: str, by: Sequence[str] = ()) -> pd.DataFrame:
                return connection.sql(query.format(by=", ".join(by), most=MAX_POINTS)).df()

            self.current = table(_CURRENT, MATRIX_CELL)
            self.current_by_aspect = table(_CURRENT, (*MATRIX_CELL, "index_dtype", "aspect"))
            self.overall = table(_TREND, (*IMPLEMENTATION, "asked", "seed"))
            of_cell = table(_TREND, (*MATRIX_CELL, "asked_of_cell", "seed"))
            self.squares = of_cell.rename(columns={"asked_of_cell": "asked"})
            self.last_two = table(_LAST_TWO)


MAX_RUNS = 60
"""Newest violating runs with rows that are searched for conditions."""

Condition = tuple[str, ...]
"""Features of the terms of a cluster, without thresholds, which may differ from run to run."""


@dataclass
class IssueHistory:
    """A condition of a backend over its runs, oldest first.

    Attributes:
        sentence: From the newest run that has the condition.
        since, last: Unix times of the first and the newest of these runs.
        gone: Unix time of the first later run without it, of the same plan, whole or narrowed alike; None if there is
            none.
        is_unseen: A run that was narrowed differently does not have it.
        products: Products on which it was seen; empty if the backend has none.
        plans: Plans that showed it, with how they were narrowed.
    """

    backend: str
    condition: Condition
    sentence: str
    since: float
    last: float
    runs: int = 1
    gone: float | None = None
    products: list[str] = field(default_factory=list)
    plans: set[tuple[str, str]] = field(default_factory=set)
    is_unseen: bool = False


def issue_histories(entries: Entries) -> list[IssueHistory]:
    """Return current conditions, then those that are gone, newest first."""
    issues: dict[tuple[str, Condition], IssueHistory] = {}
    violating = [run["run"] for run in records(entries.runs) if run["verdict"] == "violates"][-MAX_RUNS:]
    for run in records(entries.runs):
        clusters: tuple[FailureCluster, ...] = ()
        if run["run"] in violating:
            with suppress(NotARun):  # its rows cannot be read
                clusters = clusters_of(entries.paths[run["run"]])
        claimed = [cluster for cluster in clusters if cluster.has_condition]
        keys = [(cluster.backend, tuple(sorted(set(cluster.features)))) for cluster in claimed]
        for key, issue in issues.items():
            judged = issue.backend in json.loads(run["backends"]) and run["plan"] in dict(issue.plans)
            if judged and key not in keys and issue.gone is None:
                if not is_narrowed(run["narrowed"]) or (run["plan"], run["narrowed"]) in issue.plans:
                    issue.gone = run["started"]
                issue.is_unseen = True
        for key, cluster in zip(keys, claimed, strict=True):
            if key not in issues or issues[key].gone is not None:
                issues[key] = IssueHistory(*key, describe(cluster), run["started"], run["started"], runs=0)
            issue, product = issues[key], str(cluster.smallest.get("product") or "")
            issue.sentence, issue.last, issue.runs = describe(cluster), run["started"], issue.runs + 1
            issue.plans.add((run["plan"], run["narrowed"]))
            issue.is_unseen = False
            if product and product not in issue.products:
                issue.products.append(product)
    return sorted(issues.values(), key=lambda issue: (issue.gone is not None, -issue.last))
