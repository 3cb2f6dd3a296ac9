"""Trends as Vega-Lite specifications. They name their data; ``charts.js`` adds data, colours and width.

Colours are names of the style sheet's variables, so that charts follow the dark mode like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolproof.reports.figures.quantities import CORRECTLY_ROUNDED
from poolproof.reports.figures.quantities import LEAST_MARGIN as _LEAST_MARGIN

Spec = dict[str, Any]


@dataclass(frozen=True)
class Trend:
    """A line over time of one column of a table of points.

    ``least_span`` is what the axis shows at least: movements that are small beside it shall look small.
    """

    column: str
    title: str
    least_span: float
    most: float | None = None

    def scale(self, values: Sequence[float]) -> Spec:
        """Return the vertical scale for these values."""
        if not values or self.least_span == 0.0:
            return {"zero": True}
        high = max(values) if self.most is None else self.most
        return {"domain": [min([*values, high - self.least_span]), high], "nice": False}


COLOURS = 6
"""Series that the style sheet has a colour for."""

TRENDS = (
    Trend("passed", "judged cases without a deviation, %", least_span=2.0, most=100.0),
    Trend("exact", CORRECTLY_ROUNDED.title, least_span=2.0),
    Trend("microseconds", "typical time of a call, µs", least_span=0.0),
)
LEAST_MARGIN = Trend("margin", _LEAST_MARGIN.title, least_span=1.0, most=1.0)


def trend_chart(trend: Trend, source: str, points: Sequence[Mapping[str, Any]]) -> Spec:
    """Draw a line per ``series`` and ``library`` over ``time`` (milliseconds since 1970) of the points.

    They are the table ``source``; a series has a colour, and ``implementation`` names a point.
    """
    scale = trend.scale([point[trend.column] for point in points if trend.column in point])
    legend = (
        {"orient": "top", "columns": 1, "labelLimit": 0} if len({point["series"] for point in points}) > 1 else None
    )
    axis = {"tickCount": 5}
    return {
        "height": 170,
        "data": {"name": source},
        "transform": [{"filter": f"isValid(datum.{trend.column})"}],
        "mark": {"type": "line", "point": {"size": 22}, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "time", "type": "temporal", "title": None, "axis": axis | {"grid": False}},
            "y": {"field": trend.column, "type": "quantitative", "title": None, "scale": scale, "axis": axis},
            "color": {"field": "series", "type": "nominal", "title": None, "legend": legend},
            "detail": {"field": "library", "type": "nominal"},
            "tooltip": [
                {"field": "implementation", "title": "implementation"},
                {"field": "time", "type": "temporal", "title": "at", "format": "%Y-%m-%d %H:%M"},
                {"field": trend.column, "title": trend.title, "format": ".4~g"},
                {"field": "runs", "title": "runs"},
            ],
        },
    }
