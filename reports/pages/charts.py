"""Charts as SVG in the page itself: their parts, and lines over time.

Colours are variables of the style sheet, so that charts follow a dark theme without a script.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from markupsafe import Markup, escape

COLOURS = 6
"""Series for which the style sheet has a colour."""

Point = Mapping[str, Any]
"""A point of a trend: ``time`` (Unix seconds), ``series``, ``implementation``, ``library``, ``asked``, ``runs``, and
its values by column."""


def drawing(kind: str, title: str, width: float, height: float, parts: Sequence[str]) -> Markup:
    """Put parts into an SVG of the class ``kind``, as wide as there is room."""
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


@dataclass(frozen=True)
class Trend:
    """A line over time of one column of a table of points.

    ``least_span`` is the least range of the axis, so that small movements look small. If it is 0, the axis begins at
    zero.
    """

    column: str
    title: str
    least_span: float
    most: float | None = None

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the ends of the axis."""
        if not self.least_span:
            return 0.0, max(values) or 1.0
        high = max(values) if self.most is None else self.most
        return min([*values, high - self.least_span]), high


@dataclass(frozen=True)
class Chart:
    """A drawn trend, with series -> number of its colour, if there are several."""

    title: str
    picture: Markup
    legend: Mapping[str, int]


def trend_charts(trends: Sequence[Trend], points: Sequence[Point]) -> list[Chart]:
    """Draw each trend that some point has: forwards have no sums, and crashes no time."""
    series = sorted({point["series"] for point in points})
    colours = {name: number % COLOURS + 1 for number, name in enumerate(series)}
    legend = colours if len(series) > 1 else {}
    having = ((trend, [point for point in points if trend.column in point]) for trend in trends)
    return [Chart(trend.title, _lines(trend, own, colours), legend) for trend, own in having if own]


_WIDTH, _HEIGHT = 360, 165
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 12, 8, 20
"""Room beside the lines, for labels."""

_LINE = itemgetter("series", "library", "asked")
"""Values that the points of one line share."""


def _lines(trend: Trend, points: Sequence[Point], colours: Mapping[str, int]) -> Markup:
    low, high = trend.ends([point[trend.column] for point in points])
    first, last = (end(point["time"] for point in points) for end in (min, max))

    def across(time: float) -> float:
        share = (time - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (high - low or 1.0) * (_HEIGHT - _BOTTOM - _TOP)

    parts = []
    for value in _marks(low, high):
        at = f'y1="{down(value):.1f}" y2="{down(value):.1f}"'
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" {at}/>')
        parts.append(text(_LEFT - 5, down(value) + 3.5, f"{value:.6g}", "end"))
    ticks = [(first, "start"), ((first + last) / 2, "middle"), (last, "end")] if last > first else [(first, "middle")]
    for time, anchor in ticks:
        parts.append(text(across(time), _HEIGHT - 5, _moment(time, last - first), anchor))
    for _, group in groupby(sorted(points, key=lambda point: (*_LINE(point), point["time"])), _LINE):
        line = [(across(point["time"]), down(point[trend.column]), point) for point in group]
        parts.append(f'<g style="--series: var(--series-{colours[line[0][2]["series"]]})">')
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in line)}"/>')
        for x, y, point in line:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"><title>{_tooltip(trend, point)}</title></circle>')
        parts.append("</g>")
    return drawing("drawing trend", trend.title, _WIDTH, _HEIGHT, parts)


def _tooltip(trend: Trend, point: Point) -> Markup:
    at = datetime.fromtimestamp(point["time"], UTC).strftime("%Y-%m-%d %H:%M")
    runs = f", {point['runs']} runs" if point["runs"] > 1 else ""
    return escape(f"{point['implementation']}, {point['asked']}, {at}: {point[trend.column]:.4g}{runs}")


def _moment(time: float, span: float) -> str:
    form = "%H:%M" if 0 < span < 172_800 else "%Y-%m-%d"
    return datetime.fromtimestamp(time, UTC).strftime(form)


def _marks(low: float, high: float) -> list[float]:
    """Return three to six round numbers from ``low`` to ``high``, evenly spaced."""
    rough = (high - low or 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]
