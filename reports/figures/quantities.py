"""Quantities of precision, each with one name, definition and unit everywhere.

S is the exact sum of a cell, y the output, P and N the sums of the positive and of the negative gradients of the cell.
If a sum cancels, S may be arbitrarily small beside its terms, so that an error in ulp of S means nothing. Therefore the
largest error is given in ulp of max(P, N), and the bias is that of rows without cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Quantity:
    """``column`` is its name in tables; ``is_worse`` takes its values before and after.

    A change below a twentieth is shown, but is not worse: kernels that add in any order never repeat exactly.
    """

    column: str
    name: str
    unit: str
    definition: str
    is_worse: Callable[[float, float], bool]

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


CORRECTLY_ROUNDED = Quantity(
    "exact_share",
    "correctly rounded",
    "%",
    "share of cells that are S rounded once",
    lambda before, after: after < before - 0.1,
)
BITS_OWED = Quantity(
    "single_valued_share",
    "bits determined",
    "%",
    "share of cells where exactly one value is admissible",
    lambda before, after: after != before,
)
LARGEST_ERROR = Quantity(
    "largest_error",
    "largest error",
    "ulp of max(P, N)",
    "largest |y - S|, in the last place of the larger of the sums of positive (P) and of negative (N) gradients in the "
    "cell",
    lambda before, after: after > before * 1.05 + 0.01,
)
BIAS = Quantity(
    "bias_ulp",
    "bias",
    "ulp of S",
    "mean of sign(S) (y - S) over inexact cells, of cases without an error above one ulp of S: near 0 for rounding to "
    "nearest, near -0.5 for truncation",
    lambda before, after: abs(after) > abs(before) * 1.05 + 0.02,
)
LEAST_MARGIN = Quantity(
    "margin_min",
    "least margin",
    "",
    "how far the worst sum stays from the end of its interval, as a share of the room on its side: 1 is exact, 0 on "
    "the end",
    lambda before, after: after < before - 0.05 * abs(before),
)

QUANTITIES = (CORRECTLY_ROUNDED, BITS_OWED, LARGEST_ERROR, BIAS, LEAST_MARGIN)

ROUNDED = 1.0
"""Largest error, in ulp of S, of rows that show the rounding."""

NEEDED = ("n_inexact", "bias_ulp", "max_ulp", "k_error")
"""Columns of rows that `add_quantities` needs."""


def add_quantities(rows: pa.Table) -> pa.Table:
    """Add three columns: ``largest_error``, and ``outward`` and ``inexact``, whose sums give a bias."""
    inexact = pc.if_else(pc.less_equal(rows["max_ulp"], ROUNDED), rows["n_inexact"], 0)
    outward = pc.multiply(rows["bias_ulp"], inexact)
    errors, greatest = rows["k_error"], np.full(len(rows), np.nan)
    np.fmax.at(greatest, pc.list_parent_indices(errors).to_numpy(), pc.list_flatten(errors).to_numpy())
    columns = {"largest_error": pa.array(greatest, from_pandas=True), "inexact": inexact, "outward": outward}
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows
