"""Forward maxima of planes, window by window and cell by cell, and the judgement of maxima and indices.

The family's rule is torch's and the operator library's: visiting a window's cells in row-major order, a value replaces
the running maximum when it is greater *or* NaN. So the first maximum wins a tie, the last NaN wins over everything, and
a window of nothing but -inf keeps its first cell. `ForwardParameters` describe what other implementations do instead.
Indices are flat over the unpadded plane; a window without a cell has the index -1.

A plane has three axes, depth, height and width; that of a 2-D pool has one cell and one window in depth.
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

    ``nothing`` is the initial running maximum, ``nowhere`` its index. ``keeps_cell``: that is the first cell instead.
    ``empty`` is the maximum of a window without a cell. Magnitudes below ``normal`` compare as zero.
    """

    ties: int
    nans: int
    nothing: float
    nowhere: int
    empty: float
    keeps_cell: bool
    normal: float


FIRST, LAST, ANY, LEADING, YIELDING, IGNORED = range(6)
"""Which of several equal values, or NaN, is taken. ``LEADING``: a NaN only as the first cell. ``YIELDING``: a NaN gives
way to whatever comes next.
"""


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
"""Flags of one window: out is not its maximum; the index is not that of the rule; the index lies outside the window, or
on another value than out."""


@compiled
def find_maxima(
    cells: Floats, depth: Spans, height: Spans, width: Spans, rule: ForwardParameters, indices: Ints
) -> None:
    """Fill the index of every window of consecutive planes; the first where the rule takes any."""
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
    found = index_of_maximum(cells, window, rule)
    maximum = maximum_at(cells, window.start, found, rule) if has_cells(window) else rule.empty
    flags = 0 if is_as_great(output, maximum, rule) else WRONG_MAXIMUM
    inside = found >= 0 if index == found else is_visited(index, window)
    expected = rule.nowhere if found < 0 and has_cells(window) else found
    if index != expected and (
        not inside or found < 0 or not is_equally_valid(cells[window.start + index], maximum, rule)
    ):
        flags |= WRONG_INDEX
    if inside:
        points = is_as_great(output, cells[window.start + index], rule)
    else:
        points = index == found and not has_cells(window)
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
    """Return the maximum of a window of that index; an ignored NaN never replaced -inf."""
    if index < 0:
        return rule.nothing
    value = cells[start + index]
    return -float("inf") if value != value and rule.nans == IGNORED else value


@helper
def replaces(value: float, maximum: float, is_first: bool, rule: ForwardParameters) -> bool:
    """Check whether a value replaces the running maximum; ``is_first``: it is in the window's first cell."""
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
    """Check whether the rule may take this cell of the window in place of the maximum's."""
    any_of_them = rule.nans == ANY if maximum != maximum else rule.ties == ANY
    return any_of_them and is_as_great(value, maximum, rule)


@helper
def is_as_great(first: float, second: float, rule: ForwardParameters) -> bool:
    """Check whether the rule takes two values as equal."""
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
    """Compare two results; NaN payloads and signs of zero do not count."""
    return first == second or (first != first and second != second)
