"""Differences between an output tensor and the exact sums, each computed once and shared by all standards.

This module has no threshold and no verdict. Arrays are flat, of shape (cells,), and float64 unless noted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof.references.accumulation import ACC32
from poolproof.references.formats import Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.kernels.sums import ExactSums

Bool = NDArray[np.bool_]

PART = 1 << 16
"""Cells per pass, few enough that temporary arrays stay in the processor's cache."""

_FEW = 1 << 12
"""Below this number of cells, leaving out idle ones takes longer than it saves."""


@dataclass(frozen=True, eq=False)
class Deviations:
    """A kernel's results with the exact sums and whatever else a standard needs.

    Attributes:
        outputs: The kernel's results.
        sums: The exact facts about each cell's terms.
        fmt: Format of the output tensor.
        second: Results of a second implementation, for standards that compare two; else None.
    """

    outputs: Float64
    sums: ExactSums
    fmt: FloatFormat
    second: Float64 | None = None
    _figures: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Cache ``compute()`` under ``key``, for standards that differ only in thresholds."""
        if key not in self._figures:
            self._figures[key] = compute()
        return self._figures[key]

    def parts(self) -> Iterator[Deviations]:
        """Yield the deviations of `PART` cells at a time; one empty part if there are no cells."""
        return (self._at(slice(first, first + PART)) for first in range(0, max(self.outputs.size, 1), PART))

    def busy(self) -> Deviations:
        """Return the deviations without idle cells, unless there are few cells.

        An idle cell has no terms, and both results are zero.
        """
        if self.outputs.size < _FEW:
            return self
        is_busy = (self.sums.k != 0) | (self.outputs != 0)
        if self.second is not None:
            is_busy |= self.second != 0
        return self._at(np.flatnonzero(is_busy))

    def idle_cell(self) -> Deviations:
        """Return the deviations of a single idle cell."""
        sums, nothing = ExactSums._make(np.zeros(1, fact.dtype) for fact in self.sums), np.zeros(1)
        return replace(self, outputs=nothing, sums=sums, second=None if self.second is None else nothing)

    def _at(self, cells: slice | Int64) -> Deviations:
        sums = ExactSums._make(fact[cells] for fact in self.sums)
        second = None if self.second is None else self.second[cells]
        return replace(self, outputs=self.outputs[cells], sums=sums, second=second)

    @cached_property
    def golden(self) -> Float64:
        """The exact sums, as float64; NaN or infinite if the terms require it."""
        return self.sums.exact

    @cached_property
    def rounded(self) -> Float64:
        """The golden values rounded once, to nearest even, into the output format."""
        return self.fmt.round(self.golden, self.sums.residue)

    @cached_property
    def rounded_error(self) -> Float64:
        """`element_errors` of the outputs against the rounded golden values."""
        return element_errors(self.outputs, self.rounded)

    @cached_property
    def golden_error(self) -> Float64:
        """`element_errors` of the outputs against the golden values."""
        return element_errors(self.outputs, self.golden)

    @cached_property
    def magnitude(self) -> Float64:
        return np.abs(self.golden)

    @cached_property
    def second_error(self) -> Float64:
        """`element_errors` of the second implementation's results against the golden values."""
        assert self.second is not None
        return element_errors(self.second, self.golden)


def element_errors(actual: Float64, expected: Float64) -> Float64:
    """Return |actual - expected|: 0 for two NaN or equal infinities, infinite if only one is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(actual - expected)
    if np.isfinite(difference).all():
        return difference
    return np.where(same_values(actual, expected), 0.0, np.where(np.isnan(difference), np.inf, difference))


def same_values(actual: Float64, expected: Float64) -> Bool:
    """Check where both are equal, infinities included, or both NaN."""
    return (actual == expected) | (np.isnan(actual) & np.isnan(expected))


def sequential_sums(cells: Int64, terms: Float64, size: int, fmt: FloatFormat) -> Float64:
    """Sum ``terms`` (terms,) into ``cells`` (terms,) one by one in memory order; return sums (size,) narrowed to
    ``fmt``.

    Every addition rounds to float32, or to the output's own format if that is wider. A term with a negative cell is
    dropped. Standards that compare two devices use the result as the second one. It is one admissible result, not the
    exact one.
    """
    if cells.min(initial=0) < 0:
        cells, terms = cells[cells >= 0], terms[cells >= 0]
    accumulator = ACC32.accumulator(fmt)
    total = np.zeros(size, accumulator.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(total, cells, terms.astype(accumulator.dtype))
    return fmt.round(total.astype(np.float64))
