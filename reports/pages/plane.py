"""The picture of a failing case: the plane around its worst cell, drawn from the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.reports.pages.charts import FIGURES, Spec, plane_chart, windows_chart
from poolproof.reports.rows.evidence import Evidence

MOST_CELLS = 32
"""Rows and columns that are drawn at most; around the worst cell."""

Place = tuple[int, int]
"""Row and column of a plane."""

CELLS_SOURCE, WINDOWS_SOURCE = "cells", "windows"


@dataclass(frozen=True)
class Picture:
    """What a page needs to draw a plane.

    sources
        The data of the charts, by the names that the charts use.
    charts
        (title, specification) in the order they are read.
    caption
        Which part of which tensor is drawn.
    rows, columns
        How many cells the drawn part has.
    """

    sources: dict[str, list[dict[str, Any]]]
    charts: tuple[tuple[str, Spec], ...]
    caption: str
    rows: int
    columns: int


@dataclass(frozen=True, eq=False)
class Plane:
    """The part of a plane that is drawn, around the ``worst`` cell.

    cells
        Each with its place (y, x, and ``at``, all coordinates), whether it is ``rejected``, and what was expected, got
        and differs: as a number, None where it is not finite, and as a text.
    windows
        The ``worst`` cell (kind "cell") and the windows that send to it (kind "window"), as boxes from (y, x) to
        (y2, x2), the ends not included; empty where the evidence has no windows.
    first
        The row and column that are drawn first.
    astray
        (from, to, whether it arrived in both): gradients that went from a drawn cell to another, each a row and column.
    """

    cells: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    first: tuple[int, int]
    rows: int
    columns: int
    worst: tuple[int, int]
    caption: str
    astray: list[tuple[Place, Place, bool]]

    def reach(self, *columns: str) -> float:
        """The largest finite magnitude of some of expected, got and difference; 1 where there are but zeros."""
        return _reach(self.cells, *columns)


def plane_of(evidence: Evidence, most: int = MOST_CELLS) -> Plane | None:
    """The plane around the worst cell, with ``most`` rows and columns; None where the output is no plane."""
    got = evidence.arrays["got"]
    if got.ndim < 2 or not got.size:
        return None
    worst = worst_element(evidence)
    crop = _crop(got.shape, worst, most)
    cells, windows = _cells(evidence, crop), _windows(evidence, worst)
    caption, astray = _caption(evidence, crop), list(_astray(evidence, crop))
    return Plane(cells, windows, crop.first, *crop.size, crop.worst, caption, astray)


@dataclass(frozen=True)
class _Crop:
    """The drawn part of a plane: which plane, where it starts, and how many rows and columns it has."""

    leading: tuple[int, ...]
    first: tuple[int, int]
    size: tuple[int, int]
    worst: tuple[int, int]

    def place_of(self, at: tuple[int, ...]) -> Place | None:
        """The row and column of an element; None where it is not drawn."""
        axes = zip(at[-2:], self.first, self.size, strict=True)
        is_drawn = at[:-2] == self.leading and all(0 <= here - start < size for here, start, size in axes)
        return (at[-2], at[-1]) if is_drawn else None

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        rows, columns = (slice(start, start + size) for start, size in zip(self.first, self.size, strict=True))
        return array[self.leading][rows, columns]


def picture(evidence: Evidence) -> Picture | None:
    """The charts of a case, or None where there is no plane to draw."""
    plane = plane_of(evidence)
    if plane is None:
        return None
    shared, own = plane.reach("expected", "got"), plane.reach("difference")
    charts = [
        ("Owed", plane_chart("expected", CELLS_SOURCE, plane.columns, shared)),
        ("Got", plane_chart("got", CELLS_SOURCE, plane.columns, shared)),
        ("Got − owed", plane_chart("difference", CELLS_SOURCE, plane.columns, own)),
    ]
    sources = {CELLS_SOURCE: plane.cells}
    if plane.windows:
        sources[WINDOWS_SOURCE] = plane.windows
        title = "Windows that send to the worst cell, with their gradients"
        charts.append((title, windows_chart(WINDOWS_SOURCE, plane.first, (plane.rows, plane.columns))))
    return Picture(sources, tuple(charts), plane.caption, plane.rows, plane.columns)


def worst_element(evidence: Evidence) -> tuple[int, ...]:
    """The element the writer names, else the rejected one that lies farthest outside, else the first."""
    shape = evidence.arrays["got"].shape
    named = evidence.meta.get("element")
    if named and len(named) == len(shape):
        return tuple(named)
    rejected = evidence.rejected
    if not rejected.any():
        return (0,) * len(shape)
    got, low, high = (evidence.arrays[name] for name in ("got", "low", "high"))
    with np.errstate(invalid="ignore"):
        outside = np.maximum(low - got, got - high)
    outside = np.where(np.isfinite(outside), outside, np.inf)
    return tuple(map(int, np.unravel_index(np.where(rejected, outside, -np.inf).argmax(), shape)))


def _crop(shape: tuple[int, ...], worst: tuple[int, ...], most: int) -> _Crop:
    """As much as may be drawn, with the worst cell as near to the middle as the edges allow."""
    size = tuple(min(length, most) for length in shape[-2:])
    first = tuple(
        min(max(at - drawn // 2, 0), length - drawn)
        for at, drawn, length in zip(worst[-2:], size, shape[-2:], strict=True)
    )
    return _Crop(worst[:-2], (first[0], first[1]), (size[0], size[1]), (worst[-2], worst[-1]))


def _cells(evidence: Evidence, crop: _Crop) -> list[dict[str, Any]]:
    arrays = evidence.arrays
    exact = arrays.get("exact")
    low, high, got = (crop.of(arrays[name]) for name in ("low", "high", "got"))
    expected = crop.of(exact) if exact is not None else np.where(low <= high, (low + high) / 2, np.nan)
    rejected = crop.of(evidence.rejected)
    cells = []
    for row, column in np.ndindex(crop.size):
        owed, came = float(expected[row, column]), float(got[row, column])
        values = {"expected": owed, "got": came, "difference": came - owed}
        place = (crop.first[0] + row, crop.first[1] + column)
        cells.append(
            {"y": place[0], "x": place[1], "at": str([*crop.leading, *place]), "rejected": bool(rejected[row, column])}
            | {name: value if math.isfinite(value) else None for name, value in values.items()}
            | {f"{name}_text": f"{value:.{FIGURES}g}" for name, value in values.items()}
        )
    return cells


def _windows(evidence: Evidence, worst: tuple[int, ...]) -> list[dict[str, Any]]:
    """The windows whose index is the worst cell, with the last two of their axes, and the cell itself."""
    arrays = evidence.arrays
    if not {"indices", "window_first", "window_last"}.issubset(arrays):
        return []
    first, last = arrays["window_first"], arrays["window_last"]
    rank = first.shape[1]
    spatial = evidence.arrays["got"].shape[-rank:]
    plane = int(np.ravel_multi_index(worst[:-rank], arrays["got"].shape[:-rank])) if len(worst) > rank else 0
    cell = int(np.ravel_multi_index(worst[-rank:], spatial))
    senders = np.flatnonzero(arrays["indices"].reshape(-1, len(first))[plane] == cell)
    gradient = arrays.get("gradient")
    texts = gradient.reshape(-1, len(first))[plane] if gradient is not None else None
    lines = [{"kind": "cell", "window": "", "gradient": "", **_box(worst[-2:], worst[-2:])}]
    for sender in senders:
        text = "" if texts is None else f"{texts[sender]:.{FIGURES}g}"
        box = _box(first[sender][-2:], last[sender][-2:])
        lines.append({"kind": "window", "window": str(int(sender)), "gradient": text, **box})
    return lines


def _astray(evidence: Evidence, crop: _Crop) -> Iterator[tuple[Place, Place, bool]]:
    for one in evidence.astray:
        home, cell = crop.place_of(one.home), crop.place_of(one.cell)
        if home is not None and cell is not None:
            yield home, cell, one.is_copy


def _box(first: Sequence[int] | NDArray[Any], last: Sequence[int] | NDArray[Any]) -> dict[str, int]:
    """The corners of a rectangle of cells; a last row or column is enclosed."""
    return {"y": int(first[0]), "x": int(first[1]), "y2": int(last[0]) + 1, "x2": int(last[1]) + 1}


def _reach(cells: Sequence[dict[str, Any]], *columns: str) -> float:
    """The largest finite magnitude in some columns; 1 where there is nothing but zeros."""
    return max((abs(cell[name]) for cell in cells for name in columns if cell[name] is not None), default=0.0) or 1.0


def _caption(evidence: Evidence, crop: _Crop) -> str:
    tensor = evidence.meta.get("tensor", "output")
    rows, columns = (f"{start} to {start + size - 1}" for start, size in zip(crop.first, crop.size, strict=True))
    plane = f", plane {list(crop.leading)}" if crop.leading else ""
    wrong, all_cells = int(evidence.rejected.sum()), evidence.rejected.size
    return f"{tensor}{plane}: rows {rows}, columns {columns}. {wrong:,} of {all_cells:,} cells are not admissible."
