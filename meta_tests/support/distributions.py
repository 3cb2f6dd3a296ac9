"""Gradients to try a criterion on: from harmless to hostile."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from poolproof.references.formats import FloatFormat

Draw = Callable[[Generator, tuple[int, int], FloatFormat], np.ndarray]


def _wide(rng: Generator, shape: tuple[int, int], fmt: FloatFormat) -> np.ndarray:
    span = min(fmt.max_exponent - 13, 60)
    return np.ldexp(rng.uniform(1, 2, shape), rng.integers(-span, span, shape)) * rng.choice([-1, 1], shape)


def _cancelling(rng: Generator, shape: tuple[int, int], fmt: FloatFormat) -> np.ndarray:
    values = rng.uniform(1, 2, shape) * 2.0 ** rng.integers(0, 10, shape)
    values[:, 1::2] = -values[:, : values[:, 1::2].shape[1] * 2 : 2]
    values[:, 0] += rng.uniform(-1, 1, shape[0])
    return values


def _subnormals(rng: Generator, shape: tuple[int, int], fmt: FloatFormat) -> np.ndarray:
    return rng.integers(-(2 ** (fmt.precision + 1)), 2 ** (fmt.precision + 1), shape) * fmt.smallest_subnormal


def _near_overflow(rng: Generator, shape: tuple[int, int], fmt: FloatFormat) -> np.ndarray:
    return np.ldexp(rng.uniform(0.25, 2, shape), fmt.max_exponent) * rng.choice([-1, 1], shape)


DISTRIBUTIONS: dict[str, Draw] = {
    "uniform": lambda rng, shape, fmt: rng.uniform(-5, 5, shape),
    "positive": lambda rng, shape, fmt: rng.uniform(1, 2, shape),
    "normal": lambda rng, shape, fmt: rng.normal(size=shape),
    "wide": _wide,
    "cancelling": _cancelling,
    "outliers": lambda rng, shape, fmt: rng.normal(size=shape) * np.where(rng.random(shape) < 0.05, 1000.0, 1.0),
    "subnormals": _subnormals,
    "near_overflow": _near_overflow,
    "constant": lambda rng, shape, fmt: np.broadcast_to(rng.uniform(-1, 1, (shape[0], 1)), shape).copy(),
    "sparse": lambda rng, shape, fmt: np.where(rng.random(shape) < 0.6, 0.0, rng.normal(size=shape)),
}


def draw_terms(rng: Generator, name: str, shape: tuple[int, int], fmt: FloatFormat) -> np.ndarray:
    """Terms of shape (cells, k) that ``fmt`` represents exactly and that are finite."""
    return np.clip(fmt.round(DISTRIBUTIONS[name](rng, shape, fmt)), -fmt.max, fmt.max)
