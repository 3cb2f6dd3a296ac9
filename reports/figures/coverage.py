"""Coverage: the mandatory groups of a run against its rows, and the geometries that were judged, as grids of counts."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from poolproof.reports.figures.tables import WAS_SKIPPED, counts, records
from poolproof.reports.rows.features import geometry_of, read_case
from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.text import raised
from poolproof.reports.rows.verdicts import JUDGED

NEVER_ASKED = "never asked"
"""Reason for a case without a row."""

COUNTS = ("planned", "judged", "refused", "missing", "because")
"""Columns of a coverage table besides those that identify the groups."""

MandatoryGroup = Mapping[str, Any]
"""A mandatory group: columns with the value that its rows have, and ``planned``, how many of them there are."""


def group_columns(mandatory: Sequence[MandatoryGroup]) -> list[str]:
    return list(dict.fromkeys(name for group in mandatory for name in group if name != "planned"))


def group_text(line: Mapping[str, Any]) -> str:
    return " ".join(str(value) for name, value in line.items() if name not in COUNTS and value not in (None, ""))


def coverage(rows: pa.Table, mandatory: Sequence[MandatoryGroup]) -> pd.DataFrame:
    """Count per group the cases ``judged``, ``missing`` and ``refused``, with the commonest reason (``because``).

    ``refused`` counts, of those missing, the refusals that no document allows.
    """
    by_columns: dict[tuple[str, ...], list[MandatoryGroup]] = {}
    for group in mandatory:
        by_columns.setdefault(tuple(group_columns([group])), []).append(group)
    lines = []
    for columns, groups in by_columns.items():
        ended = {tuple(line[name] for name in columns): line for line in records(counts(rows, columns).reset_index())}
        skipped = rows.filter(WAS_SKIPPED).group_by([*columns, "reason"]).aggregate([([], "count_all")])
        reasons = defaultdict[tuple[Any, ...], list[tuple[int, bool, str | None]]](list)
        for row in skipped.to_pylist():  # of equally common ones the first of the alphabet; rows may have none
            text = row["reason"]
            reasons[tuple(row[name] for name in columns)].append((-row["count_all"], text is None, text))
        for group in groups:
            key = tuple(group[name] for name in columns)
            judged, refused = (ended[key][name] if key in ended else 0 for name in ("judged", "undocumented"))
            missing = max(group["planned"] - judged, 0)
            commonest = min(reasons[key])[-1] if reasons[key] else None
            because = "" if not missing else NEVER_ASKED if commonest is None else commonest
            lines.append({**group, "judged": judged, "refused": refused, "because": because, "missing": missing})
    return pd.DataFrame(lines) if lines else pd.DataFrame(columns=COUNTS)


SIZES = (1, 4, 16, 64, 256, 1024, 4096, 1 << 14, 1 << 16, 1 << 20, 1 << 24)
"""Lower ends of the classes of sizes."""

PLANES = (1, 2, 4, 16, 64, 256, 1024, 1 << 16)
KERNELS = (1, 2, 4, 9, 16, 32, 64, 256)
_RELATIONS = ("kernel > stride", "kernel = stride", "kernel < stride", "mixed", "adaptive")


@dataclass(frozen=True)
class GeometryGrid:
    """Cases by two classes: ``counts`` has a list for each of ``rows``, with a number for each of ``columns``."""

    title: str
    across: str
    columns: Sequence[str]
    down: str
    rows: Sequence[str]
    cases: Counter[tuple[str, str]]

    @property
    def counts(self) -> list[list[int]]:
        return [[self.cases[row, column] for column in self.columns] for row in self.rows]

    @property
    def most(self) -> int:
        return max((count for line in self.counts for count in line), default=0)


def grids(folder: Path) -> dict[str, list[GeometryGrid]]:
    """Return the grids of each backend, over its judged cases; none where no case has a geometry."""
    wanted = ["backend", "case", "planes", "elements"]
    rows = read_rows(folder, wanted, having("verdict", JUDGED) & pc.field("planes").is_valid())
    sizes, windows = (defaultdict[str, Counter[tuple[str, str]]](Counter) for _ in range(2))
    for backend, case, planes, elements in zip(*(rows[name].to_pylist() for name in wanted), strict=True):
        size = _size_class(SIZES, (elements or 0) // planes if planes else 0)
        sizes[backend][_size_class(PLANES, planes), size] += 1
        windows[backend].update(filter(None, [_window_class(case)]))
    cells, planes, kernels = ([_name(begin) for begin in begins] for begins in (SIZES, PLANES, KERNELS))
    across = "cells of the kernel, or windows of a plane"
    return {
        backend: [
            GeometryGrid("How large", "cells of a plane", cells, "planes (N * C)", planes, sizes[backend]),
            GeometryGrid("Which windows", across, kernels, "along the axes", _RELATIONS, windows[backend]),
        ]
        for backend in sizes
    }


def _window_class(line: str) -> tuple[str, str] | None:
    """Return (kernel against stride, cells of the kernel); for an adaptive operator the windows of a plane."""
    case = read_case(line)
    call = geometry_of(str(case.get("operator")), case)
    if call is None:
        return None
    if call.is_adaptive:
        return "adaptive", _size_class(KERNELS, prod(call.count))
    signs = {(k > s) - (k < s) for k, s in zip(call.kernel, call.stride, strict=True)}
    signs -= {0} if len(signs) > 1 else set()
    return "mixed" if len(signs) > 1 else _RELATIONS[1 - signs.pop()], _size_class(KERNELS, prod(call.kernel))


def _size_class(begins: Sequence[int], value: int) -> str:
    """Return the class that a number lies in; what is below the first lies in that."""
    return _name(begins[max(bisect(begins, value) - 1, 0)])


def _name(begin: int) -> str:
    return f"{begin}+" if begin < 4096 else f"2{raised(begin.bit_length() - 1)}+"
