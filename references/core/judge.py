"""One pass over planes: what meets in each cell, what is admissible there, whether the output is, how far it is off.

What comes of it are counts and extremes, so that the memory of a passing tensor's judgement is that of one plane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from poolproof.references.core.compiled import Flags, Floats, Ints, compiled, part
from poolproof.references.core.criterion import Rules, accepts, admissible, limit_of, owes_bits
from poolproof.references.core.facts import (
    BOTH_INFINITIES,
    NAN,
    POSITIVE_INFINITY,
    Cell,
    Facts,
    cell_of,
    empty_facts,
    gather,
)
from poolproof.references.core.forward import is_same
from poolproof.references.core.numbers import NO_LATTICE, exponent_of, rounded, ulp

COUNTS = (
    "cells",
    "reached",
    "rejected_reached",
    "rejected_unreached",
    "bits_owed",
    "special",
    "inexact_sums",
    "bit_exact",
    "finite",
    "inexact",
    "planes_off",
    "least_lattice",
)
(
    CELLS,
    REACHED,
    REJECTED_REACHED,
    REJECTED_UNREACHED,
    BITS_OWED,
    SPECIAL,
    INEXACT_SUMS,
    BIT_EXACT,
    FINITE,
    INEXACT,
    PLANES_OFF,
    LEAST_LATTICE,
) = range(len(COUNTS))
"""Places in `Tally.counts`."""

REALS = (
    "max_absolute",
    "sum_absolute",
    "max_relative",
    "sum_relative",
    "max_ulp",
    "sum_outward",
    "least_margin",
    "greatest",
    "total",
)
(
    MAX_ABSOLUTE,
    SUM_ABSOLUTE,
    MAX_RELATIVE,
    SUM_RELATIVE,
    MAX_ULP,
    SUM_OUTWARD,
    LEAST_MARGIN,
    GREATEST,
    TOTAL,
) = range(len(REALS))
"""Places in `Tally.reals`."""

MOST_CLASSES = 64
"""Classes of k that int64 has room for."""


class Tally(NamedTuple):
    """What is counted over all planes; `poolproof.references.summary.Summary` says what it means.

    ``counts`` and ``reals`` have the places named above, ``ulps`` one for each class of `ULP_EDGES` and one above;
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
    rules: Rules,
    guard: float,
    size: int,
    tally: Tally,
) -> None:
    """Judge the ``outputs`` of as many planes as they are, each of ``size`` cells.

    ``cells`` and ``terms`` are those of the planes' windows, in their order; a term sent to a negative cell lands
    nowhere. Whatever comes out in ``open_cells`` is right; empty where there are none. ``guard`` is added to the
    denominator of relative errors.
    """
    facts = empty_facts(size)
    planes = outputs.size // size
    windows = terms.size // planes
    for plane in range(planes):
        first, start = plane * windows, plane * size
        gather(cells, terms, first, first + windows, facts)
        plane_of_outputs = outputs[start : start + size]
        _judge_cells(plane_of_outputs, open_cells[start : start + size], rules, guard, facts, tally)
        _compare_totals(plane_of_outputs, terms[first : first + windows], tally)


class Verdicts(NamedTuple):
    """Counts of cells, as `Tally.counts` has them."""

    reached: int
    rejected_reached: int
    rejected_unreached: int
    bits_owed: int
    bit_exact: int


class Sums(NamedTuple):
    """What the sums of the cells are like, as `Tally` has it."""

    special: int
    inexact: int
    least_lattice: int
    greatest: float
    total: float


class Errors(NamedTuple):
    """How far outputs are off, as `Tally` has it."""

    finite: int
    inexact: int
    max_absolute: float
    sum_absolute: float
    max_relative: float
    sum_relative: float
    max_ulp: float
    sum_outward: float


@part
def _judge_cells(outputs: Floats, open_cells: Flags, rules: Rules, guard: float, facts: Facts, tally: Tally) -> None:
    """Hold every cell against what is admissible there, and measure how far it is off.

    Cells that nothing reaches and that are zero, most of many planes, are only counted.
    """
    idle, limit, least_margin = 0, limit_of(rules), math.inf
    verdicts, sums = Verdicts(0, 0, 0, 0, 0), Sums(0, 0, NO_LATTICE, 0.0, 0.0)
    errors = Errors(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(outputs.size):
        output, is_open = outputs[i], open_cells.size > 0 and open_cells[i]
        if facts.k[i] == 0 and output == 0.0 and not is_open:
            idle += 1
            continue
        cell = cell_of(facts, i)
        low, high, others = admissible(cell, rules)
        is_right = is_open or accepts(low, high, cell.lattice, others, limit, output)
        owes, right = owes_bits(low, high, others) and not is_open, _right(cell, rules)
        verdicts = _judged(verdicts, cell.k > 0, is_right, owes, is_same(output, right))
        sums = _told(sums, cell, right)
        if not (math.isfinite(output) and math.isfinite(right)):
            continue
        error = (output - cell.sum) - cell.residue
        ulps, relative = 0.0, 0.0
        if error != 0.0:
            ulps = abs(error) / ulp(cell.sum, rules.precision, rules.min_exponent)
            relative = abs(output - right) / (abs(right) + guard)
        errors = _measured(errors, cell.sum, error, ulps, relative)
        tally.ulps[_ulp_class(ulps)] += 1
        if cell.k == 0 or cell.kinds:
            continue
        number = _class_of(cell.k)
        tally.k_cells[number] += 1
        if error != 0.0 or low != high:
            least_margin = min(least_margin, _margin(cell.sum, error, low, high, rules))
            unit = ulp(max(cell.positive, cell.negative), rules.precision, rules.min_exponent)
            tally.k_error[number] = max(tally.k_error[number], abs(error) / unit)
            tally.k_bound[number] = max(tally.k_bound[number], max(high - cell.sum, cell.sum - low) / unit)
    tally.counts[CELLS] += outputs.size
    tally.reals[LEAST_MARGIN] = min(tally.reals[LEAST_MARGIN], least_margin)
    _add_idle(idle, rules, tally)
    _add_verdicts(verdicts, tally)
    _add_sums(sums, tally)
    _add_errors(errors, tally)


@part
def _right(cell: Cell, rules: Rules) -> float:
    """The exact sum rounded once."""
    exact = cell.sum if cell.kinds == 0 else _of_special_terms(cell.kinds)
    return rounded(exact, cell.residue, rules.precision, rules.min_exponent, rules.largest)


@part
def _judged(before: Verdicts, is_reached: bool, is_right: bool, owes: bool, is_exact: bool) -> Verdicts:
    return Verdicts(
        before.reached + is_reached,
        before.rejected_reached + (is_reached and not is_right),
        before.rejected_unreached + (not is_reached and not is_right),
        before.bits_owed + owes,
        before.bit_exact + is_exact,
    )


@part
def _told(before: Sums, cell: Cell, right: float) -> Sums:
    magnitude = cell.positive + cell.negative
    return Sums(
        before.special + (cell.kinds != 0),
        before.inexact + (right != cell.sum),
        min(before.least_lattice, int(cell.lattice)),
        max(before.greatest, magnitude),
        before.total + magnitude,
    )


@part
def _measured(before: Errors, exact: float, error: float, ulps: float, relative: float) -> Errors:
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


@part
def _class_of(k: int) -> int:
    """ceil(log2 k)."""
    return 0 if k == 1 else exponent_of(float(k - 1)) + 1


@part
def _margin(exact: float, error: float, low: float, high: float, rules: Rules) -> float:
    """The share of the admissible deviation that is left, where it is more than one ulp; else infinite."""
    room = high - exact if error > 0.0 else exact - low
    if 0.0 < room < math.inf and high - low > ulp(exact, rules.precision, rules.min_exponent):
        return (room - abs(error)) / room
    return math.inf


@part
def _add_idle(number: int, rules: Rules, tally: Tally) -> None:
    """Cells that nothing reaches, and which are zero."""
    low, high, others = admissible(Cell(0, 0.0, 0.0, 0.0, 0.0, NO_LATTICE, 0), rules)
    tally.counts[BITS_OWED] += number if owes_bits(low, high, others) else 0
    tally.counts[BIT_EXACT] += number
    tally.counts[FINITE] += number
    tally.ulps[0] += number


@part
def _add_verdicts(verdicts: Verdicts, tally: Tally) -> None:
    tally.counts[REACHED] += verdicts.reached
    tally.counts[REJECTED_REACHED] += verdicts.rejected_reached
    tally.counts[REJECTED_UNREACHED] += verdicts.rejected_unreached
    tally.counts[BITS_OWED] += verdicts.bits_owed
    tally.counts[BIT_EXACT] += verdicts.bit_exact


@part
def _add_sums(sums: Sums, tally: Tally) -> None:
    tally.counts[SPECIAL] += sums.special
    tally.counts[INEXACT_SUMS] += sums.inexact
    tally.counts[LEAST_LATTICE] = min(tally.counts[LEAST_LATTICE], sums.least_lattice)
    tally.reals[GREATEST] = max(tally.reals[GREATEST], sums.greatest)
    tally.reals[TOTAL] += sums.total


@part
def _add_errors(errors: Errors, tally: Tally) -> None:
    tally.counts[FINITE] += errors.finite
    tally.counts[INEXACT] += errors.inexact
    tally.reals[MAX_ABSOLUTE] = max(tally.reals[MAX_ABSOLUTE], errors.max_absolute)
    tally.reals[SUM_ABSOLUTE] += errors.sum_absolute
    tally.reals[MAX_RELATIVE] = max(tally.reals[MAX_RELATIVE], errors.max_relative)
    tally.reals[SUM_RELATIVE] += errors.sum_relative
    tally.reals[MAX_ULP] = max(tally.reals[MAX_ULP], errors.max_ulp)
    tally.reals[SUM_OUTWARD] += errors.sum_outward


@part
def _of_special_terms(kinds: int) -> float:
    """The exact sum where the terms are not all finite."""
    if kinds & NAN or kinds == BOTH_INFINITIES:
        return math.nan
    return math.inf if kinds == POSITIVE_INFINITY else -math.inf


@part
def _ulp_class(ulps: float) -> int:
    number = 0
    while number < len(ULP_EDGES) and ulps > ULP_EDGES[number]:
        number += 1
    return number


@part
def _compare_totals(outputs: Floats, terms: Floats, tally: Tally) -> None:
    """Whether what came out of a plane is in all what was sent there."""
    if outputs.sum() != terms.sum():
        tally.counts[PLANES_OFF] += 1
