"""Export of cases to other tools, as far as a format can express them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from poolproof.reports.rows.plugins import raised
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.lists import FORMATS, ListFormat, NotExpressible

DUPLICATE = "the same case again"


def export_rows(chosen: ListFormat, cases: Iterable[Case]) -> tuple[list[object], Counter[str]]:
    """Return (rows of the cases that the format can express, number of the others by reason)."""
    rows: list[object] = []
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            left_out[DUPLICATE] += 1
            continue
        seen.add(case.id)
        try:
            rows.append(chosen.carrying(chosen.write(case, len(rows)), case))
        except NotExpressible as reason:
            left_out[str(reason)] += 1
    return rows, left_out


@contextmanager
def format_errors(name: str) -> Iterator[None]:
    """Turn what a package's format raises into `BadInput`; what a built-in one raises is a fault of this suite."""
    try:
        yield
    except Exception as error:
        if name in FORMATS:
            raise
        raise BadInput(f"case list format {name!r} cannot write these cases: {raised(error)}") from error
