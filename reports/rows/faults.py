"""What became of gradients, as the decoder read it from one case: the column `decoded_faults` in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from poolproof.references.operators import OPERATORS


def way_astray(operator: Any, faults: Any) -> str:
    """Say in what one way all gradients of a case went that the decoder names; empty where it names none."""
    try:
        decoded = [fault for fault in json.loads(faults) if fault["kind"] != "unreadable"]
        rank, kinds = OPERATORS[operator].spatial_rank, {fault["kind"] for fault in decoded}
        if not kinds:
            return ""
        if kinds <= {"misrouted", "copied"} and all("home" in fault for fault in decoded):
            return _elsewhere(decoded, rank) + (", and where they belong" if kinds == {"copied"} else "")
    except (TypeError, ValueError, KeyError, AttributeError):
        return ""
    ways = {"lost": "gradients do not arrive", "duplicated": "gradients arrive more than once"}
    return ways.get("".join(kinds), "gradients go astray in several ways")


def _elsewhere(faults: Sequence[Mapping[str, Any]], rank: int) -> str:
    ends = [(fault["home"], fault["cell"]) for fault in faults]
    planes = [(home[:-rank], cell[:-rank]) for home, cell in ends]
    if all(home != cell for home, cell in planes):
        first = all(not any(cell) for _, cell in planes)
        return f"gradients of {'plane k' if first else 'a plane'} arrive in {'plane 0' if first else 'another'}"
    if any(home != cell for home, cell in planes):
        return "gradients arrive in other cells and planes"
    steps = {tuple(there - here for here, there in zip(*end, strict=True))[-rank:] for end in ends}
    if len(steps) > 1:
        return "gradients arrive in other cells of their plane"
    along = [(step, axis) for step, axis in zip(steps.pop(), "DHW"[-rank:], strict=True) if step]
    ways = [f"{abs(step)} {'further' if step > 0 else 'back'} along {axis}" for step, axis in along]
    return f"gradients arrive in the wrong cell, {' and '.join(ways)}"
