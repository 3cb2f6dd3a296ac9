"""Simulated kernels: correct implementations of each accumulation model, in many orders of addition.

They stand for everything a vendor may legitimately do. The criterion must never reject one of them.
"""

import numpy as np
from numpy.random import Generator

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, FloatFormat

ORDERS = ("forward", "backward", "random", "pairwise", "tree")


def simulate(terms: np.ndarray, fmt: FloatFormat, model: AccumulationModel, order: str, rng: Generator) -> np.ndarray:
    """Sum each row of ``terms`` as a kernel of ``model`` would.

    ``terms`` are values of ``fmt`` as float64, of shape (cells, k); the sums are too, of shape (cells,).
    """
    accumulator = model.accumulator(fmt).dtype
    with np.errstate(over="ignore", invalid="ignore"):
        if model.kind == "mixed":
            tiles = np.array_split(rng.permutation(terms.shape[1]), min(model.tiles, terms.shape[1]))
            partial = [_sum(terms[:, tile].astype(np.float32), order, model, FLOAT32, rng) for tile in tiles]
            rounded = np.stack([fmt.round(part.astype(np.float64)) for part in partial], axis=1)
            total = _sum(rounded.astype(fmt.dtype), order, model, fmt, rng).astype(np.float64)
        else:
            total = _sum(terms.astype(accumulator), order, model, model.accumulator(fmt), rng).astype(np.float64)
        result = fmt.round(total)
    if model.saturates:
        result = np.where(np.isnan(result), result, np.clip(result, -fmt.max, fmt.max))
    if model.cast_flushes:
        result = np.where(np.abs(result) < fmt.smallest_normal, 0.0, result)
    return result


def _sum(terms: np.ndarray, order: str, model: AccumulationModel, fmt: FloatFormat, rng: Generator) -> np.ndarray:
    """Add the columns in one order, every addition rounding to the array's own dtype."""
    columns = [_flushed(terms[:, i], model, fmt) for i in _sequence(terms.shape[1], order, rng)]
    if order in ("pairwise", "tree"):
        return _by_tree(columns, model, fmt, None if order == "pairwise" else rng)
    total = np.zeros(len(terms), terms.dtype)
    for column in columns:
        total = _flushed(total + column, model, fmt)
    return total


def _sequence(count: int, order: str, rng: Generator) -> np.ndarray:
    if order == "backward":
        return np.arange(count)[::-1]
    return rng.permutation(count) if order in ("random", "tree") else np.arange(count)


def _by_tree(
    columns: list[np.ndarray], model: AccumulationModel, fmt: FloatFormat, rng: Generator | None
) -> np.ndarray:
    """Balanced pairs without ``rng``, random pairs with it."""
    while len(columns) > 1:
        if rng is not None:
            i = int(rng.integers(len(columns) - 1))
            columns[i : i + 2] = [_flushed(columns[i] + columns[i + 1], model, fmt)]
        else:
            pairs = [_flushed(a + b, model, fmt) for a, b in zip(columns[::2], columns[1::2], strict=False)]
            columns = pairs + ([columns[-1]] if len(columns) % 2 else [])
    return columns[0]


def _flushed(values: np.ndarray, model: AccumulationModel, fmt: FloatFormat) -> np.ndarray:
    if not model.flushes_subnormals:
        return values
    return np.where(np.abs(values.astype(np.float64)) < fmt.smallest_normal, values.dtype.type(0), values)
