"""Cards of a run's page, one for each root cause: a sentence, a picture of the smallest case, where it shows, and how
to rerun it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from poolproof.reports.clusters import FailureCluster
from poolproof.reports.clusters.members import SIZED, size_of
from poolproof.reports.figures.digest import Digest
from poolproof.reports.pages.plane import Picture, picture
from poolproof.reports.rows.checks import DIAGNOSIS
from poolproof.reports.rows.evidence import (
    Evidence,
    EvidenceError,
    evidence_path,
    program_lines,
    read_evidence,
    shrunk_path,
)
from poolproof.reports.rows.schema import GROUP, Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import FAILED

MatrixCell = tuple[str, ...]
"""The values of the columns of `GROUP`."""


@dataclass(frozen=True, eq=False)
class Card:
    """One root cause.

    ``picture`` shows the case ``drawn``; None where no case left evidence of a plane. ``evidence`` is the path of that
    in the folder of the run, ``programs`` are the commands there that make its call and judge it. ``squares`` count its
    cases by the squares of the matrix.
    """

    number: int
    cluster: FailureCluster
    drawn: str = ""
    picture: Picture | None = None
    evidence: str = ""
    programs: Sequence[str] = ()
    squares: Counter[MatrixCell] = field(default_factory=Counter)


def cards(digest: Digest) -> list[Card]:
    """Make a card for each root cause, in the order of the terminal."""
    clusters = digest.root_causes
    squares = _squares(digest.folder, clusters)
    return [_card(digest.folder, number, cluster, squares[number - 1]) for number, cluster in enumerate(clusters, 1)]


def _card(folder: Path, number: int, cluster: FailureCluster, squares: Counter[MatrixCell]) -> Card:
    card = Card(number, cluster, squares=squares)
    case_id = _with_evidence(folder, cluster)
    if not case_id:
        return card
    path = evidence_path(folder, case_id, cluster.backend)
    programs = program_lines(folder, case_id, cluster.backend)
    evidence = _readable(folder, case_id, cluster.backend)
    return Card(
        number,
        cluster,
        drawn=case_id,
        picture=picture(evidence) if evidence else None,
        evidence=path.relative_to(folder).as_posix(),
        programs=programs,
        squares=squares,
    )


def _with_evidence(folder: Path, cluster: FailureCluster) -> str:
    """Return the smallest of its cases that left evidence; empty where none did."""
    own_smallest = str(cluster.smallest["case_id"])
    if evidence_path(folder, own_smallest, cluster.backend).exists():
        return own_smallest
    left = {path.name for path in (folder / "evidence").glob("*.npz")}
    own = [case for case in cluster.cases if evidence_path(folder, case, cluster.backend).name in left]
    wanted = having("case_id", sorted(own)) & having("backend", [cluster.backend]) & having("verdict", FAILED)
    rows: list[Row] = read_rows(folder, [*SIZED, "case_id"], wanted).to_pylist() if own else []
    smallest_first = sorted((size_of(row), str(row["case_id"])) for row in rows)
    return smallest_first[0][1] if smallest_first else ""


def _readable(folder: Path, case_id: str, backend: str) -> Evidence | None:
    """Read the evidence of the smallest case that fails like one, or its own; None for what cannot be read."""
    shrunk, own = shrunk_path(folder, case_id, backend), evidence_path(folder, case_id, backend)
    try:
        return read_evidence(shrunk if shrunk.exists() else own)
    except EvidenceError:
        return None


def _squares(folder: Path, clusters: Sequence[FailureCluster]) -> list[Counter[MatrixCell]]:
    """Count for each cluster the cases in each square; further cases lie in none."""
    if not clusters:
        return []
    rows: list[Row] = read_rows(folder, [*GROUP, "case_id"], having("verdict", FAILED)).to_pylist()
    counted: list[Counter[MatrixCell]] = [Counter() for _ in clusters]
    for row in rows:
        for count, cluster in zip(counted, clusters, strict=True):
            if row["aspect"] != DIAGNOSIS and row["backend"] == cluster.backend and row["case_id"] in cluster.cases:
                count[tuple(str(row[name]) for name in GROUP)] += 1
    return counted
