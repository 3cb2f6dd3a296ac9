"""Exact sums and the interval criterion on arrays: what a kernel may write under its accumulation model.

The backward operators are one scatter-add, so a few exact facts about a cell's terms decide its admissible results.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.formats import FLOAT32, Float64, FloatFormat
from poolproof.references.geometry import Int64
from poolproof.references.kernels.compiled import argument
from poolproof.references.kernels.criterion import AccumulationParameters, Admissible, bound_cells, limit_of
from poolproof.references.kernels.numbers import FormatNumbers
from poolproof.references.kernels.sums import ExactSums, empty_sums, sum_plane


def scatter_sums(cells: Int64, terms: Float64, size: int) -> ExactSums:
    """Sum flat ``terms`` into flat ``cells`` of [0, ``size``) exactly.

    A term with a negative cell is dropped. A cell beyond raises IndexError. OverflowError is raised if the finite terms
    of a cell add up to 2**960 or more, because float64 cannot hold bounds on their sums.
    """
    sums = empty_sums.py_func(size)
    sum_plane(argument(cells, np.int64), argument(terms, np.float64), sums)
    return sums


def admissible(sums: ExactSums, output: FloatFormat, model: AccumulationModel) -> Admissible:
    """Derive from exact sums what a kernel of ``model`` may write into a tensor of format ``output``."""
    cells, parameters = sums.k.size, accumulation_parameters(output, model)
    low, high, specials = np.empty(cells), np.empty(cells), np.empty(cells, np.uint8)
    bound_cells(sums, parameters, low, high, specials)
    return Admissible(low, high, sums.lattice, specials, limit_of.py_func(parameters))


@lru_cache(maxsize=256)
def accumulation_parameters(output: FloatFormat, model: AccumulationModel) -> AccumulationParameters:
    accumulator = model.accumulator(output)
    return AccumulationParameters(
        output=_numbers_of(output),
        accumulator=_numbers_of(accumulator),
        narrows=accumulator is not output,
        tiles=model.tiles if model.kind == "mixed" and output.precision <= FLOAT32.precision else 0,
        tile_roundoff=FLOAT32.unit_roundoff,
        flushes=model.flushes_subnormals,
        cast_flushes=model.cast_flushes,
        saturates=model.saturates,
    )


def _numbers_of(fmt: FloatFormat) -> FormatNumbers:
    return FormatNumbers._make(getattr(fmt, name) for name in FormatNumbers._fields)
