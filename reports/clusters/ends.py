"""Where wrong elements lie: in the first or the last row, column or slice, as what a kernel does at its ends shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

from poolproof.reports.rows.features import geometry_of, read_case
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.text import count_of

LiesAt = tuple[str, bool]
"""One end of an axis of a tensor ("the last row of grad_input"), and whether the worst element of a case lies there."""

_MOST = 0.9
_FEWEST = 5
_AXES = ("column", "row", "slice")
"""Of the innermost axis first."""


def ends_of(row: Row) -> Iterator[LiesAt]:
    """Tell of both ends of each axis longer than one whether the worst element of the gravest finding lies there.

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
            yield f"the first {axis} of {tensor}", fit and at == 0
            yield f"the last {axis} of {tensor}", fit and at == length - 1


def told(ends: Sequence[tuple[LiesAt, int]]) -> list[str]:
    """Say at which ends the worst element lies in nearly all cases; nothing where at none, or in few cases."""
    counts = Counter(dict(ends))
    known = {end: (counts[end, True], counts[end, True] + counts[end, False]) for (end, _), _ in ends}
    return [
        f"the worst element lies in {end} in {at:,} of {count_of(of, 'case')}"
        for end, (at, of) in known.items()
        if at >= _FEWEST and at >= _MOST * of
    ]
