"""Where wrong elements lie: in the last row, column or slice, as where a kernel goes wrong in its tails."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

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
