"""Summary of the judgement of one output in counts and extremes: all that a passing output needs.

The output is judged in chunks of planes, in the memory of one plane. Once something is wrong,
`poolproof.references.criterion.admissible` says which cell, and what is expected there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from poolproof.references.accumulation import AccumulationModel
from poolproof.references.criterion import accumulation_parameters
from poolproof.references.formats import FloatFormat
from poolproof.references.kernels.compiled import Flags, Floats, Ints
from poolproof.references.kernels.judge import MOST_CLASSES, NOTHING, ULP_EDGES, Classes, Tally, judge_planes
from poolproof.references.standards.ecosystem import RELATIVE_GUARD

NOWHERE_OPEN = np.empty(0, bool)


class PlaneChunk(NamedTuple):
    """Some planes, or a part of one: the cells of windows' gradients, the gradients, and the outputs, all flat.

    ``cells`` count within each plane, or within the part; a gradient with a negative cell is dropped. Any output in
    ``open_cells`` is right; it is empty where there are none.
    """

    cells: Ints
    terms: Floats
    outputs: Floats
    open_cells: Flags = NOWHERE_OPEN


class Summary(NamedTuple):
    """The tally of all planes, and the `Classes` up to the last that has a cell."""

    tally: Tally
    ulps: tuple[int, ...]
    k_cells: tuple[int, ...]
    k_error: tuple[float, ...]
    k_bound: tuple[float, ...]


def summarise(chunks: Iterable[PlaneChunk], plane_size: int, output: FloatFormat, model: AccumulationModel) -> Summary:
    """Judge an output of planes of ``plane_size`` cells, from a kernel of that model.

    A chunk of fewer cells is a part of a plane.
    """
    numbers, tally = accumulation_parameters(output, model), NOTHING
    counts = np.zeros(len(ULP_EDGES) + 1, np.int64), np.zeros(MOST_CLASSES, np.int64)
    classes = Classes(*counts, np.zeros(MOST_CLASSES), np.zeros(MOST_CLASSES))
    for chunk in chunks:
        if chunk.outputs.size:
            size = min(plane_size, chunk.outputs.size)
            tally = judge_planes(*chunk, numbers, RELATIVE_GUARD, size, tally, classes)
    used = int(classes.k_cells.nonzero()[0].max(initial=-1)) + 1
    by_class = (tuple(column[:used].tolist()) for column in classes[1:])
    return Summary(tally, tuple(classes.ulps.tolist()), *by_class)
