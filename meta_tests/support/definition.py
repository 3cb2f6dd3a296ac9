"""Sums and the criterion held to their definition, in fractions, on drawn cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np

from distributions import DISTRIBUTIONS, draw_terms
from exact import INFINITY, interval, lattice_exponent, overflows
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import Admissible, admissible
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatFormat
from poolproof.references.oracle import NO_LATTICE, ExactSums, scatter_sums

MODELS = ("acc32", "native", "mixed(2)", "mixed(3)", "acc32+ftz", "native+ftz")


def small_case(number: int) -> tuple[FloatFormat, AccumulationModel, list[list[Fraction]], ExactSums]:
    """Up to eight cells with up to six terms each."""
    rng = np.random.default_rng([20, number])
    fmt = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)[number % 4]
    model = AccumulationModel.parse(MODELS[number % len(MODELS)])
    names = [name for name in DISTRIBUTIONS if fmt is not FLOAT64 or name != "near_overflow"]
    terms = draw_terms(rng, str(rng.choice(names)), (8, 6), fmt)
    counts = rng.integers(0, 7, 8)
    cells = np.repeat(np.arange(8), counts)
    values = np.concatenate([terms[cell, :count] for cell, count in enumerate(counts)])
    exact = [[Fraction(float(term)) for term in terms[cell, :count]] for cell, count in enumerate(counts)]
    return fmt, model, exact, scatter_sums(cells, values, 8)


def hold_sums(number: int) -> None:
    _, _, cells, sums = small_case(number)
    for cell, terms in enumerate(cells):
        total = sum(terms, Fraction(0))
        assert sums.count[cell] == len(terms)
        assert sums.sum[cell] == float(total)
        assert sums.residue[cell] == float(total - Fraction(sums.sum[cell]))
        assert Fraction(sums.positive[cell]) >= sum((t for t in terms if t > 0), Fraction(0))
        assert Fraction(sums.negative[cell]) >= sum((-t for t in terms if t < 0), Fraction(0))
        lattice = lattice_exponent(terms)
        assert sums.lattice[cell] == (NO_LATTICE if lattice is None else lattice)


def hold_candidates(number: int) -> int:
    """How many candidates were held against the definition."""
    fmt, model, cells, sums = small_case(number)
    outputs = np.stack([candidates(sum(terms, Fraction(0)), fmt) for terms in cells])
    allowed = repeated(admissible(sums, fmt, model), outputs.shape[1])
    accepted = allowed.accepts(outputs.ravel()).reshape(outputs.shape)
    for cell, terms in enumerate(cells):
        owed = owed_verdicts(outputs[cell], terms, fmt, model)
        for output, verdict, right in zip(outputs[cell], accepted[cell], owed, strict=True):
            assert right is None or bool(verdict) == right, (number, cell, output, terms)
    return outputs.size


def candidates(total: Fraction, fmt: FloatFormat) -> np.ndarray:
    """The representable values nearest to the sum, some farther off, zero and the non-finite ones."""
    nearest = fmt.round(np.array([float(total)]))
    bits = np.clip(nearest, -fmt.max, fmt.max).astype(fmt.dtype).view(f"i{fmt.dtype.itemsize}").astype(np.int64)
    nearby = (bits + np.array([-64, -3, -2, -1, 0, 1, 2, 3, 64])).astype(f"i{fmt.dtype.itemsize}").view(fmt.dtype)
    with np.errstate(invalid="ignore"):
        return np.concatenate([nearby.astype(np.float64), [0.0, np.inf, -np.inf, np.nan]])


def owed_verdicts(
    outputs: np.ndarray, terms: list[Fraction], fmt: FloatFormat, model: AccumulationModel
) -> list[bool | None]:
    """The definition, literally; None for the last bits of float64 at a bound, which the criterion rounds outward."""
    up, down = overflows(terms, fmt, model)
    low, high = interval(terms, fmt, model)
    lattice = lattice_exponent(terms)
    step = None if lattice is None else Fraction(2) ** lattice
    finite = [bound for bound in (low, high) if low != high and math.isfinite(bound)]
    last_bits = [(Fraction(bound), 4 * Fraction(math.ulp(float(bound)))) for bound in finite]

    def verdict(output: float) -> bool | None:
        if math.isnan(output):
            return up and down
        if output == INFINITY:
            return up or high == INFINITY
        if output == -INFINITY:
            return down or low == -INFINITY
        value = Fraction(output)
        if step is not None and (value / step).denominator != 1:
            return False
        if any(0 < abs(value - bound) <= few for bound, few in last_bits):
            return None
        return low <= value <= high

    return [verdict(float(output)) for output in outputs]


def repeated(allowed: Admissible, count: int) -> Admissible:
    """The acceptance of each cell, repeated for several candidates."""
    return of_each(allowed, lambda values: np.repeat(values, count))


def of_each(allowed: Admissible, change: Callable[[np.ndarray], np.ndarray]) -> Admissible:
    arrays = {field.name: getattr(allowed, field.name) for field in fields(allowed)}
    return replace(allowed, **{name: change(a) for name, a in arrays.items() if isinstance(a, np.ndarray)})
