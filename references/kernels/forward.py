"""Forward maxima of planes, window by window and cell by cell, and the judgement of maxima and indices.

The family's rule is that of torch and the operator library. A window's cells are visited in row-major order. A value
replaces the running maximum if it is greater *or* NaN. So the first maximum wins a tie, the last NaN wins over
everything, and a window of only -inf keeps its first cell. `ForwardParameters` describe other rules. Indices are flat
over the unpadded plane. A window without a cell has the index -1.

A plane has three axes: depth, height and width. A 2-D pool has one cell and one window in depth.
"""

from __future__ import annotations

from typing import NamedTuple

from poolproof.references.kernels.compiled import Bytes, Floats, Ints, compiled, helper


class Spans(NamedTuple):
    """The windows along one axis of ``size`` cells.

    Window i has ``counts[i]`` cells inside the input, from ``firsts[i]`` on, ``step`` apart.
    """

    size: int
    step: int
    firsts: Ints
    counts: Ints


class ForwardParameters(NamedTuple):
    """The numbers of a `ForwardRule`.

    Attributes:
        nothing: The initial running maximum.
        nowhere: Its index, unless ``keeps_cell``.
        empty: Maximum of a window without a cell.
        keeps_cell: The initial index is the window's first cell.
        normal: Smaller magnitudes compare as zero.
    """

    ties: int
    nans: int
    nothing: float
    nowhere: int
    empty: float
    keeps_cell: bool
    normal: float


FIRST, LAST, ANY, LEADING, YIELDING, IGNORED = range(6)
"""Which of several equal values, or of NaN, wins. ``LEADING``: NaN wins only as the first cell. ``YIELDING``: the next
value replaces NaN."""


class Span(NamedTuple):
    """The cells of one window along one axis."""

    first: int
    length: int
    step: int


class Window(NamedTuple):
    """One window in the plane of ``rows`` x ``columns`` that begins at cell ``start``."""

    start: int
    rows: int
    columns: int
    depth: Span
    height: Span
    width: Span


WRONG_MAXIMUM, WRONG_INDEX, POINTS_ELSEWHERE = 1, 2, 4
"""Flags of a window: a wrong maximum, an index that the rule does not give, and an index outside the window or of a
value other than the output."""


@compiled
def find_maxima(
    cells: Floats, depth: Spans, height: Spans, width: Spans, rule: ForwardParameters, indices: Ints
) -> None:
    """Fill the index of every window of consecutive planes; the first one if the rule allows any."""
    plane_size = depth.size * height.size * width.size
    number = 0
    for plane in range(len(cells) // max(plane_size, 1)):
        for d in range(len(depth.firsts)):
            for h in range(len(height.firsts)):
                for w in range(len(width.firsts)):
                    window = window_at(plane * plane_size, depth, height, width, d, h, w)
                    indices[number] = index_of_maximum(cells, window, rule)
                    number += 1


@compiled
def judge_maxima(
    cells: Floats,
    depth: Spans,
    height: Spans,
    width: Spans,
    rule: ForwardParameters,
    outputs: Floats,
    indices: Ints,
    wrong: Bytes,
) -> None:
    """Fill the flags of every window of consecutive planes, given their maxima and indices."""
    plane_size = depth.size * height.size * width.size
    number = 0
    for plane in range(len(cells) // max(plane_size, 1)):
        for d in range(len(depth.firsts)):
            for h in range(len(height.firsts)):
                for w in range(len(width.firsts)):
                    window = window_at(plane * plane_size, depth, height, width, d, h, w)
                    wrong[number] = flags_of(cells, window, rule, outputs[number], indices[number])
                    number += 1


@helper
def window_at(start: int, depth: Spans, height: Spans, width: Spans, d: int, h: int, w: int) -> Window:
    return Window(
        start,
        height.size,
        width.size,
        Span(depth.firsts[d], depth.counts[d], depth.step),
        Span(height.firsts[h], height.counts[h], height.step),
        Span(width.firsts[w], width.counts[w], width.step),
    )


@helper
def flags_of(cells: Floats, window: Window, rule: ForwardParameters, output: float, index: int) -> int:
    right = index_of_maximum(cells, window, rule)
    maximum = maximum_at(cells, window.start, right, rule) if has_cells(window) else rule.empty
    flags = 0 if is_as_great(output, maximum, rule) else WRONG_MAXIMUM
    inside = right >= 0 if index == right else is_visited(index, window)
    expected = rule.nowhere if right < 0 and has_cells(window) else right
    if index != expected and (
        not inside or right < 0 or not is_equally_valid(cells[window.start + index], maximum, rule)
    ):
        flags |= WRONG_INDEX
    if inside:
        points = is_as_great(output, cells[window.start + index], rule)
    else:
        points = index == right and not has_cells(window)
    return flags if points else flags | POINTS_ELSEWHERE


@helper
def index_of_maximum(cells: Floats, window: Window, rule: ForwardParameters) -> int:
    """Find the index of one window; -1 for none."""
    if not has_cells(window):
        return -1
    rows, columns, depth, height, width = window.rows, window.columns, window.depth, window.height, window.width
    first = (depth.first * rows + height.first) * columns + width.first
    index = first if rule.keeps_cell else -1
    maximum = rule.nothing
    for d in range(depth.length):
        for h in range(height.length):
            row = ((depth.first + d * depth.step) * rows + height.first + h * height.step) * columns + width.first
            for cell in range(row, row + width.length * width.step, width.step):
                value = cells[window.start + cell]
                if replaces(value, maximum, cell == first, rule):
                    maximum = value
                    index = cell
    return index


@helper
def has_cells(window: Window) -> bool:
    return window.depth.length > 0 and window.height.length > 0 and window.width.length > 0


@helper
def maximum_at(cells: Floats, start: int, index: int, rule: ForwardParameters) -> float:
    """Return the value at a window's ``index``; -inf for NaN if the rule ignores NaN."""
    if index < 0:
        return rule.nothing
    value = cells[start + index]
    return -float("inf") if value != value and rule.nans == IGNORED else value


@helper
def replaces(value: float, maximum: float, is_first: bool, rule: ForwardParameters) -> bool:
    """Check whether a value replaces the running maximum; ``is_first``: the value is in the window's first cell."""
    if value <= maximum:
        return rule.ties == LAST and is_as_great(value, maximum, rule)
    if value > maximum:
        return rule.ties == LAST or not is_as_great(value, maximum, rule)
    if value == value:  # a number beside NaN
        return rule.nans == YIELDING
    if rule.nans == FIRST or rule.nans == ANY:
        return maximum == maximum
    return rule.nans == LAST or rule.nans == YIELDING or (rule.nans == LEADING and is_first)


@helper
def is_equally_valid(value: float, maximum: float, rule: ForwardParameters) -> bool:
    """Check whether the rule may also take this cell of the window as its maximum."""
    any_of_them = rule.nans == ANY if maximum != maximum else rule.ties == ANY
    return any_of_them and is_as_great(value, maximum, rule)


@helper
def is_as_great(first: float, second: float, rule: ForwardParameters) -> bool:
    """Check whether the rule treats two values as equal."""
    both_zero = abs(first) < rule.normal and abs(second) < rule.normal
    return both_zero or is_same(first, second)


@helper
def is_visited(index: int, window: Window) -> bool:
    if index < 0:
        return False
    row, column = index // window.columns, index % window.columns
    depth, height = row // window.rows, row % window.rows
    return is_within(depth, window.depth) and is_within(height, window.height) and is_within(column, window.width)


@helper
def is_within(coordinate: int, span: Span) -> bool:
    distance = coordinate - span.first
    return distance >= 0 and distance % span.step == 0 and distance // span.step < span.length


@helper
def is_same(first: float, second: float) -> bool:
    """Compare two results; ignore NaN payloads and signs of zero."""
    return first == second or (first != first and second != second)
