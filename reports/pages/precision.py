"""Page of precision: errors per operator and dtype, the standards of others, and backend beside backend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.precision import DTYPES, HISTOGRAM, agreements, backend_comparisons
from poolproof.reports.figures.tables import Record
from poolproof.reports.pages.drawing import error_over_multiplicity, logarithmic_width
from poolproof.reports.pages.render import write_page
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.text import percent


def write_precision_page(digest: Digest, path: Path) -> Path:
    """Write the page of a run in which some backward ran; returns its path."""
    agreed = agreements(digest.folder)
    backends: dict[str, dict[str, list[Record]]] = {}
    for precision in digest.precision_details:
        backends.setdefault(precision["backend"], {}).setdefault(precision["operator"], []).append(_card(precision))
    return write_page(
        path,
        "precision.html.j2",
        run=digest.run,
        backends=backends,
        standards={backend: _standards(list(lines)) for backend, lines in groupby(agreed, itemgetter("backend"))},
        backend_comparisons=backend_comparisons(digest.folder),
        probes={
            backend: [account for account in found if account["disagreements"]]
            for backend, found in digest.run.get("probes", {}).items()
        },
        percent=percent,
    )


def _card(precision: Record) -> Record:
    title = f"largest errors and bounds of {precision['operator']} {precision['dtype']}"
    counts, bias = precision["counts"], precision["bias"]
    return {
        "precision": precision,
        "histogram": [
            {"label": label, "count": counts[column], "share": share, "width": logarithmic_width(share)}
            for column, label in HISTOGRAM
            if (share := counts[column] / counts["n"]) or column in _ALWAYS
        ],
        "drawing": error_over_multiplicity(precision["multiplicities"], title),
        "biased": bias is not None and abs(bias) > max(4.0 * precision["uncertainty"], 0.1),
        "worst": [(row, replay_line(row)) for row in precision["worst"]],
    }


_ALWAYS = ("ulp_0", "ulp_le05")
"""Classes of the histogram that are shown empty, too."""


def _standards(lines: Sequence[Record]) -> Record:
    """Return the standards that disagree with the interval as table lines, and the names of all others."""
    dtypes = [dtype for dtype in DTYPES if any(dtype in line["judged"] for line in lines)]
    disagreeing = [line for line in lines if line["disagreements"]]
    return {
        "dtypes": dtypes,
        "disagreeing": disagreeing,
        "agreeing": [line["standard"] for line in lines if not line["disagreements"]],
        "wrong": max((line["wrong"] for line in lines), default=0),
        "examples": [
            (line["standard"], kind, replay_line(row))
            for line in disagreeing
            for kind, row in (("fails a right result", line["false_alarm"]), ("passes a wrong result", line["miss"]))
            if row
        ],
    }
