"""What is special about a call, in words: the classes that an implementation may refuse as a whole.

A run has to make calls of every class that it draws; one that is only ever refused, though no document says that it
may be, is a gap. One table says which classes there are.
"""

from __future__ import annotations

from collections.abc import Callable

from poolproof.suites.cases.case import Case

_CLASSES: dict[str, Callable[[Case], bool]] = {
    "padding": lambda case: case.attributes.is_padded,
    "dilation": lambda case: case.attributes.is_dilated,
    "ceil_mode": lambda case: case.attributes.rounds_up,
    "stride": lambda case: case.attributes.has_own_stride(case.api.spatial_rank),
    "empty window": Case.has_empty_window,
    "unbatched": lambda case: len(case.shape) == case.api.spatial_rank + 1,
    "empty tensor": lambda case: 0 in case.shape,
    "layouts": lambda case: bool(case.layouts),
    "deterministic": lambda case: case.deterministic,
}


def classes_of(case: Case) -> list[str]:
    """The classes that a case is in, in the order of the table."""
    return [name for name, holds in _CLASSES.items() if holds(case)]
