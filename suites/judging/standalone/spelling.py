"""What programs have in common: numbers spelled out, and the loops that work out what is owed.

The loops use lists of numbers in row-major order, ``<input>_values``, and call ``report(name, owed)``.
"""

from __future__ import annotations

import textwrap

import numpy as np

from poolproof.references.indices import MASK
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import Contents

_BACKWARD = '''

def total(gradients):
    """The exact sum rounded to float64, or NaN where there is none."""
    try:
        return fsum(gradients)
    except (OverflowError, ValueError):
        return nan


sent = {{}}
for window, (cell, gradient) in enumerate(zip({cells}, grad_output_values)):
    sent.setdefault(window // {plane_windows} * {plane_cells} + cell, []).append(gradient)
report("grad_input", [total(sent.get(cell, ())) for cell in range({all_cells})])
'''

_FORWARD = """

WINDOWS = {windows}  # per axis, per window: the coordinates it visits
SIZES = {sizes}

maxima, first = [], []
for start in range(0, len(self_values), {plane_cells}):
    plane = self_values[start : start + {plane_cells}]
    for window in product(*WINDOWS):
        best = None
        for coordinates in product(*window):
            cell = sum(at * prod(SIZES[axis + 1 :]) for axis, at in enumerate(coordinates))
            if best is None or plane[cell] > plane[best] or plane[cell] != plane[cell]:
                best = cell
        maxima.append(-inf if best is None else plane[best])
        first.append(-1 if best is None else best)
report("out", maxima)
report("indices", first)
"""


def numbers(name: str, values: np.ndarray) -> str:
    """The assignment of a list of numbers."""
    kind = int if values.dtype.kind == "i" else float
    text = ", ".join(repr(kind(value)) for value in values.ravel())
    return f"{name} = [\n{textwrap.fill(text, 110, initial_indent='    ', subsequent_indent='    ')}\n]"


def comparison(content: Contents) -> str:
    """The loops for a case, and what they need that the operands do not say."""
    case = content.case
    return _of_backward(content) if case.api.is_backward else _of_forward(case)


def _of_backward(content: Contents) -> str:
    case = content.case
    loops = _BACKWARD.format(
        cells="cells" if case.api.indices is MASK else "indices_values",
        plane_windows=case.plane_windows,
        plane_cells=case.plane_size,
        all_cells=content.landing.size,
    )
    if case.api.indices is not MASK:
        return loops
    return "\n" + numbers("cells", content.landing.cells % max(case.plane_size, 1)) + loops


def _of_forward(case: Case) -> str:
    windows = [
        [positions[valid].tolist() for positions, valid in zip(axis.positions, axis.valid, strict=True)]
        for axis in case.axes
    ]
    return _FORWARD.format(windows=windows, sizes=list(case.spatial_shape), plane_cells=case.plane_size)
