"""A failing plane as SVG in the page itself: what was owed, what came, what differs, and who sends to the worst cell.

Read without a script, in light and dark; the style sheet paints the classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from poolproof.reports.figures.conclusion import count_of
from poolproof.reports.pages.plane import Place, Plane, plane_of
from poolproof.reports.rows.evidence import Evidence

MOST_CELLS = 12
"""Rows and columns that are drawn at most; around the worst cell."""

MOST_PLANES = 256
_PLANES_ACROSS, _PLANE = 16, 9.0

_CELL = 22.0
_MOST_ARROWS = 24
_LONGEST_TEXT = 5
_MOST_TEXTS = 6
"""Columns up to which a cell has room for its number."""

_TITLES = (("expected", "owed"), ("got", "got"), ("difference", "got \N{MINUS SIGN} owed"))


def sketches(evidence: Evidence) -> list[tuple[str, Markup]]:
    """(title, drawing) of each picture of a plane, in the order they are read; none where there is no plane."""
    plane = plane_of(evidence, MOST_CELLS)
    if plane is None:
        return []
    shared, own = plane.reach("expected", "got"), plane.reach("difference")
    reaches = {"expected": shared, "got": shared, "difference": own}
    drawn = [(title, _grid(plane, name, title, reaches[name])) for name, title in _TITLES]
    if len(plane.windows) > 1:
        drawn.append(("windows that send there", _windows(plane)))
    if len(evidence.planes_rejected) > 1:
        drawn.append(("wrong planes", _planes(evidence.planes_rejected)))
    return drawn


def _grid(plane: Plane, name: str, title: str, reach: float) -> Markup:
    marks = [_cell(plane, cell, name, reach) for cell in plane.cells]
    if name == "difference":
        marks += _astray(plane) or _moved(plane)
    return _svg(plane, title, marks)


def _cell(plane: Plane, cell: dict[str, Any], name: str, reach: float) -> str:
    """A square whose ink grows with the magnitude; wrong cells have a frame, and the worst a double one."""
    x, y = _place(plane, cell)
    value, text = cell[name], cell[f"{name}_text"]
    kind = "low" if value is not None and value < 0.0 else "high" if value is not None else "special"
    ink = 0.0 if value is None else 0.75 * abs(value) / reach
    frame = " worst" if (cell["y"], cell["x"]) == plane.worst else " wrong" if cell["rejected"] else ""
    said = f"{cell['at']}: owed {cell['expected_text']}, got {cell['got_text']}"
    written = ""
    if plane.columns <= _MOST_TEXTS:
        written = f'<text x="{x + _CELL / 2:g}" y="{y + _CELL / 2 + 2:g}">{escape(_short(text))}</text>'
    return (
        f'<g><title>{escape(said)}</title><rect class="{kind}" x="{x:g}" y="{y:g}" width="{_CELL:g}" '
        f'height="{_CELL:g}" style="fill-opacity:{ink:.2f}"/>{_frame(x, y, frame)}{written}</g>'
    )


def _frame(x: float, y: float, kind: str) -> str:
    if not kind:
        return ""
    return f'<rect class="frame{kind}" x="{x + 1:g}" y="{y + 1:g}" width="{_CELL - 2:g}" height="{_CELL - 2:g}"/>'


def _astray(plane: Plane) -> list[str]:
    """An arrow for each gradient of which the decoder knows where it went."""
    said = {False: "arrived here, not there", True: "arrived here, too"}
    return [
        _arrow(_centre(plane, home), _centre(plane, cell), said[is_copy])
        for home, cell, is_copy in plane.astray[:_MOST_ARROWS]
    ]


def _moved(plane: Plane) -> Iterator[str]:
    """Without its account: from the worst cell to the one that has what it lacks, where just one has. There it went."""
    by_place = {(cell["y"], cell["x"]): cell for cell in plane.cells}
    worst = by_place.get(plane.worst)
    if worst is None or not worst["difference"]:
        return
    takers = [cell for cell in plane.cells if cell["difference"] == -worst["difference"] and cell["rejected"]]
    if len(takers) == 1:
        start, end = (worst, takers[0]) if worst["difference"] < 0.0 else (takers[0], worst)
        yield _arrow(_middle(plane, start), _middle(plane, end), "as if it went there")


def _windows(plane: Plane) -> Markup:
    """The windows whose index names the worst cell, and an arrow from the middle of each."""
    marks = [_blank(plane, cell) for cell in plane.cells]
    target: tuple[float, float] | None = None
    for box in plane.windows:
        x, y = (box["x"] - plane.first[1]) * _CELL, (box["y"] - plane.first[0]) * _CELL
        width, height = (box["x2"] - box["x"]) * _CELL, (box["y2"] - box["y"]) * _CELL
        middle = x + width / 2, y + height / 2
        if box["kind"] == "cell":
            target = middle
            marks.append(_frame(x, y, " worst"))
            continue
        said = f"window {box['window']}" + (f", gradient {box['gradient']}" if box["gradient"] else "")
        marks.append(
            f'<rect class="window" x="{x + 2:g}" y="{y + 2:g}" width="{width - 4:g}" height="{height - 4:g}">'
            f"<title>{escape(said)}</title></rect>"
        )
        if target is not None and math.dist(middle, target) > _CELL / 4:
            marks.append(_arrow(middle, target, said))
    return _svg(plane, "windows that send there", marks)


def _planes(wrong: NDArray[np.int64]) -> Markup:
    """A square for each plane in their order, or for as many that lie side by side; the darker, the more is wrong."""
    together = -(-len(wrong) // MOST_PLANES)
    parts = np.array_split(wrong, np.arange(together, len(wrong), together))
    most = max(int(part.sum()) for part in parts) or 1
    across = min(len(parts), _PLANES_ACROSS)
    marks = []
    for number, part in enumerate(parts):
        x, y, first = number % across * _PLANE, number // across * _PLANE, number * together
        ink = 0.25 + 0.75 * int(part.sum()) / most if part.any() else 0.0
        name = f"plane {first}" if len(part) == 1 else f"planes {first} to {first + len(part) - 1}"
        said = f"{name}: {count_of(int(part.sum()), 'wrong cell')}"
        marks.append(
            f'<rect class="count" x="{x:g}" y="{y:g}" width="{_PLANE:g}" height="{_PLANE:g}" '
            f'style="fill-opacity:{ink:.2f}"><title>{said}</title></rect>'
        )
    width, height = across * _PLANE, -(-len(parts) // across) * _PLANE
    return _drawing("wrong planes", width, height, marks)


def _blank(plane: Plane, cell: dict[str, Any]) -> str:
    x, y = _place(plane, cell)
    return f'<rect class="blank" x="{x:g}" y="{y:g}" width="{_CELL:g}" height="{_CELL:g}"/>'


def _arrow(start: tuple[float, float], end: tuple[float, float], said: str) -> str:
    """A line with a head, drawn without a marker: an id would have to be its page's own."""
    (x1, y1), (x2, y2) = start, end
    angle = math.atan2(y2 - y1, x2 - x1)
    sides = [(x2 - 6 * math.cos(angle + turn), y2 - 6 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *sides])
    line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    return f'<g class="arrow"><title>{escape(said)}</title>{line}<polygon points="{head}"/></g>'


def _svg(plane: Plane, title: str, marks: Sequence[str]) -> Markup:
    return _drawing(title, plane.columns * _CELL, plane.rows * _CELL, marks)


def _drawing(title: str, width: float, height: float, marks: Sequence[str]) -> Markup:
    """At most 1.6 times its size on a wide screen, and as wide as there is room on a narrow one."""
    view = f"-1 -1 {width + 2:g} {height + 2:g}"
    size = f"max-width:{max(width * 1.6, 60):g}px"
    return Markup(
        f'<svg class="plane" viewBox="{view}" style="{size}" role="img" aria-label="{escape(title)}">'
        f"{''.join(marks)}</svg>"
    )


def _place(plane: Plane, cell: dict[str, Any]) -> tuple[float, float]:
    return (cell["x"] - plane.first[1]) * _CELL, (cell["y"] - plane.first[0]) * _CELL


def _middle(plane: Plane, cell: dict[str, Any]) -> tuple[float, float]:
    return _centre(plane, (cell["y"], cell["x"]))


def _centre(plane: Plane, place: Place) -> tuple[float, float]:
    return (place[1] - plane.first[1] + 0.5) * _CELL, (place[0] - plane.first[0] + 0.5) * _CELL


def _short(text: str) -> str:
    """A number that fits into a cell."""
    try:
        value = float(text)
    except ValueError:
        return text
    plain = next((plain for digits in (6, 5, 4, 3, 2) if len(plain := f"{value:.{digits}g}") <= _LONGEST_TEXT), None)
    return plain or f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
