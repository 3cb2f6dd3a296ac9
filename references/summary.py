"""Summary of the judgement of one output in counts and extremes: all that a passing output needs.

The output is judged in chunks of planes, in the memory of one plane. Once something is wrong,
`poolproof.references.criterion.admissible` says which cell, and what is expected there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import accumulation_parameters
from poolproof.references.formats import FloatFormat
from poolproof.references.kernels.compiled import Flags, Floats, Ints
from poolproof.references.kernels.judge import (
    COUNTS,
    LEAST_LATTICE,
    LEAST_MARGIN,
    MOST_CLASSES,
    REALS,
    ULP_EDGES,
    RunningTotals,
    judge_planes,
)
from poolproof.references.kernels.numbers import NO_LATTICE
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

NOWHERE_OPEN = np.empty(0, bool)


class PlaneChunk(NamedTuple):
    """Some planes, or a part of one: the cells of windows' gradients, the gradients, and the outputs, all flat.

    ``cells`` count within each plane, or within the part; a gradient with a negative cell is dropped. Any output in
    ``open_cells`` is right; it is empty where there are none.
    """

    cells: Ints
    terms: Floats
    outputs: Floats
    open_cells: Flags = NOWHERE_OPEN


class Summary(NamedTuple):
    """Counts of cells, and extremes and sums over them.

    cells, reached, finite
        All cells; those that a gradient reaches; those whose output and rounded exact sum are both finite.
    rejected_reached, rejected_unreached
        Cells whose output is not admissible.
    single_valued, bit_exact
        Cells with one admissible value; whose output is the exact sum rounded once.
    special, inexact_sums
        Cells that a NaN or an infinity reaches; whose exact sum is not a number of the format.
    inexact
        Cells whose finite output is not the exact sum, which is not zero.
    planes_off
        Planes, or parts of one, whose outputs do not sum to the gradients sent there; has a meaning where all these
        sums are exact.
    least_lattice
        The least q of `ExactSums`; `NO_LATTICE` where no finite term is unlike zero.
    max_absolute, sum_absolute, max_relative, sum_relative, max_ulp
        Errors of finite outputs: to the exact sum, relative to the rounded one, in ulps of the exact one.
    sum_outward
        The errors of the ``inexact`` in ulps, away from zero positive.
    least_margin
        The least unused share of the admissible deviation, where that is more than one ulp; infinite without any.
    greatest, total
        Greatest and sum of P + N of `ExactSums`.
    ulps
        Finite outputs by error: none, up to each edge of `ULP_EDGES`, and above.
    k_cells, k_error, k_bound
        For each class ceil(log2 k) of finite, reached cells: their number, greatest error and greatest admissible
        error, in ulps of max(P, N).
    """

    cells: int
    reached: int
    rejected_reached: int
    rejected_unreached: int
    single_valued: int
    special: int
    inexact_sums: int
    bit_exact: int
    finite: int
    inexact: int
    planes_off: int
    least_lattice: int
    max_absolute: float
    sum_absolute: float
    max_relative: float
    sum_relative: float
    max_ulp: float
    sum_outward: float
    least_margin: float
    greatest: float
    total: float
    ulps: tuple[int, ...]
    k_cells: tuple[int, ...]
    k_error: tuple[float, ...]
    k_bound: tuple[float, ...]

    @property
    def rejected(self) -> int:
        return self.rejected_reached + self.rejected_unreached


assert Summary._fields == (*COUNTS, *REALS, *RunningTotals._fields[2:])


def summarise(chunks: Iterable[PlaneChunk], plane_size: int, output: FloatFormat, model: AccumulationModel) -> Summary:
    """Judge an output of planes of ``plane_size`` cells, from a kernel of that model.

    A chunk of fewer cells is a part of a plane.
    """
    numbers = accumulation_parameters(output, model)
    counts, reals = np.zeros(len(COUNTS), np.int64), np.zeros(len(REALS))
    counts[LEAST_LATTICE], reals[LEAST_MARGIN] = NO_LATTICE, np.inf
    ulps, k_cells = np.zeros(len(ULP_EDGES) + 1, np.int64), np.zeros(MOST_CLASSES, np.int64)
    totals = RunningTotals(counts, reals, ulps, k_cells, np.zeros(MOST_CLASSES), np.zeros(MOST_CLASSES))
    for chunk in chunks:
        if chunk.outputs.size:
            judge_planes(*chunk, numbers, RELATIVE_GUARD, min(plane_size, chunk.outputs.size), totals)
    used = np.flatnonzero(totals.k_cells)
    classes = int(used[-1]) + 1 if len(used) else 0
    by_class = (tuple(column[:classes].tolist()) for column in (totals.k_cells, totals.k_error, totals.k_bound))
    return Summary._make((*counts.tolist(), *reals.tolist(), tuple(ulps.tolist()), *by_class))
