"""One pass over planes: what meets in each cell, what is admissible there, whether the output is, how far it is off.

What comes of it are counts and extremes, so that the memory of a passing tensor's judgement is that of one plane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from poolproof.references.core.compiled import Flags, Floats, Ints, compiled, part
from poolproof.references.core.criterion import Bounds, Rules, accepts, fill_bounds, limit_of, owes_bits
from poolproof.references.core.facts import BOTH_INFINITIES, NAN, POSITIVE_INFINITY, Facts, gather
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
    facts: Facts,
    bounds: Bounds,
    tally: Tally,
) -> None:
    """Judge the ``outputs`` of as many planes as they are, each of as many cells as ``facts`` and ``bounds``.

    ``cells`` and ``terms`` are those of the planes' windows, in their order; a term sent to a negative cell lands
    nowhere. Whatever comes out in ``open_cells`` is right; empty where there are none. ``guard`` is added to the
    denominator of relative errors. What lies in ``facts`` and ``bounds`` is overwritten.
    """
    size = facts.k.size
    planes = outputs.size // size
    windows = terms.size // planes
    for plane in range(planes):
        first, start = plane * windows, plane * size
        gather(cells, terms, first, first + windows, facts)
        fill_bounds(facts, rules, bounds)
        plane_of_outputs = outputs[start : start + size]
        _hold_against_bounds(plane_of_outputs, open_cells[start : start + size], limit_of(rules), facts, bounds, tally)
        _tell_of_sums(facts, tally)
        _measure_errors(plane_of_outputs, rules, guard, facts, tally)
        _measure_room(plane_of_outputs, rules, facts, bounds, tally)
        _compare_totals(plane_of_outputs, terms[first : first + windows], tally)


@part
def _hold_against_bounds(
    outputs: Floats, open_cells: Flags, limit: float, facts: Facts, bounds: Bounds, tally: Tally
) -> None:
    """The verdict."""
    reached, owed, rejected_reached, rejected_unreached = 0, 0, 0, 0
    for i in range(outputs.size):
        low, high, others = bounds.low[i], bounds.high[i], bounds.others[i]
        is_open = open_cells.size > 0 and open_cells[i]
        reached += facts.k[i] > 0
        owed += owes_bits(low, high, others) and not is_open
        if not (is_open or accepts(low, high, bounds.lattice[i], others, limit, outputs[i])):
            rejected_reached += facts.k[i] > 0
            rejected_unreached += facts.k[i] == 0
    tally.counts[CELLS] += outputs.size
    tally.counts[REACHED] += reached
    tally.counts[BITS_OWED] += owed
    tally.counts[REJECTED_REACHED] += rejected_reached
    tally.counts[REJECTED_UNREACHED] += rejected_unreached


@part
def _tell_of_sums(facts: Facts, tally: Tally) -> None:
    """What the sums themselves are like."""
    special, lattice, greatest, total = 0, NO_LATTICE, 0.0, 0.0
    for i in range(facts.k.size):
        magnitude = facts.positive[i] + facts.negative[i]
        special += facts.kinds[i] != 0
        lattice = min(lattice, facts.lattice[i])
        greatest = max(greatest, magnitude)
        total += magnitude
    tally.counts[SPECIAL] += special
    tally.counts[LEAST_LATTICE] = min(tally.counts[LEAST_LATTICE], lattice)
    tally.reals[GREATEST] = max(tally.reals[GREATEST], greatest)
    tally.reals[TOTAL] += total


@part
def _measure_errors(outputs: Floats, rules: Rules, guard: float, facts: Facts, tally: Tally) -> None:
    """How far the outputs are from the exact sums, and from these rounded once."""
    inexact_sums, bit_exact, finite, inexact = 0, 0, 0, 0
    max_absolute, sum_absolute, max_relative, sum_relative, max_ulp, sum_outward = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(outputs.size):
        output, exact, residue = outputs[i], facts.sum[i], facts.residue[i]
        golden = exact if facts.kinds[i] == 0 else _of_special_terms(facts.kinds[i])
        right = rounded(golden, residue, rules.precision, rules.min_exponent, rules.largest)
        inexact_sums += right != exact
        bit_exact += output == right or (math.isnan(output) and math.isnan(right))
        if not (math.isfinite(output) and math.isfinite(right)):
            continue
        finite += 1
        error = (output - exact) - residue
        if error == 0.0:
            tally.ulps[0] += 1
            continue
        relative = abs(output - right) / (abs(right) + guard)
        ulps = abs(error) / ulp(exact, rules.precision, rules.min_exponent)
        tally.ulps[_ulp_class(ulps)] += 1
        max_relative, sum_relative = max(max_relative, relative), sum_relative + relative
        max_absolute, sum_absolute = max(max_absolute, abs(error)), sum_absolute + abs(error)
        max_ulp = max(max_ulp, ulps)
        if exact != 0.0:
            inexact += 1
            sum_outward += ulps if (error > 0.0) == (exact > 0.0) else -ulps
    tally.counts[INEXACT_SUMS] += inexact_sums
    tally.counts[BIT_EXACT] += bit_exact
    tally.counts[FINITE] += finite
    tally.counts[INEXACT] += inexact
    tally.reals[MAX_ABSOLUTE] = max(tally.reals[MAX_ABSOLUTE], max_absolute)
    tally.reals[SUM_ABSOLUTE] += sum_absolute
    tally.reals[MAX_RELATIVE] = max(tally.reals[MAX_RELATIVE], max_relative)
    tally.reals[SUM_RELATIVE] += sum_relative
    tally.reals[MAX_ULP] = max(tally.reals[MAX_ULP], max_ulp)
    tally.reals[SUM_OUTWARD] += sum_outward


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
def _measure_room(outputs: Floats, rules: Rules, facts: Facts, bounds: Bounds, tally: Tally) -> None:
    """The errors of reached cells beside what the accumulation model admits, by how many terms meet."""
    least_margin = math.inf
    for i in range(outputs.size):
        output, exact, k = outputs[i], facts.sum[i], facts.k[i]
        if k == 0 or facts.kinds[i] or not math.isfinite(output):
            continue
        if not math.isfinite(rounded(exact, facts.residue[i], rules.precision, rules.min_exponent, rules.largest)):
            continue
        low, high = bounds.low[i], bounds.high[i]
        error = (output - exact) - facts.residue[i]
        room = high - exact if error > 0.0 else exact - low
        if 0.0 < room < math.inf and high - low > ulp(exact, rules.precision, rules.min_exponent):
            least_margin = min(least_margin, (room - abs(error)) / room)
        number = 0 if k == 1 else exponent_of(float(k - 1)) + 1
        unit = ulp(max(facts.positive[i], facts.negative[i]), rules.precision, rules.min_exponent)
        tally.k_cells[number] += 1
        tally.k_error[number] = max(tally.k_error[number], abs(error) / unit)
        tally.k_bound[number] = max(tally.k_bound[number], max(high - exact, exact - low) / unit)
    tally.reals[LEAST_MARGIN] = min(tally.reals[LEAST_MARGIN], least_margin)


@part
def _compare_totals(outputs: Floats, terms: Floats, tally: Tally) -> None:
    """Whether what came out of a plane is in all what was sent there."""
    if outputs.sum() != terms.sum():
        tally.counts[PLANES_OFF] += 1
