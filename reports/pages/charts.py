"""Charts as Vega-Lite specifications. They name their data; ``charts.js`` puts data, colours and width in.

Colours stand as the names of the style sheet's variables, so that charts follow the dark mode like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolproof.reports.figures.quantities import CORRECTLY_ROUNDED
from poolproof.reports.figures.quantities import LEAST_MARGIN as _LEAST_MARGIN

Spec = dict[str, Any]

FIGURES = 4
"""Digits of a value that is written into a cell."""

_MOST_LABELLED_COLUMNS = 14
"""Wider pictures have cells too small for a number."""


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
        """The vertical scale for some values."""
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
    """A line per ``series`` and ``library`` over ``time`` (milliseconds since 1970) of the points.

    They are the table ``source``; a series has a colour, and ``implementation`` is what a point is called.
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


def plane_chart(column: str, source: str, columns: int, reach: float) -> Spec:
    """A picture of a plane: every cell painted by ``column``, rejected ones framed; zero has no colour.

    ``reach`` is the largest magnitude of the scale.
    """
    scale = {"domain": [-reach, 0.0, reach], "range": ["--low", "--paper", "--high"], "interpolate": "rgb"}
    legend = {"orient": "bottom", "gradientThickness": 8, "gradientLength": 160, "title": None}
    colour = {"field": column, "type": "quantitative", "scale": scale, "legend": legend}
    encoding = _place() | {
        "color": {"condition": {"test": f"!isValid(datum.{column})", "value": "--faint"}, **colour},
        "tooltip": _cell_tooltip(),
    }
    frame = {"type": "rect", "filled": False, "stroke": "--bad", "strokeWidth": 2.5}
    layers: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "--line", "strokeWidth": 0.5}, "encoding": encoding},
        {"transform": [{"filter": "datum.rejected"}], "mark": frame, "encoding": _place()},
    ]
    if columns <= _MOST_LABELLED_COLUMNS:
        layers.append(_labels(f"{column}_text"))
    return {"data": {"name": source}, "usermeta": {"keepsAspect": True}, "layer": layers}


def windows_chart(source: str, first: tuple[int, int], size: tuple[int, int]) -> Spec:
    """The windows that reach the worst cell, as frames over the part of a plane that starts at ``first``.

    ``source`` names lines of kind "cell" or "window" with the corners x, y, x2, y2 and the window's gradient.
    """
    axes = {"x": _axis("x", first[1], size[1]), "y": _axis("y", first[0], size[0])}
    corners = axes | {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    tooltip = [{"field": "window", "title": "window"}, {"field": "gradient", "title": "grad_output"}]
    frame = {"type": "rect", "filled": False, "strokeWidth": 2, "clip": True}
    colour = {"field": "window", "type": "nominal", "legend": None}
    windows = {"filter": "datum.kind == 'window'"}
    return {
        "data": {"name": source},
        "usermeta": {"keepsAspect": True},
        "layer": [
            _grid_lines("x", first[1], size[1]),
            _grid_lines("y", first[0], size[0]),
            {
                "transform": [{"filter": "datum.kind == 'cell'"}],
                "mark": {"type": "rect", "color": "--bad", "opacity": 0.35},
                "encoding": corners,
            },
            {"transform": [windows], "mark": frame, "encoding": corners | {"stroke": colour, "tooltip": tooltip}},
            {
                "transform": [
                    windows,
                    {"calculate": "datum.x + 0.5", "as": "left"},
                    {"calculate": "datum.y + 0.5", "as": "top"},
                ],
                "mark": {"type": "text", "fontSize": 11, "fontWeight": 600, "clip": True},
                "encoding": {
                    "x": {"field": "left", "type": "quantitative"},
                    "y": {"field": "top", "type": "quantitative"},
                    "text": {"field": "gradient", "type": "nominal"},
                    "color": colour,
                },
            },
        ],
    }


def _place() -> Spec:
    axis = {"labelOverlap": "parity", "labelAngle": 0, "ticks": False, "domain": False, "title": None}
    return {"x": {"field": "x", "type": "ordinal", "axis": axis}, "y": {"field": "y", "type": "ordinal", "axis": axis}}


def _axis(field: str, first: int, length: int) -> Spec:
    """An axis over cells: each as wide as 1, its number below its middle."""
    scale = {"domain": [first, first + length], "nice": False, "zero": False, "reverse": field == "y"}
    middles = [first + place + 0.5 for place in range(length)]
    axis = {"title": None, "grid": False, "ticks": False, "domain": False, "labelOverlap": "parity"}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": axis | {"values": middles, "labelExpr": "floor(datum.value)"},
    }


def _grid_lines(field: str, first: int, length: int) -> Spec:
    return {
        "data": {"sequence": {"start": first, "stop": first + length + 1, "as": field}},
        "mark": {"type": "rule", "color": "--line", "strokeWidth": 0.5},
        "encoding": {field: _axis(field, first, length)},
    }


def _labels(text: str) -> Spec:
    mark = {"type": "text", "fontSize": 9, "color": "--label"}
    return {"mark": mark, "encoding": _place() | {"text": {"field": text, "type": "nominal"}}}


def _cell_tooltip() -> list[Spec]:
    titles = {"at": "element", "expected_text": "owed", "got_text": "got", "difference_text": "difference"}
    return [{"field": field, "title": title, "type": "nominal"} for field, title in titles.items()]
