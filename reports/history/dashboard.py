"""The dashboard: a folder of pages over a history, from a matrix of all squares down to single failing cases.

    index.html      current state, changes, trends
    squares/        a page per backend, product, operator and dtype
    cases/          a page per kind of current failure, with its reproducer and a picture
    assets/         a file that marks the folder as a dashboard

It opens from disk: nothing is fetched, and each page contains its data.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd

from poolproof.reports.figures import tables
from poolproof.reports.figures.comparison import Comparison, compare
from poolproof.reports.figures.conclusion import in_part, is_narrowed
from poolproof.reports.figures.quantities import CORRECTLY_ROUNDED
from poolproof.reports.figures.quantities import LEAST_MARGIN as _LEAST_MARGIN
from poolproof.reports.figures.tables import Record, records
from poolproof.reports.history.entries import Entries
from poolproof.reports.history.trends import IMPLEMENTATION, MATRIX_CELL, Trends, issue_histories
from poolproof.reports.pages.charts import COLOURS, Trend, trend_charts
from poolproof.reports.pages.plane import Picture, picture
from poolproof.reports.pages.render import VERDICT_CLASSES, paint, write_page
from poolproof.reports.rows.evidence import EvidenceError, evidence_path, file_name, program_lines, read_evidence
from poolproof.reports.rows.failures import KIND
from poolproof.reports.rows.schema import COLUMNS
from poolproof.reports.rows.store import read_run
from poolproof.reports.rows.text import figure
from poolproof.reports.rows.verdicts import BadInput, Overall, gravest

MAX_CASES = 12
"""Failing cases of one square that get a page, one per kind, most frequent kinds first."""

MAX_RUNS = 20
"""Runs that the first page lists."""

_LARGE_PICTURE = 32
"""Rows and columns of a plane on a page of its own."""

_MAX_TEXTS = 14
"""Most columns of such a plane with numbers in cells."""

TRENDS = (
    Trend("passed", "judged cases without a deviation, %", least_span=2.0, most=100.0),
    Trend("exact", CORRECTLY_ROUNDED.title, least_span=2.0),
    Trend("microseconds", "typical time of a call, µs", least_span=0.0),
)
LEAST_MARGIN = Trend("margin", _LEAST_MARGIN.title, least_span=1.0, most=1.0)


_MARK = "poolproof-dashboard"
MatrixCell = tuple[str, ...]
"""The values of the columns `MATRIX_CELL`, or of `IMPLEMENTATION`."""


def write_dashboard(entries: Entries, site: Path) -> Path:
    """Write the pages into the folder ``site`` and return the first; replace an older dashboard there."""
    entries.check_any()
    _prepare(site)
    # first, because it marks the folder as ours if a later step is interrupted
    (site / "assets" / _MARK).write_text(
        "A dashboard made by poolproof; poolproof replaces it completely.\n", encoding="utf-8"
    )
    trends = Trends(entries)
    cases = _failing_cases(entries, trends)
    implementations = _implementations(entries, trends, cases)
    for square, rows in cases.items():
        _write_square_pages(site, square, rows, trends, entries)
    return write_page(
        site / "index.html",
        "dashboard.html.j2",
        implementations=implementations,
        issue_histories=issue_histories(entries),
        verdict_classes=VERDICT_CLASSES,
        trends=trend_charts(TRENDS, _points(trends.overall)),
        runs=[
            run | {"backends": ", ".join(json.loads(run["backends"])), "shown": shown, "verdict": word}
            for run in records(entries.runs.tail(MAX_RUNS))[::-1]
            for word, shown in [in_part(run["verdict"], Overall.of_word(run["verdict"]), run["narrowed"])]
        ],
        total_runs=len(entries.runs),
        older=len(trends.overall[list(IMPLEMENTATION)].drop_duplicates()) - len(implementations),
    )


def label_of(*names: str) -> str:
    return " ".join(filter(None, names))


def page_name(*parts: str) -> str:
    return "-".join(file_name(part) for part in parts if part) + ".html"


def _prepare(site: Path) -> None:
    """Empty the folder; delete only one of our dashboards."""
    if site.is_dir() and any(site.iterdir()):
        if not (site / "assets" / _MARK).exists():
            raise BadInput(f"{site} is not empty and not a dashboard: name another folder")
        shutil.rmtree(site)
    for folder in ("squares", "cases", "assets"):
        (site / folder).mkdir(parents=True, exist_ok=True)


def _implementations(entries: Entries, trends: Trends, cases: Mapping[MatrixCell, list[Record]]) -> list[Record]:
    """Describe each backend on a product, with one library, by its content (``digest``, empty if unrecorded).

    ``squares`` are counts by operator and dtype, with page and colour; ``totals`` are their sums. ``changes`` is the
    comparison with the last earlier run of the same selection, or None. ``case_pages`` are the pages of its failing
    cases, by case id. ``narrowed`` says what narrowed runs left of their plans.
    """
    described: dict[MatrixCell, Record] = {}
    changes = _changes(entries, trends.last_two)
    for line in records(trends.current):
        square, key = _square_of(line), _implementation_of(line)
        about = dict(zip(("backend", "product", "digest"), key, strict=True)) | {"label": label_of(*key)}
        one = described.setdefault(key, about | {"squares": {}, "changes": changes[key], "case_pages": {}})
        painted = line | {"page": f"squares/{page_name(*square)}", "kind": _paint(line)}
        one["squares"].setdefault(line["operator"], {})[line["dtype"]] = painted
        one["case_pages"].update({row["case_id"]: row["page"] for row in cases[square][:MAX_CASES]})
    for one in described.values():
        lines = [square for by_dtype in one["squares"].values() for square in by_dtype.values()]
        one["dtypes"] = sorted({square["dtype"] for square in lines})
        one["totals"] = tables.total(lines, ("judged", "violates", "waived", "refused", "undocumented", "missing"))
        causes = {Overall.VIOLATES: one["totals"]["violates"], Overall.INCOMPLETE: one["totals"]["missing"]}
        overall = gravest(causes)
        one["narrowed"] = "; ".join(dict.fromkeys(line["narrowed"] for line in lines if line["narrowed"]))
        one["word"], one["overall"] = in_part(overall.word, overall, one["narrowed"])
    return list(described.values())


def _paint(line: Record) -> str:
    """Choose the colour of a square; a good one in a narrowed run only counts as incomplete."""
    kind = paint(line)
    return "incomplete" if kind == "good" and is_narrowed(line["narrowed"]) else kind


def _changes(entries: Entries, last_two: pd.DataFrame) -> dict[MatrixCell, Comparison | None]:
    """Compare the newest run of each implementation with the previous one; None if none has the same selection."""
    compared = cache(compare)
    changes: dict[MatrixCell, Comparison | None] = {}
    for pair in records(last_two):
        paths = [entries.paths[run] for run in (pair["before"], pair["last"]) if run]
        changes[_implementation_of(pair)] = compared(*paths).of_backend(pair["backend"]) if pair["before"] else None
    return changes


def _failing_cases(entries: Entries, trends: Trends) -> dict[MatrixCell, list[Record]]:
    """Return per square one failing case of each kind, with its run and its page."""
    current = records(trends.current)
    failing_runs = sorted({line["run"] for line in current if line["violates"]})
    failed = {run: records(tables.failures(entries.paths[run], (*KIND, "dtype"))) for run in failing_runs}
    cases: dict[MatrixCell, list[Record]] = {}
    for line in current:
        cases[_square_of(line)] = own = []
        for row in failed.get(line["run"], []):
            if all(row[name] == line[name] for name in ("backend", "operator", "dtype")):
                page = page_name(*_implementation_of(line), row["aspect"], row["case_id"])
                own.append(row | {"run": line["run"], "page": f"cases/{page}"})
    return cases


_implementation_of, _square_of = itemgetter(*IMPLEMENTATION), itemgetter(*MATRIX_CELL)


def _write_square_pages(site: Path, square: MatrixCell, cases: list[Record], trends: Trends, entries: Entries) -> None:
    line = records(_of_square(trends.current, square))[0]
    about = {**line, "label": label_of(*_implementation_of(line)), "page": f"squares/{page_name(*square)}"}
    write_page(
        site / about["page"],
        "square.html.j2",
        square=about,
        kind=_paint(line),
        aspects=[aspect | {"kind": paint(aspect)} for aspect in records(_of_square(trends.current_by_aspect, square))],
        cases=cases[:MAX_CASES],
        more_cases=len(cases[MAX_CASES:]),
        trends=trend_charts((*TRENDS, LEAST_MARGIN), _points(_of_square(trends.squares, square))),
    )
    for row in cases[:MAX_CASES]:
        _write_case_page(site, row, about, entries.paths[row["run"]])


def _write_case_page(site: Path, row: Record, square: Record, run: Path) -> None:
    drawn, complaint = _picture(run, row)
    shown = {column: row[column.name] for column in COLUMNS if column.name not in _SHOWN_ELSEWHERE}
    lists = {column: np.ravel(value).tolist() for column, value in shown.items() if value is not None}
    texts = {column: ", ".join(str(figure(item)) for item in values) for column, values in lists.items()}
    write_page(
        site / row["page"],
        "case.html.j2",
        row=row,
        square=square,
        findings=json.loads(row["findings"] or "[]"),
        picture=drawn,
        without_suite=program_lines(run, row["case_id"], row["backend"]),
        complaint=complaint,
        facts=[{"column": column, "value": text} for column, text in texts.items() if text],
        environment=read_run(run)["backends"].get(row["backend"], {}),
    )


def _picture(run: Path, row: Record) -> tuple[Picture | None, str]:
    path = evidence_path(run, row["case_id"], row["backend"])
    if not path.exists():
        return None, "This case left no evidence to draw a picture from."
    try:
        drawn = picture(read_evidence(path), _LARGE_PICTURE, _MAX_TEXTS)
    except EvidenceError as error:
        return None, str(error)
    return drawn, "" if drawn else "The output of this case is no plane."


_SHOWN_ELSEWHERE = (
    *("case_id", "case", "shrunk", "shrunk_reason", "reason", "given", "findings", "backend", "product", "operator"),
    *("dtype", "aspect", "verdict", "checks_violated", "judged_at"),
)


def _of_square(frame: pd.DataFrame, square: MatrixCell) -> pd.DataFrame:
    return frame[frame[list(MATRIX_CELL)].eq(list(square)).all(axis=1)]


def _points(points: pd.DataFrame) -> list[Record]:
    """Return points of trends for the charts.

    Each library has a colour, and another one for narrowed runs, as long as colours last. Otherwise the libraries of a
    backend and product share one. Runs of different selections or seeds have separate lines, whatever their colour.
    """
    lines, measured = [], records(points)
    are_alike, seeds = len({point["asked"] for point in measured}) == 1, {point["seed"] for point in measured}
    has_colours = len({(*_implementation_of(point), " " in point["asked"]) for point in measured}) <= COLOURS
    for point in measured:
        values = {name: point[name] for name in ("passed", "exact", "margin", "microseconds")}
        names = _implementation_of(point)
        plan, _, options = point["asked"].partition(" ")
        asked = point["asked"] + (f", seed {point['seed']}" if len(seeds) > 1 else "")
        own = (names[2], "" if are_alike else f"({plan}{', narrowed' if options else ''})") if has_colours else ()
        lines.append(
            {"time": point["started"], "series": label_of(*names[:2], *own), "asked": asked}
            | {"implementation": label_of(*names), "library": names[2], "runs": point["runs"]}
            | {name: value for name, value in values.items() if value is not None}
        )
    return lines
