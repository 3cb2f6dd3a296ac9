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

COUNTS = (
    *("cells", "reached", "rejected_reached", "rejected_unreached", "single_valued", "special"),
    *("inexact_sums", "bit_exact", "finite", "inexact", "planes_off", "least_lattice"),
)
CELLS, REACHED, REJECTED_REACHED, REJECTED_UNREACHED, SINGLE_VALUED, SPECIAL = range(6)
INEXACT_SUMS, BIT_EXACT, FINITE, INEXACT, PLANES_OFF, LEAST_LATTICE = range(6, len(COUNTS))
"""Places in `RunningTotals.counts`."""

REALS = (
    *("max_absolute", "sum_absolute", "max_relative", "sum_relative", "max_ulp", "sum_outward"),
    *("least_margin", "greatest", "total"),
)
MAX_ABSOLUTE, SUM_ABSOLUTE, MAX_RELATIVE, SUM_RELATIVE, MAX_ULP, SUM_OUTWARD = range(6)
LEAST_MARGIN, GREATEST, TOTAL = range(6, len(REALS))
"""Places in `RunningTotals.reals`."""

MOST_CLASSES = 64
"""Classes ceil(log2 k) of an int64 k."""


class RunningTotals(NamedTuple):
    """Counts and extremes over all planes so far; `poolproof.references.summary.Summary` says what they mean.

    ``counts`` and ``reals`` have the places named above; ``ulps`` one for each class of `ULP_EDGES` and one above;
    ``k_cells``, ``k_error`` and ``k_bound`` one for each class ceil(log2 k).
    """

    counts: Ints
    reals: Floats
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
    totals: RunningTotals,
) -> None:
    """Judge the ``outputs`` of consecutive planes of ``size`` cells.

    ``cells`` and ``terms`` are those of the planes' windows, in their order; a term with a negative cell is dropped.
    Any output in ``open_cells`` is right; empty where there are none. ``guard`` is added to the denominator of relative
    errors.
    """
    exact = empty_sums(size)
    planes = outputs.size // size
    windows = terms.size // planes
    for plane in range(planes):
        first, start = plane * windows, plane * size
        gather(cells, terms, first, first + windows, exact)
        plane_of_outputs = outputs[start : start + size]
        _judge_cells(plane_of_outputs, open_cells[start : start + size], parameters, guard, exact, totals)
        if plane_of_outputs.sum() != terms[first : first + windows].sum():
            totals.counts[PLANES_OFF] += 1


class Verdicts(NamedTuple):
    """Counts of cells, as in `RunningTotals.counts`."""

    reached: int
    rejected_reached: int
    rejected_unreached: int
    single_valued: int
    bit_exact: int


class Sums(NamedTuple):
    """Properties of the cells' sums, as in `RunningTotals`."""

    special: int
    inexact: int
    least_lattice: int
    greatest: float
    total: float


class Errors(NamedTuple):
    """Errors of the outputs, as in `RunningTotals`."""

    finite: int
    inexact: int
    max_absolute: float
    sum_absolute: float
    max_relative: float
    sum_relative: float
    max_ulp: float
    sum_outward: float


@helper
def _judge_cells(
    outputs: Floats,
    open_cells: Flags,
    parameters: AccumulationParameters,
    guard: float,
    exact: ExactSums,
    totals: RunningTotals,
) -> None:
    """Check every cell against its admissible outputs, and measure its error.

    Cells that nothing reaches and that are zero are only counted.
    """
    idle, limit, least_margin = 0, limit_of(parameters), math.inf
    verdicts, sums = Verdicts(0, 0, 0, 0, 0), Sums(0, 0, NO_LATTICE, 0.0, 0.0)
    errors = Errors(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(outputs.size):
        output, is_open = outputs[i], open_cells.size > 0 and open_cells[i]
        if exact.k[i] == 0 and output == 0.0 and not is_open:
            idle += 1
            continue
        cell = cell_of(exact, i)
        low, high, specials = admissible(cell, parameters)
        is_right = is_open or accepts(low, high, cell.lattice, specials, limit, output)
        single_valued = is_single_valued(low, high, specials) and not is_open
        right = _correctly_rounded(cell, parameters)
        verdicts = _with_verdict(verdicts, cell.k > 0, is_right, single_valued, is_same(output, right))
        sums = _with_sum(sums, cell, right)
        if not (math.isfinite(output) and math.isfinite(right)):
            continue
        error = (output - cell.sum) - cell.residue
        ulps, relative = 0.0, 0.0
        if error != 0.0:
            ulps = abs(error) / ulp(cell.sum, parameters.precision, parameters.min_exponent)
            relative = abs(output - right) / (abs(right) + guard)
        errors = _with_error(errors, cell.sum, error, ulps, relative)
        totals.ulps[_ulp_class(ulps)] += 1
        if cell.k == 0 or cell.kinds:
            continue
        number = _k_class(cell.k)
        totals.k_cells[number] += 1
        if error != 0.0 or low != high:
            least_margin = min(least_margin, _margin(cell.sum, error, low, high, parameters))
            unit = ulp(max(cell.positive, cell.negative), parameters.precision, parameters.min_exponent)
            totals.k_error[number] = max(totals.k_error[number], abs(error) / unit)
            totals.k_bound[number] = max(totals.k_bound[number], max(high - cell.sum, cell.sum - low) / unit)
    totals.counts[CELLS] += outputs.size
    totals.reals[LEAST_MARGIN] = min(totals.reals[LEAST_MARGIN], least_margin)
    _add_idle(idle, parameters, totals)
    totals.counts[REACHED] += verdicts.reached
    totals.counts[REJECTED_REACHED] += verdicts.rejected_reached
    totals.counts[REJECTED_UNREACHED] += verdicts.rejected_unreached
    totals.counts[SINGLE_VALUED] += verdicts.single_valued
    totals.counts[BIT_EXACT] += verdicts.bit_exact
    totals.counts[SPECIAL] += sums.special
    totals.counts[INEXACT_SUMS] += sums.inexact
    totals.counts[LEAST_LATTICE] = min(totals.counts[LEAST_LATTICE], sums.least_lattice)
    totals.reals[GREATEST] = max(totals.reals[GREATEST], sums.greatest)
    totals.reals[TOTAL] += sums.total
    _add_errors(errors, totals)


@helper
def _correctly_rounded(cell: Cell, parameters: AccumulationParameters) -> float:
    """Round the exact sum once."""
    exact = cell.sum if cell.kinds == 0 else _of_special_terms(cell.kinds)
    return rounded(exact, cell.residue, parameters.precision, parameters.min_exponent, parameters.largest)


@helper
def _with_verdict(before: Verdicts, is_reached: bool, is_right: bool, single_valued: bool, is_exact: bool) -> Verdicts:
    return Verdicts(
        before.reached + is_reached,
        before.rejected_reached + (is_reached and not is_right),
        before.rejected_unreached + (not is_reached and not is_right),
        before.single_valued + single_valued,
        before.bit_exact + is_exact,
    )


@helper
def _with_sum(before: Sums, cell: Cell, right: float) -> Sums:
    magnitude = cell.positive + cell.negative
    return Sums(
        before.special + (cell.kinds != 0),
        before.inexact + (right != cell.sum),
        min(before.least_lattice, int(cell.lattice)),
        max(before.greatest, magnitude),
        before.total + magnitude,
    )


@helper
def _with_error(before: Errors, exact: float, error: float, ulps: float, relative: float) -> Errors:
    is_inexact = error != 0.0 and exact != 0.0
    outward = ulps if (error > 0.0) == (exact > 0.0) else -ulps
    return Errors(
        before.finite + 1,
        before.inexact + is_inexact,
        max(before.max_absolute, abs(error)),
        before.sum_absolute + abs(error),
        max(before.max_relative, relative),
        before.sum_relative + relative,
        max(before.max_ulp, ulps),
        before.sum_outward + (outward if is_inexact else 0.0),
    )


@helper
def _k_class(k: int) -> int:
    """Return ceil(log2 k)."""
    return 0 if k == 1 else exponent_of(float(k - 1)) + 1


@helper
def _margin(exact: float, error: float, low: float, high: float, parameters: AccumulationParameters) -> float:
    """Return the unused share of the admissible deviation where that is more than one ulp; else infinite."""
    room = high - exact if error > 0.0 else exact - low
    if 0.0 < room < math.inf and high - low > ulp(exact, parameters.precision, parameters.min_exponent):
        return (room - abs(error)) / room
    return math.inf


@helper
def _add_idle(number: int, parameters: AccumulationParameters, totals: RunningTotals) -> None:
    """Count cells that nothing reaches, and which are zero."""
    low, high, specials = admissible(Cell(0, 0.0, 0.0, 0.0, 0.0, NO_LATTICE, 0), parameters)
    totals.counts[SINGLE_VALUED] += number if is_single_valued(low, high, specials) else 0
    totals.counts[BIT_EXACT] += number
    totals.counts[FINITE] += number
    totals.ulps[0] += number


@helper
def _add_errors(errors: Errors, totals: RunningTotals) -> None:
    totals.counts[FINITE] += errors.finite
    totals.counts[INEXACT] += errors.inexact
    totals.reals[MAX_ABSOLUTE] = max(totals.reals[MAX_ABSOLUTE], errors.max_absolute)
    totals.reals[SUM_ABSOLUTE] += errors.sum_absolute
    totals.reals[MAX_RELATIVE] = max(totals.reals[MAX_RELATIVE], errors.max_relative)
    totals.reals[SUM_RELATIVE] += errors.sum_relative
    totals.reals[MAX_ULP] = max(totals.reals[MAX_ULP], errors.max_ulp)
    totals.reals[SUM_OUTWARD] += errors.sum_outward


@helper
def _of_special_terms(kinds: int) -> float:
    """Sum terms of which some are not finite."""
    if kinds & NAN or kinds == BOTH_INFINITIES:
        return math.nan
    return math.inf if kinds == POSITIVE_INFINITY else -math.inf


@helper
def _ulp_class(ulps: float) -> int:
    number = 0
    while number < len(ULP_EDGES) and ulps > ULP_EDGES[number]:
        number += 1
    return number
