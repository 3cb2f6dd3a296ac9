"""A row by itself: whether its verdict follows from its findings and from the waivers of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from poolproof.reports.bundle.comparisons import MOST_TIME
from poolproof.reports.rows.checks import CHECK_IDS, SURVIVAL
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import visible
from poolproof.reports.rows.verdicts import FAILED, RAISED, SKIPPED, Verdict
from poolproof.reports.waivers import Waivers

_DEVIATING = FAILED | {Verdict.WAIVED}


def row_contradiction(row: Row, waivers: Waivers, environments: Mapping[str, Mapping[str, str]]) -> str:
    """Return the contradiction of a row with its verdict, with the row's name; empty if none."""
    problem = _contradiction(row) or _wrongly_waived(row, waivers, environments)
    return problem and f"case {row['case_id']} on {row['backend']} {problem}"


def _contradiction(row: Row) -> str:
    """Return the contradiction of a row with its verdict; empty if none."""
    try:
        verdict, violated = Verdict(row["verdict"]), list(row["checks_violated"] or ())
    except ValueError:
        return f"has the verdict {row['verdict']!r}, and there is none"
    try:
        findings = msgspec.convert(json.loads(row["findings"] or "[]"), list[dict[str, Any]])
    except (ValueError, RecursionError):
        return "has findings that cannot be read"
    if unknown := sorted({*violated, *(row["checks_judged"] or ())} - CHECK_IDS):
        return f"names the check {unknown[0]!r}, and there is none"
    if verdict not in RAISED and [finding.get("check") for finding in findings] != violated:
        return "names other checks than its findings do"
    if verdict in _DEVIATING:
        return _contradiction_of_failure(row, violated, findings)
    return _contradiction_of_others(row, verdict)


def _contradiction_of_failure(row: Row, violated: list[str], findings: list[dict[str, Any]]) -> str:
    if not violated:
        return f"is recorded as {row['verdict']}, and violates nothing"
    if row["reason"] != visible(str(findings[0].get("message"))):
        return "gives another reason than its first finding"
    if not set(violated) <= {*(row["checks_judged"] or ()), SURVIVAL}:
        return "violates a check that did not judge it"
    if row["verdict"] in (Verdict.CRASHED, Verdict.TIMED_OUT) and violated != [SURVIVAL]:
        return "is recorded as a lost process, but its finding is another"
    return ""


def _contradiction_of_others(row: Row, verdict: Verdict) -> str:
    if row["checks_violated"] or row["n_reject"]:
        return f"is recorded as {verdict}, and its own columns say it deviates"
    if verdict is Verdict.CONFORMS and not row["checks_judged"] and not row["reason"]:
        return "conforms, and no check judged it, without a reason"
    if verdict in SKIPPED and not row["reason"]:
        return f"is recorded as {verdict}, without a reason"
    return ""


def _wrongly_waived(row: Row, waivers: Waivers, environments: Mapping[str, Mapping[str, str]]) -> str:
    if row["verdict"] not in _DEVIATING:
        return "names waivers, and violates nothing" if row["waivers"] else ""
    covering = waivers.covering(row, environments.get(row["backend"], {}))
    if (row["waivers"] or []) != covering and 0 <= (row["judged_at"] or -1) < MOST_TIME:  # of an earlier session
        day = datetime.fromtimestamp(row["judged_at"], UTC).date()
        covering = Waivers(waivers.all, day).covering(row, environments.get(row["backend"], {}))
    if row["verdict"] == Verdict.WAIVED and not covering:
        return "is recorded as waived, and no waiver covers it"
    if row["verdict"] != Verdict.WAIVED and covering:
        return f"is covered by {', '.join(covering)}, but not waived"
    return "" if (row["waivers"] or []) == covering else f"names other waivers than those that cover it: {covering}"
