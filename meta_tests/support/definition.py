"""Sums and the criterion held to the specification on drawn cases."""

import math
from fractions import Fraction

import numpy as np

from distributions import DISTRIBUTIONS, draw_terms
from poolproof.references import specification
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import admissible, scatter_sums
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatFormat
from poolproof.references.kernels.sums import ExactSums

MODELS = (
    *("acc32", "native", "mixed(2)", "mixed(3)", "acc32+ftz", "native+ftz", "acc32+cast-ftz", "native+saturate"),
    *("mixed(4)+ftz+cast-ftz+saturate", "acc32+saturate", "native+ftz+cast-ftz"),
)


SPECIALS = (np.nan, np.inf, -np.inf)


def small_case(number: int) -> tuple[FloatFormat, AccumulationModel, list[list[float]], ExactSums]:
    """Up to eight cells with up to six terms each, some of them not finite."""
    rng = np.random.default_rng([20, number])
    fmt = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)[number % 4]
    model = AccumulationModel.parse(MODELS[number % len(MODELS)])
    names = [name for name in DISTRIBUTIONS if fmt is not FLOAT64 or name != "near_overflow"]
    terms = draw_terms(rng, str(rng.choice(names)), (8, 6), fmt)
    if number % 5 == 0:
        terms[rng.random(terms.shape) < 0.1] = rng.choice(SPECIALS)
    counts = rng.integers(0, 7, 8)
    cells = np.repeat(np.arange(8), counts)
    values = np.concatenate([terms[cell, :count] for cell, count in enumerate(counts)])
    listed = [terms[cell, :count].tolist() for cell, count in enumerate(counts)]
    return fmt, model, listed, scatter_sums(cells, values, 8)


def hold_candidates(number: int) -> int:
    """How many candidates were held against the specification.

    Not those in the last bits of float64 at a bound, which the criterion rounds outward.
    """
    fmt, model, cells, sums = small_case(number)
    outputs = np.stack([candidates(specification.summed(terms).exact, fmt) for terms in cells])
    allowed = admissible(sums, fmt, model)
    of_outputs = {
        name: np.repeat(of_cells, outputs.shape[1])
        for name, of_cells in allowed._asdict().items()
        if isinstance(of_cells, np.ndarray)
    }
    accepted = allowed._replace(**of_outputs).accepts(outputs.ravel())
    for cell, terms in enumerate(cells):
        expected = specification.admissible(terms, fmt, model)
        bounds = (expected.low, expected.high) if expected.low != expected.high else ()
        ends = [(Fraction(end), 4 * Fraction(math.ulp(float(end)))) for end in bounds if math.isfinite(end)]
        for output, verdict in zip(outputs[cell].tolist(), accepted.reshape(outputs.shape)[cell], strict=True):
            at_bound = math.isfinite(output) and any(0 < abs(Fraction(output) - end) <= few for end, few in ends)
            assert at_bound or verdict == expected.accepts(output), (number, cell, output, terms)
    return outputs.size


def candidates(total: Fraction, fmt: FloatFormat) -> np.ndarray:
    """The representable values nearest to the sum, some farther off, zero and the non-finite ones."""
    nearest = fmt.round(np.array([float(total)]))
    bits = np.clip(nearest, -fmt.max, fmt.max).astype(fmt.dtype).view(f"i{fmt.dtype.itemsize}").astype(np.int64)
    nearby = (bits + np.array([-64, -3, -2, -1, 0, 1, 2, 3, 64])).astype(f"i{fmt.dtype.itemsize}").view(fmt.dtype)
    with np.errstate(invalid="ignore"):
        return np.concatenate([nearby.astype(np.float64), [0.0, *SPECIALS]])
