"""Consistency of a run's rows, each with itself, its waivers and its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from poolproof.reports.figures.digest import Digest, judging_day, waivers_of
from poolproof.reports.rows.checks import CHECK_IDS, SURVIVAL
from poolproof.reports.rows.evidence import EvidenceError, file_name, read_evidence
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.text import count_of, visible
from poolproof.reports.rows.verdicts import FAILED, RAISED, SKIPPED, Verdict
from poolproof.reports.waivers import Waivers
from poolproof.reports.waivers.review import scope_columns

_LOST = frozenset({Verdict.CRASHED, Verdict.TIMED_OUT})
"""Verdicts of calls whose process ended without an answer."""

_COLUMNS = (
    *("case_id", "backend", "verdict", "reason", "checks_judged", "checks_violated", "findings"),
    *("n", "n_reject", "n_bits_owed", "waivers"),
)


def row_problems(digest: Digest) -> Iterator[str]:
    """Yield rows whose verdict does not follow from their own findings, or not from the run's waivers."""
    run_waivers = waivers_of(digest.run)
    waivers, environments = Waivers(run_waivers, judging_day(digest.run)), digest.run["backends"]
    columns = list(dict.fromkeys((*_COLUMNS, *scope_columns(run_waivers))))
    for batch in read_rows(digest.folder, columns).to_batches():
        for row in batch.to_pylist():
            problem = _contradiction(row) or _wrongly_waived(row, waivers, environments)
            if problem:
                yield f"case {row['case_id']} on {row['backend']} {problem}"


def _contradiction(row: Row) -> str:
    """Return what in the row contradicts its verdict; empty if nothing does."""
    if row["verdict"] not in set(Verdict):
        return f"has the verdict {row['verdict']!r}, and there is none"
    verdict, violated = Verdict(row["verdict"]), list(row["checks_violated"] or ())
    found = _findings(row)
    if found is None:
        return "has findings that cannot be read"
    if unknown := sorted({*violated, *(row["checks_judged"] or ())} - CHECK_IDS):
        return f"names the check {unknown[0]!r}, and there is none"
    if verdict not in RAISED and [finding.get("check") for finding in found] != violated:
        return "names other checks than its findings do"
    return _contradiction_of_kind(row, verdict, violated, found)


def _contradiction_of_kind(
    row: Row, verdict: Verdict, violated: Sequence[str], found: Sequence[Mapping[str, Any]]
) -> str:
    deviates = bool(violated) or bool(row["n_reject"])
    if verdict in FAILED | {Verdict.WAIVED}:
        if not violated:
            return f"is said to be {verdict}, and violates nothing"
        if row["reason"] != visible(str(found[0].get("message"))):
            return "gives another reason than its first finding"
        if not set(violated) <= {*(row["checks_judged"] or ()), SURVIVAL}:
            return "violates a check that did not judge it"
        return "ended otherwise than its finding says" if verdict in _LOST and violated != [SURVIVAL] else ""
    if deviates:
        return f"is said to be {verdict}, and its own columns say it deviates"
    if verdict is Verdict.CONFORMS and not row["checks_judged"] and not row["reason"]:
        return "is said to conform, and no check judged it, without a reason"
    if verdict in SKIPPED and not row["reason"]:
        return f"is said to be {verdict}, without a reason"
    return ""


def _wrongly_waived(row: Row, waivers: Waivers, environments: Mapping[str, Mapping[str, str]]) -> str:
    if row["verdict"] not in FAILED | {Verdict.WAIVED}:
        return "names waivers, and violates nothing" if row["waivers"] else ""
    covering = waivers.covering(row, environments.get(row["backend"], {}))
    if row["verdict"] == Verdict.WAIVED and not covering:
        return "is said to be waived, and no waiver covers it"
    if row["verdict"] != Verdict.WAIVED and covering:
        return f"is covered by {', '.join(covering)}, but not waived"
    return "" if (row["waivers"] or []) == covering else f"names other waivers than those that cover it: {covering}"


def _findings(row: Row) -> list[Mapping[str, Any]] | None:
    """Parse the findings of a row; None if they cannot be read."""
    try:
        found = json.loads(row["findings"] or "[]")
    except (ValueError, RecursionError):
        return None
    readable = isinstance(found, list) and all(isinstance(item, dict) for item in found)
    return found if readable else None


def evidence_problems(digest: Digest) -> tuple[int, list[str]]:
    """Judge each stored output again; return (number of files, differences from the rows' rejected cells)."""
    paths = sorted((digest.folder / "evidence").glob("*.npz"))
    wanted = having("case_id", [path.stem.rpartition("-")[2] for path in paths])
    columns = ["case_id", "backend", "verdict", "n_reject"]
    rows = read_rows(digest.folder, columns, wanted).to_pylist()
    by_stem = {f"{file_name(row['backend'])}-{row['case_id']}": row for row in rows}
    found = [_contradicting_evidence(path, by_stem.get(path.stem)) for path in paths]
    return len(paths), [problem for problem in found if problem]


def _contradicting_evidence(path: Path, row: Mapping[str, Any] | None) -> str:
    """Return what is wrong with a file of evidence, given its row; empty when they agree."""
    if row is None:
        return f"{path.name} belongs to no row"
    try:
        rejected = int(read_evidence(path).rejected.sum())
    except EvidenceError as error:
        return str(error).replace(str(path), path.name)
    counted = row["n_reject"]
    if counted is not None and rejected != counted:
        return f"{path.name} has {count_of(rejected, 'rejected cell')}, its row says {counted:,}"
    if rejected and row["verdict"] == Verdict.CONFORMS:
        return f"{path.name} has {count_of(rejected, 'rejected cell')}, its row is said to conform"
    return ""
