"""Completion of lists and plans: cases in which classes of factors meet that met in none so far.

A case is put together of parts that are drawn by themselves: windows over a plane, ([N,] C), the layout of each tensor,
recipes and flags. Windows are made backwards, from their number and their cells to the plane, so that thresholds are
hit exactly. Of the parts drawn those are taken by which most pairs meet for the first time.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from poolproof.references.geometry import pooled_size
from poolproof.references.windows import Adaptive, Lengths, Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import Draws
from poolproof.suites.cases.strategies import shortened

MAX_CELLS = 1 << 17
"""Of a plane."""


def row_of(case: Case) -> dict[str, Any]:
    """Return of a case what its features are read from."""
    recipes = {name: case.recipe(tensor) for name, tensor in RECIPES.items()}
    names = {name: getattr(case, name) for name in ("operator", "dtype", "index_dtype")}
    return {"case": case.to_json()} | names | recipes


RECIPES = {"gradient": "grad_output", "indices": "indices", "values": "self"}

_KERNELS = (1, 2, 3, 4, 6, 8, 9, 15, 25, 27, 64, 127, 128, 150, 255, 256, 257, 512, 1000, 1024, 2048, 4097, 5000)
_COUNTS = (1, 2, 3, 4, 6, 9, 15, 16, 32, 64, 128, 250, 255, 256, 257, 264, 272, 288, 512)
"""Cells of kernels, and windows of planes, that are aimed at."""

_ROOTS = {2: (2, 3, 4, 7, 12, 16, 17, 20, 33, 65), 3: (2, 3, 4, 5, 6, 7, 11, 17)}
"""Lengths of kernels that are the same along all axes."""


def _factored(draw: Draws, number: int, rank: int) -> Lengths:
    """Split a number into lengths along the axes; often along one of them."""
    lengths, divisor, alone = [1] * rank, 2, draw.choose((None, None, rank - 1, 0))
    while number > 1:
        while number % divisor:
            divisor += 1
        lengths[draw(rank) if alone is None else alone] *= divisor
        number //= divisor
    return tuple(lengths)


def _windowed(draw: Draws, rank: int) -> tuple[Lengths, Windowed] | None:
    """Draw windows, and the plane that they cover; None where they are too many, or some miss it."""
    kernel = _factored(draw, draw.choose(_KERNELS), rank)
    if draw(4) == 0:
        kernel = (draw.choose(_ROOTS[rank]),) * rank
    count = _factored(draw, draw.choose(_COUNTS), rank)
    ceil_mode, is_even, is_unit, multiple = draw.flip(), draw.flip(), draw(8) == 0, draw.choose((1, 1, 8, 16, 32))
    relation, padding, dilation = draw.choose(("<", "=", ">", "any")), draw(3), draw.choose((1, 1, 2, 3, 0))
    same = draw.choose((0, 0, 1, 2, 3, 32, 33))
    axes = []
    for axis, (k, n) in enumerate(zip(kernel, count, strict=True)):
        d = dilation if is_even else draw.choose((1, 2, 3, 0))
        own = draw.choose("<=>") if relation == "any" else relation
        reach = max(d, 1) * (k - 1) + 1
        s = {"<": k + draw.choose((1, 2, reach, 31, 32, 300)), "=": k, ">": draw.between(1, max(k - 1, 1))}[own]
        s = same or s
        d = d or s  # dilated by the stride, as many windows meet as a kernel has cells
        p = (0, draw(k // 2 + 1), k // 2)[padding if is_even else draw(3)]
        size = (n - 1) * s + d * (k - 1) + 1 - 2 * p + draw.choose((0, 0, draw(s), s - 1)) - ceil_mode * draw(s)
        if axis == rank - 1:
            size += -size % multiple
        axes.append((1 if is_unit and draw(4) else max(size, 1), k, s, p, d))
    if taller := draw.choose((0, 0, 0, 0, 1, 2)):  # H = W, or one more
        axes[-2] = (axes[-1][0] + taller - 1, *axes[-2][1:])
    sizes, kernels, strides, paddings, dilations = zip(*axes, strict=True)
    counts = [pooled_size(*axis, ceil_mode) for axis in axes]
    if min(counts) < 1 or max(prod(sizes), prod(counts)) > MAX_CELLS:
        return None
    windows = Windowed(kernels, strides, paddings, dilations, ceil_mode)
    if any(axis.has_empty_window for axis in windows.axes(sizes)):
        return None
    lists = draw.choose((windows, shortened(windows)))
    spelled = draw.choose((lists.stride, strides, strides[:1] if len(set(strides)) == 1 else strides))
    return sizes, replace(lists, stride=spelled)


def _adaptive(draw: Draws, rank: int) -> tuple[Lengths, Adaptive] | None:
    count = _factored(draw, draw.choose(_COUNTS), rank)
    cells = _factored(draw, draw.choose(_KERNELS), rank)
    style, multiple = draw.choose(("divides", "any", "longer")), draw.choose((1, 1, 8, 16, 32))
    sizes = []
    for n, k in zip(count, cells, strict=True):
        own = style if style == "divides" else draw.choose(("divides", "any", "longer", "one"))
        sizes.append(max({"divides": n * k, "any": n * k - draw(n), "longer": draw.between(1, n), "one": 1}[own], 1))
    sizes[-1] += -sizes[-1] % multiple
    return None if prod(sizes) > MAX_CELLS else (tuple(sizes), Adaptive(count))
