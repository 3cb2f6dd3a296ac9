"""The judgement of one output, in counts and extremes; a passing output needs nothing else.

The output is judged in chunks of planes, in the memory of one plane. If something is wrong,
`poolproof.references.criterion.admissible` finds the cells and their expected values. Statistics only go into reports
and decide nothing. Errors are in ulps of the exact sum S: 2**(max(floor(log2 |S|), emin) - p + 1), or the subnormal
spacing for S = 0. A correctly rounded output is therefore within 0.5. Columns of the report schema define keys and
meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from math import inf
from typing import Any, NamedTuple

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import accumulation_parameters
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.kernels.compiled import Flags, Floats, Ints
from poolproof.references.kernels.judge import (
    MOST_CLASSES,
    NOTHING,
    ULP_EDGES,
    CellTally,
    Classes,
    judge_planes,
    merged,
)
from poolproof.references.standards.ecosystem import RELATIVE_GUARD
from poolproof.references.threads import threaded_map

NOWHERE_OPEN = np.empty(0, bool)


class PlaneChunk(NamedTuple):
    """Some planes, or a part of one; all arrays are flat.

    Attributes:
        cells: The cell of each gradient, counted from the first output. A gradient with a negative cell is dropped.
        terms: The gradients of windows.
        open_cells: Any output is right where it is true. An empty array stands for false everywhere.
    """

    cells: Ints
    terms: Floats
    outputs: Floats
    open_cells: Flags = NOWHERE_OPEN


class Summary(NamedTuple):
    """The tally of all planes, and the `Classes` up to the last one with a cell."""

    tally: CellTally
    ulps: tuple[int, ...]
    k_cells: tuple[int, ...]
    k_error: tuple[float, ...]
    k_bound: tuple[float, ...]


def summarise(
    chunks: Iterable[Callable[[], PlaneChunk]], plane_size: int, output: FloatFormat, model: AccumulationModel
) -> Summary:
    """Judge an output of planes of ``plane_size`` cells, from a kernel of ``model``.

    A chunk is made just before it is judged. A chunk of fewer cells is a part of a plane.
    """
    numbers = accumulation_parameters(output, model)

    def judged(make: Callable[[], PlaneChunk]) -> tuple[CellTally, Classes]:
        chunk, classes = make(), _no_classes()
        size = len(chunk.outputs)
        counts = judge_planes(*chunk, numbers, RELATIVE_GUARD, min(plane_size, size), classes) if size else NOTHING
        return CellTally._make(counts), classes

    tally, classes = reduce(_both, threaded_map(judged, chunks, plane_size) or [(NOTHING, _no_classes())])
    used = int(classes.k_cells.nonzero()[0].max(initial=-1)) + 1
    by_class = (tuple(column[:used].tolist()) for column in classes[1:])
    return Summary(tally, tuple(classes.ulps.tolist()), *by_class)


def _no_classes() -> Classes:
    counts = np.zeros(len(ULP_EDGES) + 1, np.int64), np.zeros(MOST_CLASSES, np.int64)
    return Classes(*counts, np.zeros(MOST_CLASSES), np.zeros(MOST_CLASSES))


def _both(one: tuple[CellTally, Classes], other: tuple[CellTally, Classes]) -> tuple[CellTally, Classes]:
    (tally, classes), (later, of_later) = one, other
    counts = classes.ulps + of_later.ulps, classes.k_cells + of_later.k_cells
    most = np.maximum(classes.k_error, of_later.k_error), np.maximum(classes.k_bound, of_later.k_bound)
    return merged.py_func(tally, later), Classes(*counts, *most)


Statistics = dict[str, Any]
"""Column name -> int, float, text, list or None."""

ULP_CLASSES = ("ulp_0", "ulp_le05", "ulp_le1", "ulp_le2", "ulp_le4", "ulp_le8", "ulp_le32", "ulp_gt32")
"""The columns of the classes up to each of `ULP_EDGES`, and above."""

assert len(ULP_CLASSES) == len(ULP_EDGES) + 1


def error_statistics(summary: Summary) -> Statistics:
    tally = summary.tally
    return {
        "n": tally.cells,
        "n_single_valued": tally.single_valued,
        "n_reject": tally.rejected,
        "n_bitexact": tally.bit_exact,
        "max_abs_err": tally.max_absolute,
        "mean_abs_err": _ratio(tally.sum_absolute, tally.finite),
        "mere": _ratio(tally.sum_relative, tally.finite),
        "mare": tally.max_relative if tally.finite else None,
        **dict(zip(ULP_CLASSES, summary.ulps, strict=True)),
        "ulp_nonfinite": tally.cells - tally.finite,
        "max_ulp": tally.max_ulp,
        "n_inexact": tally.inexact,
        "bias_ulp": _ratio(tally.sum_outward, tally.inexact),
        "margin_min": None if tally.least_margin == inf else tally.least_margin,
        "k_cells": list(summary.k_cells),
        "k_error": list(summary.k_error),
        "k_bound": list(summary.k_bound),
    }


def ordinals(values: Float64, fmt: FloatFormat) -> Int64:
    """Map the values of ``fmt`` to consecutive integers; both zeros become zero."""
    bits = values.astype(fmt.dtype).view(f"i{fmt.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & (2 ** (8 * fmt.dtype.itemsize - 1) - 1)), bits)


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
