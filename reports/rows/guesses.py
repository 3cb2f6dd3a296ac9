"""Guesses in findings: the rule that makes all outputs of a forward right, and a window's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import NDArray

from poolproof.references.formats import Float64
from poolproof.references.forward import judge_forward
from poolproof.references.forward_rule import TRAITS, ForwardRule
from poolproof.references.geometry import Axis, Int64
from poolproof.reports.rows.rejudge import number

_MOST_VALUES = 12
"""Most values of a window in a finding."""

_MOST_PLACES = 8
"""Most places along an axis in a finding."""


def right_rule(
    planes: NDArray, axes: Sequence[Axis], out: NDArray, indices: Int64, declared: ForwardRule, wrong: int
) -> str:
    """Return a rule that differs in one trait and makes all outputs right, preferably one that leaves nothing open.

    The plane ``wrong`` has a wrong output. It is judged first, since hardly a rule makes it right.
    """
    rules = [replace(declared, **{trait: value}) for trait, value in TRAITS.values()]
    out, indices = (array.reshape(len(planes), -1) for array in (out, indices))
    for rule in sorted(rules, key=lambda rule: rule.leaves_open):
        parts = (slice(wrong, wrong + 1), slice(None))
        if rule != declared and not any(
            judge_forward(planes[part], axes, out[part], indices[part], rule).any() for part in parts
        ):
            return f"declared {declared}; all of it would be right as {rule}"
    return ""


def window_text(visited: Sequence[Sequence[int]], values: Float64) -> str:
    """Return the coordinates that a window visits along each axis, evenly spaced, and the values of a small one."""
    texts = [str(cells) if len(cells) <= _MOST_PLACES else _shortened(cells) for cells in visited]
    held = f" and holds [{', '.join(map(number, values.tolist()))}]" if 0 < len(values) <= _MOST_VALUES else ""
    return f"its window visits coordinates {' x '.join(texts)}{held}"


def _shortened(cells: Sequence[int]) -> str:
    return f"[{cells[0]}, {cells[1]}, ..., {cells[-1]}]"
