"""Pictures of a failing plane as SVG: expected, actual, difference, and the windows that send to the worst cell.

They are part of the page and need no script, in light and dark themes; the style sheet paints the classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from poolproof.reports.rows.evidence import Evidence
from poolproof.reports.rows.rejudge import expected
from poolproof.reports.rows.rejudge import number as spelled
from poolproof.reports.rows.text import count_of

MAX_CELLS = 12
"""Most rows and columns in a drawing, around the worst cell."""

MAX_PLANES = 256

_PLANE = 9.0
"""Size of a small square."""

_ROW = 16
"""Small squares in a row."""

_OUTSIDE = 2
"""Code in ``written`` of a byte that was written outside of elements."""

_CELL = 22.0
_MAX_ARROWS = 24
_LONGEST_TEXT = 5
_DIGITS = 4
_MAX_TEXTS = 6
"""Most columns with room for a cell's number."""

_DIFFERENCE, _SENDERS = "got \N{MINUS SIGN} ", "windows that send there"

_EXACT = "exact sum"
"""What the picture of a backward shows: a cell may have many admissible values."""

Place = tuple[int, int]
"""Row and column in the drawn part of a plane."""

Point = tuple[float, float]
"""(x, y) in a drawing."""


@dataclass(frozen=True)
class Picture:
    """Titles and ``drawings`` in reading order; ``caption`` says which part of which tensor they show."""

    caption: str
    drawings: Sequence[tuple[str, Markup]]


class _Crop:
    """The drawn part of a plane, with the worst element as near to the middle as the edges allow.

    ``leading`` are the plane's indices in the arrays. ``first`` is the first drawn row and column, ``size`` the number
    of both. Places, such as that of the ``worst`` element, count from there.
    """

    def __init__(self, evidence: Evidence, most_cells: int) -> None:
        shape = evidence.arrays["got"].shape
        self.evidence, self.element = evidence, worst_element(evidence)
        self.leading = self.element[:-2]
        self.size = min(shape[-2], most_cells), min(shape[-1], most_cells)
        axes = zip(self.element[-2:], self.size, shape[-2:], strict=True)
        row, column = (min(max(at - drawn // 2, 0), length - drawn) for at, drawn, length in axes)
        self.first, self.worst = (row, column), (self.element[-2] - row, self.element[-1] - column)

    def place_of(self, element: tuple[int, ...]) -> Place | None:
        """Return where an element is drawn; None if it is not."""
        held = self.evidence.held(element)
        if held is None or held[:-2] != self.leading:
            return None
        row, column = held[-2] - self.first[0], held[-1] - self.first[1]
        return (row, column) if 0 <= row < self.size[0] and 0 <= column < self.size[1] else None

    def part(self, array: NDArray[Any]) -> NDArray[Any]:
        rows, columns = (slice(start, start + size) for start, size in zip(self.first, self.size, strict=True))
        return np.asarray(array[self.leading])[rows, columns]

    def svg(self, title: str, marks: Sequence[str]) -> Markup:
        return _drawing(title, self.size[1] * _CELL, self.size[0] * _CELL, marks)


def picture(evidence: Evidence, most_cells: int = MAX_CELLS, most_texts: int = _MAX_TEXTS) -> Picture | None:
    """Draw the plane around the worst element, at most ``most_cells`` rows and columns; None if there is no plane.

    Cells show their numbers if there are at most ``most_texts`` columns.
    """
    arrays = evidence.arrays
    if arrays["got"].ndim < 2 or not arrays["got"].size:
        return None
    crop = _Crop(evidence, most_cells)
    drawings = [*_numbers(crop, most_texts)]
    if windows := _windows(crop):
        drawings.append((_SENDERS, crop.svg(_SENDERS, windows)))
    if len(wrong := evidence.rejected_per_plane) > 1 and wrong.any():
        drawings.append(("wrong planes", _planes(wrong)))
    caption = _caption(crop)
    if "written" in arrays:
        name, written = evidence.meta.get("written", "the output"), arrays["written"]
        drawings.append((f"memory of {name}", _memory(written, f"memory of {name}")))
        count = count_of(int((written == _OUTSIDE).sum()), "byte")
        caption += f" Red in the memory of {name}: {count} written outside of its elements, which are blue."
    return Picture(caption, drawings)


def worst_element(evidence: Evidence) -> tuple[int, ...]:
    """Return the index in ``got`` of the recorded element, else of the farthest outside, else of the first."""
    shape = evidence.arrays["got"].shape
    if named := evidence.held(evidence.meta.get("element")):
        return named
    rejected = evidence.rejected
    if not rejected.any():
        return (0,) * len(shape)
    got, low, high = (evidence.arrays[name] for name in ("got", "low", "high"))
    with np.errstate(invalid="ignore"):
        outside = np.maximum(low - got, got - high)
    outside = np.where(np.isfinite(outside), outside, np.inf)
    return tuple(map(int, np.unravel_index(np.where(rejected, outside, -np.inf).argmax(), shape)))


def _numbers(crop: _Crop, most_texts: int) -> Iterator[tuple[str, Markup]]:
    """Draw expected values, actual values and their difference, with arrows for misrouted gradients."""
    arrays, rejected = crop.evidence.arrays, crop.part(crop.evidence.rejected)
    low, high, got = (crop.part(arrays[name]) for name in ("low", "high", "got"))
    named = _EXACT if "exact" in arrays and crop.evidence.meta.get("tensor") == "grad_input" else "expected"
    with np.errstate(invalid="ignore", over="ignore"):
        right = crop.part(arrays["exact"]) if "exact" in arrays else np.where(low <= high, (low + high) / 2, np.nan)
        difference = got - right
    sentences = _sentences(crop, right if named == _EXACT else None, difference)
    frames = {at: _frame(at, "wrong") for at in zip(*np.nonzero(rejected), strict=True)}
    if crop.worst in frames:
        frames[crop.worst] = _frame(crop.worst, "worst")
    for title, numbers in {named: right, "got": got, f"{_DIFFERENCE}{named}": difference}.items():
        reach = _reach(difference) if numbers is difference else _reach(np.stack([right, got]))
        marks = []
        for at, value in np.ndenumerate(numbers):
            square = _inked(at, value, reach) + frames.get(at, "")
            text = _text(_centre(at), _short(value)) if crop.size[1] <= most_texts else ""
            marks.append(f"<g><title>{escape(sentences[at])}</title>{square}{text}</g>")
        if numbers is difference:
            marks += list(islice(_misrouted(crop), _MAX_ARROWS)) or _moved(crop, difference, rejected)
        yield title, crop.svg(title, marks)


def _sentences(crop: _Crop, exact: NDArray[Any] | None, difference: NDArray[Any]) -> dict[Place, str]:
    """Describe each cell: expected and actual value."""
    arrays, sentences = crop.evidence.arrays, {}
    for at in np.ndindex(crop.size):
        held = (*crop.leading, crop.first[0] + at[0], crop.first[1] + at[1])
        sum_of_it = "" if exact is None else f", {_EXACT} {spelled(exact[at])}"
        values = f"expected {expected(arrays, held)}, got {spelled(arrays['got'][held])}{sum_of_it}"
        sentences[at] = f"{[*held]}: {values}, difference {difference[at]:.{_DIGITS}g}"
    return sentences


def _reach(values: NDArray[Any]) -> float:
    """Return the largest finite magnitude; 1 if there are only zeros."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0


def _corner(place: Sequence[int]) -> Point:
    return place[1] * _CELL, place[0] * _CELL


def _centre(place: Sequence[int]) -> Point:
    return (place[1] + 0.5) * _CELL, (place[0] + 0.5) * _CELL


def _inked(place: Place, value: float, reach: float) -> str:
    """Draw a square with ink by magnitude."""
    if not math.isfinite(value):
        return _rect("special", *_corner(place), _CELL, _CELL, ink=0.0)
    return _rect("low" if value < 0.0 else "high", *_corner(place), _CELL, _CELL, ink=0.75 * abs(value) / reach)


def _rect(kind: str, x: float, y: float, width: float, height: float, title: str = "", ink: float | None = None) -> str:
    style = "" if ink is None else f' style="fill-opacity:{ink:.2f}"'
    end = f"><title>{title}</title></rect>" if title else "/>"
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{style}{end}'


def _frame(place: Place, kind: str) -> str:
    """Draw the frame of a wrong cell; the worst one gets a double frame."""
    x, y = _corner(place)
    return _rect(f"frame {kind}", x + 1, y + 1, _CELL - 2, _CELL - 2)


def _text(at: Point, text: str) -> str:
    return f'<text x="{at[0]:g}" y="{at[1] + 2:g}">{escape(text)}</text>'


def _misrouted(crop: _Crop) -> Iterator[str]:
    for fault in crop.evidence.misrouted:
        home, cell = crop.place_of(fault.home), crop.place_of(fault.cell)
        if home is not None and cell is not None:
            what = "arrived here, too" if fault.kind == "copied" else "arrived here, not there"
            yield _arrow(_centre(home), _centre(cell), what)


def _moved(crop: _Crop, difference: NDArray[Any], rejected: NDArray[Any]) -> Iterator[str]:
    """Without decoded windows: draw an arrow from the worst cell to the only cell with what it lacks, if any."""
    more = difference[crop.worst]
    takers = np.argwhere(rejected & (difference == -more))
    if math.isfinite(more) and more and len(takers) == 1:
        start, end = (crop.worst, takers[0]) if more < 0.0 else (takers[0], crop.worst)
        yield _arrow(_centre(start), _centre(end), "as if it went there")


def _windows(crop: _Crop) -> list[str]:
    """Draw the windows with the worst cell's index, with their gradients and an arrow from the middle of each."""
    arrays = crop.evidence.arrays
    if not {"indices", "window_first", "window_last"}.issubset(arrays):
        return []
    first, last = arrays["window_first"], arrays["window_last"]
    rank, shape = first.shape[1], arrays["got"].shape
    plane = int(np.ravel_multi_index(crop.element[:-rank], shape[:-rank])) if len(shape) > rank else 0
    cell = int(np.ravel_multi_index(crop.element[-rank:], shape[-rank:]))
    senders = np.flatnonzero(arrays["indices"].reshape(-1, len(first))[plane] == cell)
    if not len(senders):
        return []
    gradients = arrays["gradient"].reshape(-1, len(first))[plane] if "gradient" in arrays else None
    marks = [_rect("blank", *_corner(at), _CELL, _CELL) for at in np.ndindex(crop.size)]
    if crop.evidence.rejected[crop.element]:
        marks.append(_frame(crop.worst, "worst"))
    for sender in map(int, senders):
        start = first[sender][-2:] - crop.first
        (x, y), (right, bottom) = _corner(start), _corner(last[sender][-2:] + 1 - crop.first)
        title, text = f"window {sender}", ""
        if gradients is not None:
            title += f", gradient {gradients[sender]:.{_DIGITS}g}"
            text = _text(_centre(start), _short(gradients[sender]))
        marks += [_rect("window", x + 2, y + 2, right - x - 4, bottom - y - 4, title), text]
        middle = (x + right) / 2, (y + bottom) / 2
        if math.dist(middle, _centre(crop.worst)) > _CELL / 4:
            marks.append(_arrow(middle, _centre(crop.worst), title))
    return marks


def _planes(wrong: NDArray[np.int64]) -> Markup:
    """Draw a square for each plane, or each group of planes, in order; darker squares have more wrong cells."""
    together = -(-len(wrong) // MAX_PLANES)
    groups = np.array_split(wrong, np.arange(together, len(wrong), together))
    most = max(int(group.sum()) for group in groups) or 1
    squares = []
    for first, group in zip(range(0, len(wrong), together), groups, strict=True):
        ink = 0.25 + 0.75 * int(group.sum()) / most if group.any() else 0.0
        last = first + len(group) - 1
        name = f"plane {first}" if last == first else f"planes {first} to {last}"
        squares.append(("count", f"{name}: {count_of(int(group.sum()), 'wrong cell')}", ink))
    return _small_squares("wrong planes", squares, min(len(groups), _ROW))


def _memory(kinds: NDArray[np.uint8], title: str) -> Markup:
    """Draw a square per byte, or per group of bytes, from the first to the last that is an element or was written.

    Rows are read from left to right. Squares of untouched bytes are blank.
    """
    touched = np.flatnonzero(kinds)
    first, last = max(int(touched[0]) // _ROW - 1, 0) * _ROW, min((int(touched[-1]) // _ROW + 2) * _ROW, len(kinds))
    together = -(-(last - first) // MAX_PLANES)
    squares: list[_SmallSquare] = []
    for start in range(first, last, together):
        part = kinds[start : start + together]
        outside, elements = (int((part == kind).sum()) for kind in (_OUTSIDE, 1))
        what = f"{outside} written outside" if outside else f"{elements} of elements"
        name = f"{count_of(len(part), 'byte')} from byte {start - int(np.flatnonzero(kinds == 1)[0])}: {what}"
        squares.append(("count", name, 1.0) if outside else ("high", name, 0.5) if elements else ("blank", name, None))
    return _small_squares(title, squares, _ROW)


_SmallSquare = tuple[str, str, float | None]
"""(class in the style sheet, title, ink)."""


def _small_squares(title: str, squares: Sequence[_SmallSquare], across: int) -> Markup:
    marks = []
    for number, (kind, name, ink) in enumerate(squares):
        x, y = number % across * _PLANE, number // across * _PLANE
        marks.append(_rect(kind, x, y, _PLANE, _PLANE, name, ink))
    return _drawing(title, across * _PLANE, -(-len(marks) // across) * _PLANE, marks)


def _arrow(start: Point, end: Point, title: str) -> str:
    """Draw a line with a head, without an SVG marker, which would need a unique id on its page."""
    (x1, y1), (x2, y2) = start, end
    angle = math.atan2(y2 - y1, x2 - x1)
    sides = [(x2 - 6 * math.cos(angle + turn), y2 - 6 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *sides])
    line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    return f'<g class="arrow"><title>{escape(title)}</title>{line}<polygon points="{head}"/></g>'


def _drawing(title: str, width: float, height: float, marks: Sequence[str]) -> Markup:
    """Draw at most 1.6 times its size on a wide screen, and at full width on a narrow one."""
    view = f"-1 -1 {width + 2:g} {height + 2:g}"
    size = f"max-width:{max(width * 1.6, 60):g}px"
    return Markup(
        f'<svg class="plane" viewBox="{view}" style="{size}" role="img" aria-label="{escape(title)}">'
        f"{''.join(marks)}</svg>"
    )


def _caption(crop: _Crop) -> str:
    tensor, rejected = crop.evidence.meta.get("tensor", "output"), crop.evidence.rejected
    rows, columns = (f"{start} to {start + size - 1}" for start, size in zip(crop.first, crop.size, strict=True))
    plane = f", plane {list(crop.leading)}" if crop.leading else ""
    wrong = "Red frames are around wrong cells." if rejected.any() else "None of its cells is wrong."
    return f"{tensor}{plane}: rows {rows}, columns {columns}. {wrong}"


def _short(value: float) -> str:
    texts = (f"{value:.{digits}g}" for digits in range(_DIGITS, 1, -1))
    short = next((text for text in texts if len(text) <= _LONGEST_TEXT), None)
    return short or f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
