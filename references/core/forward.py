"""The forward maximum of planes, window by window and cell by cell, and what is wrong with one that came out.

The rule is torch's and the operator library's: visiting a window's cells in row-major order, a value replaces the
running maximum when it is greater *or* NaN. So the first maximum wins a tie, the last NaN wins over everything, and a
window of nothing but -inf keeps its first cell. Indices are flat over the unpadded plane; a window without a cell has
none, which is -1, and the maximum -inf.

A plane has three axes, depth, height and width, of which that of a 2-D pool has one cell and one window in depth.
"""

from __future__ import annotations

from typing import NamedTuple

from poolproof.references.core.compiled import Bytes, Floats, Ints, compiled, part


class Spans(NamedTuple):
    """The windows along one axis of ``size`` cells.

    Window i looks at ``counts[i]`` cells from ``firsts[i]`` on, ``step`` apart; cells outside the input do not count.
    """

    size: int
    step: int
    firsts: Ints
    counts: Ints


class Span(NamedTuple):
    """The cells of one window along one axis."""

    first: int
    length: int
    step: int


WRONG_MAXIMUM, WRONG_INDEX, POINTS_ELSEWHERE = 1, 2, 4
"""Flags of one window: out is not its maximum; the index is not that of the rule; the index lies outside the window or
the value there is not what came out."""


@compiled
def find_maxima(cells: Floats, depth: Spans, height: Spans, width: Spans, indices: Ints) -> None:
    """Fill the index of every window of every plane, of which ``cells`` holds one after the other."""
    plane_size = depth.size * height.size * width.size
    number = 0
    for plane in range(len(cells) // max(plane_size, 1)):
        for d in range(len(depth.firsts)):
            for h in range(len(height.firsts)):
                for w in range(len(width.firsts)):
                    indices[number] = index_of_maximum(
                        cells,
                        plane * plane_size,
                        height.size,
                        width.size,
                        Span(depth.firsts[d], depth.counts[d], depth.step),
                        Span(height.firsts[h], height.counts[h], height.step),
                        Span(width.firsts[w], width.counts[w], width.step),
                    )
                    number += 1


@compiled
def judge_maxima(
    cells: Floats, depth: Spans, height: Spans, width: Spans, outputs: Floats, indices: Ints, wrong: Bytes
) -> None:
    """Fill the flags of every window of every plane, for the maxima and indices that came out."""
    plane_size = depth.size * height.size * width.size
    number = 0
    for plane in range(len(cells) // max(plane_size, 1)):
        start = plane * plane_size
        for d in range(len(depth.firsts)):
            along_depth = Span(depth.firsts[d], depth.counts[d], depth.step)
            for h in range(len(height.firsts)):
                along_height = Span(height.firsts[h], height.counts[h], height.step)
                for w in range(len(width.firsts)):
                    along_width = Span(width.firsts[w], width.counts[w], width.step)
                    owed = index_of_maximum(
                        cells, start, height.size, width.size, along_depth, along_height, along_width
                    )
                    got, output = indices[number], outputs[number]
                    flags = 0
                    if not is_same(output, cells[start + owed] if owed >= 0 else -float("inf")):
                        flags |= WRONG_MAXIMUM
                    if got != owed:
                        flags |= WRONG_INDEX
                        inside = is_visited(got, height.size, width.size, along_depth, along_height, along_width)
                        if not inside or not is_same(output, cells[start + got]):
                            flags |= POINTS_ELSEWHERE
                    elif flags & WRONG_MAXIMUM:
                        flags |= POINTS_ELSEWHERE
                    wrong[number] = flags
                    number += 1


@part
def index_of_maximum(cells: Floats, start: int, rows: int, columns: int, depth: Span, height: Span, width: Span) -> int:
    """The index of one window in the plane of ``rows`` x ``columns`` that begins at ``start``; -1 without a cell."""
    if depth.length == 0 or height.length == 0 or width.length == 0:
        return -1
    index = (depth.first * rows + height.first) * columns + width.first
    maximum = -float("inf")
    for d in range(depth.length):
        for h in range(height.length):
            row = ((depth.first + d * depth.step) * rows + height.first + h * height.step) * columns + width.first
            for cell in range(row, row + width.length * width.step, width.step):
                value = cells[start + cell]
                if value <= maximum:
                    continue  # as most do, for which one comparison is enough
                if value > maximum or value != value:  # greater, or NaN
                    maximum = value
                    index = cell
    return index


@part
def is_visited(index: int, rows: int, columns: int, depth: Span, height: Span, width: Span) -> bool:
    """Whether one window visits the cell of that index."""
    if index < 0:
        return False
    row = index // columns
    return is_within(row // rows, depth) and is_within(row % rows, height) and is_within(index % columns, width)


@part
def is_within(coordinate: int, span: Span) -> bool:
    """Whether one window visits the coordinate along one axis."""
    distance = coordinate - span.first
    return distance >= 0 and distance % span.step == 0 and distance // span.step < span.length


@part
def is_same(first: float, second: float) -> bool:
    """Whether two results are the same value; NaN payloads and signs of zero do not count."""
    return first == second or (first != first and second != second)
