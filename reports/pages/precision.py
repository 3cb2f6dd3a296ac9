"""Page of precision: errors per operator and dtype, standards of other projects, and backends side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from markupsafe import Markup, escape

from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.precision import (
    DTYPES,
    HISTOGRAM,
    Multiplicity,
    agreements,
    backend_comparisons,
    worst_searched,
)
from poolproof.reports.figures.tables import Record
from poolproof.reports.pages.charts import drawing, text
from poolproof.reports.pages.render import write_page
from poolproof.reports.rows.text import percent, raised


def write_precision_page(digest: Digest, path: Path) -> Path:
    """Write the page of a run with at least one backward; return its path."""
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
        searched=worst_searched(digest.folder, digest.precision_details),
        probes=digest.run.get("probes", {}),
        percent=percent,
    )


def _card(precision: Record) -> Record:
    title = f"largest errors and bounds of {precision['operator']} {precision['dtype']}"
    counts, bias = precision["counts"], precision["bias_ulp"]
    return {
        "precision": precision,
        "histogram": [
            {"label": label, "count": counts[column], "share": share, "width": logarithmic_width(share)}
            for column, label in HISTOGRAM
            if (share := counts[column] / counts["n"]) or column in _ALWAYS
        ],
        "drawing": error_over_multiplicity(precision["multiplicities"], title),
        "biased": bias is not None and abs(bias) > max(4.0 * precision["uncertainty"], 0.1),
    }


_ALWAYS = ("ulp_0", "ulp_le05")
"""Classes that the histogram also shows if empty."""


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
            (line["standard"], kind, row)
            for line in disagreeing
            for kind, row in (("fails a right result", line["false_alarm"]), ("passes a wrong result", line["miss"]))
            if row
        ],
    }


WIDTH, HEIGHT = 270, 165
_LEFT, _RIGHT, _BOTTOM, _TOP = 30, 10, 30, 6
_MAX_LABELS = 7


def error_over_multiplicity(classes: Sequence[Multiplicity], title: str) -> Markup:
    """Draw largest errors as bars, and largest bounds as lines above them, per number of gradients; logarithmic."""
    if not any(one.error > 0.0 or one.bound > 0.0 for one in classes):
        return Markup('<p class="faint">No sum has an error, nor room for one.</p>')
    marks = _marks([value for one in classes for value in (one.error, one.bound)])
    lowest, highest = marks[0], marks[-1]
    step = (WIDTH - _LEFT) / max(len(classes), 1)
    width = min(0.62 * step, 34.0)

    def height(value: float) -> float:
        """Return the place of a value between the ends of the axis; zero is below its lowest mark."""
        if value <= 0.0:
            return HEIGHT - _BOTTOM
        share = (math.log2(max(value, lowest)) - math.log2(lowest)) / (math.log2(highest) - math.log2(lowest))
        return HEIGHT - _BOTTOM - 10 - share * (HEIGHT - _BOTTOM - 10 - _TOP)

    parts = []
    for value in marks:
        y = height(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(_LEFT - 4, y + 3.5, _power(value), "end"))
    labelled = -(-len(classes) // _MAX_LABELS)
    for number, one in enumerate(classes):
        middle = _LEFT + (number + 0.5) * step
        parts.append(_column(one, middle, width, height))
        if number % labelled == 0:
            label = one.label if one.most <= 2 else f"≤{one.most}"  # the bound of a class is largest at its end
            parts.append(text(middle, HEIGHT - _BOTTOM + 12, label))
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH}" y1="{HEIGHT - _BOTTOM}" y2="{HEIGHT - _BOTTOM}"/>')
    parts.append(text((WIDTH + _LEFT) / 2, HEIGHT - 4, "gradients that meet in a cell"))
    return drawing("drawing", title, WIDTH + _RIGHT, HEIGHT, parts)


def _column(one: Multiplicity, middle: float, width: float, height: Callable[[float], float]) -> str:
    left, top, ground = middle - width / 2, height(one.error), height(0.0)
    title = (
        f"k = {one.label}: {one.cells:,} cells, largest error {one.error:.3g} ulp, largest bound {one.bound:.3g} ulp"
    )
    bar = f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{ground - top:.1f}"/>'
    at = f'y1="{height(one.bound):.1f}" y2="{height(one.bound):.1f}"'
    line = f'<line class="bound" x1="{left - 3:.1f}" x2="{left + width + 3:.1f}" {at}/>' if one.bound > 0.0 else ""
    return f"<g><title>{escape(title)}</title>{bar}{line}</g>"


def _marks(values: Sequence[float]) -> list[float]:
    """Return powers of two around the positive values, at most seven, evenly spaced."""
    positive = [value for value in values if 0.0 < value < math.inf] or [1.0]
    high = math.ceil(math.log2(max(positive)))
    low = max(math.floor(math.log2(min(positive))), high - 24)
    high = max(high, low + 2)
    stride = max(1, math.ceil((high - low) / 6))
    return [2.0**exponent for exponent in range(low, high + stride, stride)]


def _power(value: float) -> str:
    exponent = round(math.log2(value))
    if exponent >= 0:
        return str(2**exponent) if exponent <= 13 else "2" + raised(exponent)
    return {-1: "½", -2: "¼", -3: "⅛"}.get(exponent, "2" + raised(exponent))


def logarithmic_width(share: float) -> float:
    """Return the per cent of the full width for a share: 100 for all, 0 for none, a little for one in ten million."""
    return max(100.0 * (1.0 + math.log10(share) / 7.0), 1.5) if share > 0.0 else 0.0
