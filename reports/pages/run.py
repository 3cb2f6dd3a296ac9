"""Page and Markdown summary of one run: verdict, coverage, failures, and how to rerun them.

The page has a card for each root cause: a sentence, a picture of the smallest case, and where it occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from poolproof.reports.clusters import FailureCluster, headline, tells_a_case, tells_a_cluster
from poolproof.reports.clusters.cluster import size_of
from poolproof.reports.figures.clauses import follows, totals
from poolproof.reports.figures.coverage import grids, group_text, meeting_lines, met_in_all
from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.precision import errors_by_dtype
from poolproof.reports.figures.quantities import QUANTITIES
from poolproof.reports.figures.tables import COUNTED_CASES, HAS_FAILED, Record, aspects_in_order, matrix_lines, records
from poolproof.reports.pages.plane import Picture, picture
from poolproof.reports.pages.precision import error_over_multiplicity
from poolproof.reports.pages.render import VERDICT_CLASSES, paint, read_template, write_page
from poolproof.reports.rows.evidence import EvidenceError, evidence_path, program_lines, read_evidence, shrunk_path
from poolproof.reports.rows.failures import SHOWN
from poolproof.reports.rows.schema import GROUP
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import Verdict
from poolproof.reports.waivers.review import STALE

MatrixCell = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Card:
    """One cluster of failures.

    Attributes:
        squares: Square of the matrix -> number of its cases there.
        drawn: Id of the case with evidence.
        picture: Its picture; None if no case left evidence of a plane.
        undrawn: Why there is no picture.
        evidence: Path of its evidence in the folder of the run.
        programs: Commands there that repeat its call and judge it.
    """

    number: int
    cluster: FailureCluster
    squares: Counter[MatrixCell]
    drawn: str = ""
    picture: Picture | None = None
    undrawn: str = ""
    evidence: str = ""
    programs: Sequence[str] = ()


def cards(digest: Digest) -> list[Card]:
    """Return a card for each cluster of failures, in the order of the terminal."""
    folder, clusters, drawn_cards = digest.folder, digest.clusters, []
    for number, (cluster, squares) in enumerate(zip(clusters, _squares(folder, clusters), strict=True), 1):
        card = Card(number, cluster, squares, undrawn=_why_undrawn(cluster))
        if case_id := _with_evidence(folder, cluster):
            own = evidence_path(folder, case_id, cluster.backend).relative_to(folder).as_posix()
            programs = program_lines(folder, case_id, cluster.backend)
            drawing = _picture(folder, case_id, cluster.backend)
            why = "" if drawing else _why_undrawn(cluster, "its outputs have no plane")
            card = Card(number, cluster, squares, case_id, drawing, why, own, programs)
        drawn_cards.append(card)
    return drawn_cards


def _picture(folder: Path, case_id: str, backend: str) -> Picture | None:
    """Draw the smaller case that fails alike, or the case itself; None where neither left evidence of a plane."""
    own, shrunk = (path(folder, case_id, backend) for path in (evidence_path, shrunk_path))
    with suppress(EvidenceError):
        return picture(read_evidence(shrunk if shrunk.exists() else own))
    return None


def picture_page(folder: Path, row: Record) -> str:
    """Render a page with the picture of a failing case; empty if there is no picture."""
    drawn = _picture(folder, row["case_id"], row["backend"])
    return read_template("picture.html.j2").render(picture=drawn) if drawn else ""


def _why_undrawn(
    cluster: FailureCluster, otherwise: str = "no case of it left its output in the folder of the run"
) -> str:
    """Say why no case of a cluster left an output that could be drawn."""
    if cluster.smallest["verdict"] != Verdict.VIOLATES:
        return "the call gave no output"
    if cluster.smallest["shape"] is None or cluster.smallest["clause"]:
        return "the call is about the interface, not about values"
    return otherwise


def _with_evidence(folder: Path, cluster: FailureCluster) -> str:
    """Return the smallest of its cases with evidence; empty if there is none."""
    left = {path.name for path in (folder / "evidence").glob("*.npz")}
    own = [row for row in cluster.members if evidence_path(folder, row["case_id"], cluster.backend).name in left]
    return str(min(own, key=lambda row: (size_of(row), row["case_id"]))["case_id"]) if own else ""


def _squares(folder: Path, clusters: Sequence[FailureCluster]) -> list[Counter[MatrixCell]]:
    """Count for each cluster the cases in each square; further cases are in none."""
    rows = read_rows(folder, [*GROUP, "case_id"], HAS_FAILED & COUNTED_CASES).to_pylist() if clusters else []
    cases = [(row["backend"], row["case_id"], tuple(str(row[name]) for name in GROUP)) for row in rows]
    return [
        Counter(square for backend, case, square in cases if backend == cluster.backend and case in cluster.cases)
        for cluster in clusters
    ]


def _failing(folder: Path) -> list[Record]:
    """List the failing cases of the plan, each with its ``picture``; `_MAX_FAILING` and one more at most."""
    columns = dict.fromkeys((*SHOWN, *GROUP, "case_id", "verdict", "checks_violated"))
    rows = read_rows(folder, list(columns), HAS_FAILED & COUNTED_CASES).slice(0, _MAX_FAILING + 1).to_pylist()
    return [row | {"picture": _picture(folder, row["case_id"], row["backend"])} for row in rows]


_MAX_FAILING = 1000
_MAX_GAPS = 30
_NOTHING = dict.fromkeys(("judged", "violates", "waived", "refused", "undocumented", "skipped"), 0)


def write_run_page(digest: Digest, path: Path) -> Path:
    """Write the page, with links to evidence that work in the run's folder; return its path."""
    aspects, shown = aspects_in_order(digest.supported_counts), cards(digest)
    return write_page(
        path,
        "run.html.j2",
        **_common(digest),
        cards=shown,
        failing=_failing(digest.folder),
        most_failing=_MAX_FAILING,
        aspects=aspects,
        matrix=_matrix(digest, aspects, shown),
        grids=grids(digest.factors),
        met=met_in_all(digest.factors),
        meetings=meeting_lines(digest.factors),
        errors=_errors(digest),
        precision=records(digest.precision.reset_index()),
        quantities=QUANTITIES,
        contract=_contract(digest),
        list_results=records(digest.list_results),
        has_precision_page=digest.has_statistics,
        skipped=records(digest.skips),
        checks=records(digest.checks.reset_index()),
        environment={"host": digest.run["host"], **digest.run["backends"]},
        given=digest.given,
        loaded=("library ", "wheel "),
        suite=digest.run["suite"],
        judged=digest.judged,
    )


def write_run_summary(digest: Digest, path: Path) -> Path:
    """Write the Markdown for the summary of a CI job; return its path."""
    counted = digest.supported_counts.groupby(level=["backend", "operator"]).sum()
    if "operator" in digest.gaps:  # cases of the command line are groups without one
        missing = digest.gaps.groupby(["backend", "operator"])["missing"].sum()
        counted = counted.join(missing, how="outer").fillna(0).astype(int)
    totals = records(counted.reset_index())
    return write_page(path, "run.md.j2", **_common(digest), clusters=digest.clusters, totals=totals)


def _common(digest: Digest) -> dict[str, Any]:
    gaps = digest.gaps.sort_values("missing", ascending=False, kind="stable")
    return {
        "run": digest.run,
        "products": digest.products,
        "conclusion": digest.conclusion,
        "verdict_class": VERDICT_CLASSES[digest.conclusion.shown[1]],
        "headline": headline(digest.clusters),
        "tells_a_case": tells_a_case(digest.clusters),
        "tells_a_cluster": tells_a_cluster(digest.clusters),
        "refusals": digest.refusals,
        "never_run": records(digest.never_run.head(_MAX_GAPS)),
        "more_never_run": max(len(digest.never_run) - _MAX_GAPS, 0),
        "gaps": [gap | {"group": group_text(gap)} for gap in records(gaps.head(_MAX_GAPS))],
        "more_gaps": max(len(gaps) - _MAX_GAPS, 0),
        "waivers": digest.relevant_waivers,
        "stale": STALE,
    }


def _errors(digest: Digest) -> dict[str, list[tuple[str, Markup]]]:
    """Return for each backend a title and a drawing per dtype: largest errors and bounds."""
    by_backend = errors_by_dtype(digest.precision_details) if digest.has_statistics else {}
    return {
        backend: [
            (f"{dtype}, {model}", error_over_multiplicity(classes, f"largest errors and bounds of {dtype}"))
            for dtype, model, classes in drawn
        ]
        for backend, drawn in by_backend.items()
    }


def _matrix(digest: Digest, aspects: list[str], shown: Sequence[Card]) -> dict[str, list[Record]]:
    """Return per backend one line for each operator and pair of dtypes, with a square for each aspect.

    A square names the cards that it contributes to.
    """
    numbers: dict[MatrixCell, list[int]] = {}
    for card in shown:
        for square in card.squares:
            numbers.setdefault(square, []).append(card.number)
    matrix: dict[str, list[Record]] = {}
    for names, counted in matrix_lines(digest.supported_counts).items():
        squares = []
        for aspect in aspects:
            counts = counted.get(aspect, _NOTHING)
            squares.append(counts | {"kind": paint(counts), "cards": numbers.get((*names, aspect), ())})
        described = dict(zip(GROUP[1:4], names[1:], strict=True))
        matrix.setdefault(names[0], []).append(described | {"squares": squares})
    return matrix


def _contract(digest: Digest) -> list[Record]:
    """Return per backend its totals, and its ``lines``: one clause each, with what the library ``follows``."""
    lines = [line | {"follows": follows(line)} for line in records(digest.clauses)]
    return [
        total | {"lines": [line for line in lines if line["backend"] == total["backend"]]}
        for total in records(totals(digest.clauses))
    ]
