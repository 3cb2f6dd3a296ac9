"""Where gradients went astray, as the decoder read it, and where wrong elements lie.

They lie in the last row, column or slice where a kernel goes wrong in its tails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.features import geometry_of, read_case
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of

LiesAt = tuple[str, bool]
"""The end of an axis of a tensor ("the last row of grad_input"), and whether the element that a case names lies there.

That is the worst, or the first of equally bad ones: nothing follows from its lying at the beginning of an axis.
"""

_MOST = 0.9
_FEWEST = 10
_AXES = ("column", "row", "slice")
"""Of the innermost axis first."""


def way_astray(operator: Any, faults: Any) -> str:
    """Say in what one way all gradients of a case went of which the column `decoded_faults` tells; empty of none."""
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


def ends_of(row: Row) -> Iterator[LiesAt]:
    """Tell of the end of each axis longer than one whether the element of the gravest finding lies there.

    It does not where more elements are wrong than there are at that end.
    """
    call = geometry_of(str(row["operator"]), read_case(str(row["case"])))
    try:
        finding = json.loads(row["findings"])[0]
        tensor = finding["message"].partition("[")[0]
        element, wrong = finding["element"] or (), finding["wrong"]
        lengths = {"grad_input": call.size, "out": call.count, "indices": call.count}[tensor] if call else ()
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return
    for axis, length, at in zip(_AXES, reversed(lengths), reversed(element), strict=False):
        if call and length > 1:
            fit = 0 < wrong <= call.planes * prod(lengths) // length
            yield f"the last {axis} of {tensor}", fit and at == length - 1


def told(ends: Sequence[tuple[LiesAt, int]]) -> list[str]:
    """Say at which ends the wrong element lies in nearly all cases; nothing where at none, or in few cases."""
    return [
        f"the wrong element that is named lies in {end} in {at:,} of {count_of(of, 'case')}"
        for end, at, of in _common(ends)
    ]


def place_of(ends: Sequence[tuple[LiesAt, int]]) -> str:
    """Spell the same for a sentence: ", in the last row of grad_input"."""
    return "".join(f", {'' if at == of else 'nearly always '}in {end}" for end, at, of in _common(ends))


def _common(ends: Sequence[tuple[LiesAt, int]]) -> Iterator[tuple[str, int, int]]:
    """List the ends at which the wrong element lies in nearly all cases: in how many, of how many."""
    counts = Counter(dict(ends))
    for end in dict.fromkeys(end for (end, _), _ in ends):
        at, of = counts[end, True], counts[end, True] + counts[end, False]
        if at >= _FEWEST and at >= _MOST * of:
            yield end, at, of
