"""Guesses in findings: the rule that would make all outputs of a forward right, and what a window holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.forward import judge_forward
from poolproof.references.forward_rule import TRAITS, ForwardRule
from poolproof.references.geometry import Axis, Int64
from poolproof.reports.rows.rejudge import number

_MOST_VALUES, _MOST_PLACES = 12, 8
"""Values of a window that a finding shows, and places along an axis."""


def right_rule(planes: NDArray, axes: Sequence[Axis], out: NDArray, indices: Int64, declared: ForwardRule) -> str:
    """Name a rule that differs in one trait and makes all outputs right; of several that leaves nothing open."""
    rules = [replace(declared, **{trait: value}) for trait, value in TRAITS.values()]
    for rule in sorted(rules, key=lambda rule: rule.leaves_open):
        if rule != declared and not judge_forward(planes, axes, out, indices, rule).any():
            return f"declared {declared}; all of it would be right as {rule}"
    return ""


def window_text(visited: Sequence[Sequence[int]], values: Float64) -> str:
    """Say which coordinates along each axis a window visits, evenly apart, and the values of a small one."""
    texts = [str(cells) if len(cells) <= _MOST_PLACES else _shortened(cells) for cells in visited]
    held = f" and holds [{', '.join(map(number, values.tolist()))}]" if 0 < len(values) <= _MOST_VALUES else ""
    return f"its window visits coordinates {' x '.join(texts)}{held}"


def _shortened(cells: Sequence[int]) -> str:
    return f"[{cells[0]}, {cells[1]}, ..., {cells[-1]}]"
