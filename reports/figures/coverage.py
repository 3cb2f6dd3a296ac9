"""Coverage: the mandatory groups of a run against its rows, and the geometries that were judged, as grids of counts."""

from __future__ import annotations

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

Key = tuple[Any, ...]


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
    parts = [_coverage(rows, list(columns), groups) for columns, groups in by_columns.items()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COUNTS)


def _coverage(rows: pa.Table, columns: list[str], groups: list[MandatoryGroup]) -> pd.DataFrame:
    ended = {tuple(line[name] for name in columns): line for line in records(counts(rows, columns).reset_index())}
    reasons = defaultdict[Key, Counter[str | None]](Counter)
    for row in rows.filter(WAS_SKIPPED).group_by([*columns, "reason"]).aggregate([([], "count_all")]).to_pylist():
        reasons[tuple(row[name] for name in columns)][row["reason"]] += row["count_all"]
    lines = []
    for group in groups:
        key = tuple(group[name] for name in columns)
        judged, refused = (ended[key][name] if key in ended else 0 for name in ("judged", "undocumented"))
        missing = max(group["planned"] - judged, 0)
        own = reasons[key]  # of equally common ones the first of the alphabet; rows may have none
        commonest = min(own, key=lambda reason: (-own[reason], reason is None, reason), default=None)
        reason = "" if not missing else NEVER_ASKED if commonest is None else commonest
        lines.append({**group, "judged": judged, "refused": refused, "because": reason, "missing": missing})
    return pd.DataFrame(lines)


SIZES = (1, 4, 16, 64, 256, 1024, 4096, 1 << 14, 1 << 16, 1 << 20, 1 << 24)
"""Lower ends of the classes of sizes."""

PLANES = (1, 2, 4, 16, 64, 256, 1024, 1 << 16)
KERNELS = (1, 2, 4, 9, 16, 32, 64, 256)
_KERNEL_CELLS = "cells of the kernel, or windows of a plane"
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
    planes = "How large", "cells of a plane", _names(SIZES), "planes (N * C)", _names(PLANES)
    kernels = "Which windows", _KERNEL_CELLS, _names(KERNELS), "along the axes", _RELATIONS
    return {
        backend: [GeometryGrid(*planes, sizes[backend]), GeometryGrid(*kernels, windows[backend])] for backend in sizes
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
    below = [begin for begin in begins if begin <= value]
    return _name(below[-1] if below else begins[0])


def _names(begins: Sequence[int]) -> list[str]:
    return [_name(begin) for begin in begins]


def _name(begin: int) -> str:
    return f"{begin}+" if begin < 4096 else f"2{raised(begin.bit_length() - 1)}+"
