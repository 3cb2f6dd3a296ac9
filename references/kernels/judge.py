"""Judgement of planes in one pass: exact sums, admissible outputs, verdicts and errors of all cells.

The results are counts and extremes, so that judging takes the memory of one plane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from poolproof.references.kernels.compiled import Flags, Floats, Ints, compiled, helper
from poolproof.references.kernels.criterion import (
    AccumulationParameters,
    accepts,
    admissible,
    is_single_valued,
    limit_of,
)
from poolproof.references.kernels.forward import is_same
from poolproof.references.kernels.numbers import NO_LATTICE, exponent_of, rounded, ulp
from poolproof.references.kernels.sums import (
    BOTH_INFINITIES,
    NAN,
    POSITIVE_INFINITY,
    Cell,
    ExactSums,
    cell_of,
    empty_sums,
    gather,
)


class CellTally(NamedTuple):
    """Counts of cells, with extremes and sums over them.

    Attributes:
        reached: Cells with at least one gradient.
        rejected_reached, rejected_unreached: Cells with an inadmissible output.
        single_valued: Cells with one admissible value.
        special: Cells with a NaN or infinite gradient.
        inexact_sums: Cells with an exact sum that is no number of the format.
        bit_exact: Cells with the exact sum, rounded once, as output.
        finite: Cells with a finite output and a finite rounded exact sum.
        inexact: Cells with a finite output that differs from the exact sum, which is not zero.
        planes_off: Planes, or parts of one, with a sum of outputs that differs from the sum of gradients sent there. It
            has a meaning only if all these sums are exact.
        least_lattice: The least q of `ExactSums`; `NO_LATTICE` if all finite terms are zero.
        max_absolute, sum_absolute: Errors of finite outputs, to the exact sum.
        max_relative, sum_relative: The same relative to the rounded exact sum.
        max_ulp: The same in ulps of the exact sum.
        sum_outward: Errors of the ``inexact``, in ulps, positive away from zero.
        least_margin: Least unused share of an admissible deviation of more than one ulp; infinite if there is none.
        greatest, total: Greatest and sum of P + N of `ExactSums`.
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

    @property
    def rejected(self) -> int:
        return self.rejected_reached + self.rejected_unreached


NOTHING = CellTally(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO_LATTICE, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, 0.0, 0.0)

MOST_CLASSES = 64
"""Number of classes ceil(log2 k) of an int64 k."""


class Classes(NamedTuple):
    """Counts and extremes of classes of cells.

    Attributes:
        ulps: Finite outputs by error: none, up to each of `ULP_EDGES`, above.
        k_cells: Finite, reached cells of each class ceil(log2 k).
        k_error, k_bound: Their greatest error and greatest admissible error, in ulps of max(P, N).
    """

    ulps: Ints
    k_cells: Ints
    k_error: Floats
    k_bound: Floats


ULP_EDGES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0)
"""Upper edges of the classes of errors, in ulps."""


@compiled
def judge_planes(
    cells: Ints,
    terms: Floats,
    outputs: Floats,
    open_cells: Flags,
    parameters: AccumulationParameters,
    guard: float,
    size: int,
    classes: Classes,
) -> tuple[float, ...]:
    """Judge the ``outputs`` of consecutive planes of ``size`` cells; return their tally.

    ``cells`` and ``terms`` belong to the windows of the planes, in order. ``cells`` count from the first output; a term
    with a negative cell is dropped. Any output in ``open_cells`` is right; an empty array stands for none. ``guard`` is
    added to the denominator of relative errors. ``classes`` are updated.
    """
    sums, tally = empty_sums(size), NOTHING
    planes = outputs.size // size
    windows = terms.size // planes
    for plane in range(planes):
        first, start = plane * windows, plane * size
        own, plane_of_outputs = terms[first : first + windows], outputs[start : start + size]
        gather(cells[first : first + windows] - start, own, sums)
        open_here = open_cells[start : start + size]
        tallied = _judge_cells(plane_of_outputs, open_here, parameters, guard, sums, own.sum(), classes)
        tally = merged(tally, tallied)
    return tally[:]


@helper
def merged(one: CellTally, other: CellTally) -> CellTally:
    return CellTally(
        one.cells + other.cells,
        one.reached + other.reached,
        one.rejected_reached + other.rejected_reached,
        one.rejected_unreached + other.rejected_unreached,
        one.single_valued + other.single_valued,
        one.special + other.special,
        one.inexact_sums + other.inexact_sums,
        one.bit_exact + other.bit_exact,
        one.finite + other.finite,
        one.inexact + other.inexact,
        one.planes_off + other.planes_off,
        min(one.least_lattice, other.least_lattice),
        max(one.max_absolute, other.max_absolute),
        one.sum_absolute + other.sum_absolute,
        max(one.max_relative, other.max_relative),
        one.sum_relative + other.sum_relative,
        max(one.max_ulp, other.max_ulp),
        one.sum_outward + other.sum_outward,
        min(one.least_margin, other.least_margin),
        max(one.greatest, other.greatest),
        one.total + other.total,
    )


@helper
def _judge_cells(
    outputs: Floats,
    open_cells: Flags,
    parameters: AccumulationParameters,
    guard: float,
    sums: ExactSums,
    sent: float,
    classes: Classes,
) -> CellTally:
    """Check every cell against its admissible outputs, and measure its error.

    Cells without a gradient and with a zero output are only counted. ``sent`` is the sum of the plane's gradients.
    """
    idle, tally = 0, NOTHING
    for i in range(outputs.size):
        output, is_open = outputs[i], open_cells.size > 0 and open_cells[i]
        if sums.k[i] == 0 and output == 0.0 and not is_open:
            idle += 1
        else:
            tally = merged(tally, _judge_cell(cell_of(sums, i), output, is_open, parameters, guard, classes))
    low, high, specials = admissible(Cell(0, 0.0, 0.0, 0.0, 0.0, NO_LATTICE, 0), parameters)
    single, is_off = idle if is_single_valued(low, high, specials) else 0, int(outputs.sum() != sent)
    classes.ulps[0] += idle
    zeros = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    others = CellTally(idle, 0, 0, 0, single, 0, 0, idle, idle, 0, is_off, NO_LATTICE, *zeros, math.inf, 0.0, 0.0)
    return merged(tally, others)


@helper
def _judge_cell(
    cell: Cell, output: float, is_open: bool, parameters: AccumulationParameters, guard: float, classes: Classes
) -> CellTally:
    low, high, specials = admissible(cell, parameters)
    is_right = is_open or accepts(low, high, cell.lattice, specials, limit_of(parameters), output)
    right = _correctly_rounded(cell, parameters)
    error, ulps, relative, outward, margin, finite = 0.0, 0.0, 0.0, 0.0, math.inf, False
    if math.isfinite(output) and math.isfinite(right):
        finite = True
        error = (output - cell.sum) - cell.residue
        if error != 0.0:
            ulps = abs(error) / ulp(cell.sum, parameters.output)
            relative = abs(output - right) / (abs(right) + guard)
            outward = ulps if (error > 0.0) == (cell.sum > 0.0) else -ulps
        classes.ulps[_ulp_class(ulps)] += 1
        if cell.k > 0 and cell.kinds == 0:
            margin = _classify(cell, error, low, high, parameters, classes)
    is_reached, is_inexact = cell.k > 0, error != 0.0 and cell.sum != 0.0
    return CellTally(
        1,
        int(is_reached),
        int(is_reached and not is_right),
        int(not is_reached and not is_right),
        int(is_single_valued(low, high, specials) and not is_open),
        int(cell.kinds != 0),
        int(right != cell.sum),
        int(is_same(output, right)),
        int(finite),
        int(is_inexact),
        0,
        int(cell.lattice),
        abs(error),
        abs(error),
        relative,
        relative,
        ulps,
        outward if is_inexact else 0.0,
        margin,
        cell.positive + cell.negative,
        cell.positive + cell.negative,
    )


@helper
def _classify(
    cell: Cell, error: float, low: float, high: float, parameters: AccumulationParameters, classes: Classes
) -> float:
    """Count a finite, reached cell by ceil(log2 k); return the unused share of its admissible deviation.

    The share is infinite if the deviation is at most one ulp.
    """
    number = 0 if cell.k == 1 else exponent_of(float(cell.k - 1)) + 1
    classes.k_cells[number] += 1
    if error == 0.0 and low == high:
        return math.inf
    unit = ulp(max(cell.positive, cell.negative), parameters.output)
    classes.k_error[number] = max(classes.k_error[number], abs(error) / unit)
    classes.k_bound[number] = max(classes.k_bound[number], max(high - cell.sum, cell.sum - low) / unit)
    room = high - cell.sum if error > 0.0 else cell.sum - low
    if 0.0 < room < math.inf and high - low > ulp(cell.sum, parameters.output):
        return (room - abs(error)) / room
    return math.inf


@helper
def _correctly_rounded(cell: Cell, parameters: AccumulationParameters) -> float:
    exact = cell.sum
    if cell.kinds & NAN or cell.kinds == BOTH_INFINITIES:
        exact = math.nan
    elif cell.kinds:
        exact = math.inf if cell.kinds == POSITIVE_INFINITY else -math.inf
    return rounded(exact, cell.residue, parameters.output)


@helper
def _ulp_class(ulps: float) -> int:
    number = 0
    while number < len(ULP_EDGES) and ulps > ULP_EDGES[number]:
        number += 1
    return number
