"""Page of precision: errors per operator and dtype, the standards of others, and backend beside backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.precision import DTYPES, HISTOGRAM, Agreement, Precision, agreements, backend_comparisons
from poolproof.reports.pages.drawing import error_over_multiplicity, logarithmic_width
from poolproof.reports.pages.render import write_page
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.text import percent


def write_precision_page(digest: Digest, path: Path) -> Path:
    """Write the page of a run in which some backward ran; returns its path."""
    agreed = agreements(digest.folder)
    return write_page(
        path,
        "precision.html.j2",
        run=digest.run,
        backends=_by_backend(digest.precision_details),
        standards={backend: _standards(list(lines)) for backend, lines in groupby(agreed, lambda one: one.backend)},
        backend_comparisons=backend_comparisons(digest.folder),
        probes=_probes(digest.run),
        percent=percent,
    )


def _by_backend(found: Sequence[Precision]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return backend -> operator -> what a card per dtype shows."""
    backends: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for precision in found:
        backends.setdefault(precision.backend, {}).setdefault(precision.operator, []).append(_card(precision))
    return backends


def _card(precision: Precision) -> dict[str, Any]:
    title = f"largest errors and bounds of {precision.operator} {precision.dtype}"
    return {
        "precision": precision,
        "histogram": [
            {"label": label, "count": precision.counts[column], "share": share, "width": logarithmic_width(share)}
            for column, label in HISTOGRAM
            if (share := precision.counts[column] / precision.counts["n"]) or column in _ALWAYS
        ],
        "drawing": error_over_multiplicity(precision.multiplicities, title),
        "biased": precision.bias is not None
        and abs(precision.bias) > 4.0 * precision.uncertainty
        and abs(precision.bias) > 0.1,
        "worst": [(row, replay_line(row)) for row in precision.worst],
    }


_ALWAYS = ("ulp_0", "ulp_le05")
"""Classes of the histogram that are shown empty, too."""


def _standards(lines: Sequence[Agreement]) -> dict[str, Any]:
    """Return the standards that disagree with the interval as table lines, and the names of all others."""
    dtypes = [dtype for dtype in DTYPES if any(dtype in line.judged for line in lines)]
    disagreeing = [line for line in lines if line.disagreements]
    return {
        "dtypes": dtypes,
        "disagreeing": disagreeing,
        "agreeing": [line.standard for line in lines if not line.disagreements],
        "wrong": max((line.wrong for line in lines), default=0),
        "examples": [
            (line.standard, kind, replay_line(row))
            for line in disagreeing
            for kind, row in (("fails a right result", line.false_alarm), ("passes a wrong result", line.miss))
            if row
        ],
    }


def _probes(run: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return what a probe before the run found that the backend does not declare."""
    accounts = run.get("probes", {})
    return {backend: [account for account in found if account["disagreements"]] for backend, found in accounts.items()}
