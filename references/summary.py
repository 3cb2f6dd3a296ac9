"""What the judgement of one output comes to, in counts and extremes: all that a passing output is asked for.

The output is judged some planes at a time (`Slab`), in the memory of one of them. Which cell is wrong, and what it was
owed, is for `poolproof.references.criterion.admissible` to say once something is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.core.compiled import Flags, Floats, Ints
from poolproof.references.core.judge import (
    COUNTS,
    LEAST_LATTICE,
    LEAST_MARGIN,
    MOST_CLASSES,
    REALS,
    ULP_EDGES,
    Tally,
    judge_planes,
)
from poolproof.references.core.numbers import NO_LATTICE
from poolproof.references.criterion import rules
from poolproof.references.formats import FloatFormat
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

NOWHERE_OPEN = np.empty(0, bool)


class Slab(NamedTuple):
    """Some planes, or a piece of one: where windows' gradients belong, these gradients, and what came out, all flat.

    ``cells`` count within each plane, or within the piece; a gradient sent to a negative cell lands nowhere. Whatever
    comes out in ``open_cells`` is right; it is empty where there are none.
    """

    cells: Ints
    terms: Floats
    outputs: Floats
    open_cells: Flags = NOWHERE_OPEN


class Summary(NamedTuple):
    """Counts of cells, and extremes and sums over them.

    cells, reached, finite
        All; those that a gradient reaches; those whose output and rounded exact sum are both finite.
    rejected_reached, rejected_unreached
        Whose output is not admissible.
    bits_owed, bit_exact
        That can hold one value only; whose output is the exact sum rounded once.
    special, inexact_sums
        That a NaN or an infinity reaches; whose exact sum is not a number of the format.
    inexact
        Whose finite output is not the exact sum, which is not zero.
    planes_off
        Planes, or pieces of one, whose outputs do not sum to what was sent there; has a meaning where all these sums
        are exact.
    least_lattice
        The least q of `ExactSums`; `NO_LATTICE` where no finite term is unlike zero.
    max_absolute, sum_absolute, max_relative, sum_relative, max_ulp
        Errors of finite outputs: to the exact sum, relative to the rounded one, in ulps of the exact one.
    sum_outward
        The errors of the ``inexact`` in ulps, away from zero positive.
    least_margin
        The least share of the admissible deviation that is left, where more than one ulp is; infinite without any.
    greatest, total
        Greatest and sum of P + N of `ExactSums`.
    ulps
        Finite outputs by error: none, up to each edge of `ULP_EDGES`, and above.
    k_cells, k_error, k_bound
        For each class ceil(log2 k) of finite, reached cells how many they are, and their greatest error and greatest
        admissible error in ulps of max(P, N).
    """

    cells: int
    reached: int
    rejected_reached: int
    rejected_unreached: int
    bits_owed: int
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


assert Summary._fields == (*COUNTS, *REALS, *Tally._fields[2:])


def summarise(slabs: Iterable[Slab], plane_size: int, output: FloatFormat, model: AccumulationModel) -> Summary:
    """Judge an output of planes of ``plane_size`` cells, which a kernel of that model put out.

    A slab of fewer cells is a piece of a plane.
    """
    numbers, tally = rules(output, model), _empty_tally()
    for slab in slabs:
        if slab.outputs.size:
            judge_planes(*slab, numbers, RELATIVE_GUARD, min(plane_size, slab.outputs.size), tally)
    return _summary(tally)


def _empty_tally() -> Tally:
    counts, reals = np.zeros(len(COUNTS), np.int64), np.zeros(len(REALS))
    counts[LEAST_LATTICE], reals[LEAST_MARGIN] = NO_LATTICE, np.inf
    ulps, k_cells = np.zeros(len(ULP_EDGES) + 1, np.int64), np.zeros(MOST_CLASSES, np.int64)
    return Tally(counts, reals, ulps, k_cells, np.zeros(MOST_CLASSES), np.zeros(MOST_CLASSES))


def _summary(tally: Tally) -> Summary:
    used = np.flatnonzero(tally.k_cells)
    classes = int(used[-1]) + 1 if len(used) else 0
    by_class = (tuple(each[:classes].tolist()) for each in (tally.k_cells, tally.k_error, tally.k_bound))
    return Summary._make((*tally.counts.tolist(), *tally.reals.tolist(), tuple(tally.ulps.tolist()), *by_class))
