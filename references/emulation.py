"""The plainest implementation there is: gradients added one by one in memory order, narrowed once.

It stands in for a second device where a standard compares two, and is one admissible result, not the truth.
"""

from __future__ import annotations

import numpy as np

from poolproof.references.formats import FLOAT32, Float64, FloatFormat
from poolproof.references.geometry import Int64


def sequential_sums(
    cells: Int64, terms: Float64, size: int, fmt: FloatFormat, accumulator: FloatFormat | None = None
) -> Float64:
    """Sum ``terms`` (terms,) into ``cells`` (terms,) of [0, size); float64 values of ``fmt``, of shape (size,).

    Every addition rounds to ``accumulator``: by default float32, or the output's own format where that is wider.
    """
    accumulator = accumulator or (FLOAT32 if fmt.precision < FLOAT32.precision else fmt)
    total = np.zeros(size, accumulator.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(total, cells, terms.astype(accumulator.dtype))
    return fmt.round(total.astype(np.float64))
