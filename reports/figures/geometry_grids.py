"""Geometries that a run judged, as two grids of counts for each backend: an empty square is what no case covers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import pyarrow.compute as pc

from poolproof.reports.rows.store import having, read_rows
from poolproof.reports.rows.verdicts import JUDGED

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
    counts: Sequence[Sequence[int]]

    @property
    def most(self) -> int:
        return max((count for line in self.counts for count in line), default=0)


def grids(folder: Path) -> dict[str, list[GeometryGrid]]:
    """Return the grids of each backend, over its judged cases; none where no case has a geometry."""
    wanted = ["backend", "case", "planes", "elements"]
    rows = read_rows(folder, wanted, having("verdict", JUDGED) & pc.field("planes").is_valid())
    sizes: dict[str, Counter[tuple[str, str]]] = {}
    windows: dict[str, Counter[tuple[str, str]]] = {}
    for backend, case, planes, elements in zip(*(rows[name].to_pylist() for name in wanted), strict=True):
        size = _size_class(SIZES, (elements or 0) // planes if planes else 0)
        sizes.setdefault(backend, Counter())[_size_class(PLANES, planes), size] += 1
        windows.setdefault(backend, Counter())[_window_class(case)] += 1
    return {backend: [_sizes(sizes[backend]), _kernels(windows[backend])] for backend in sizes}


def _sizes(counts: Counter[tuple[str, str]]) -> GeometryGrid:
    down, across = _names(PLANES), _names(SIZES)
    table = [[counts[row, column] for column in across] for row in down]
    return GeometryGrid("How large", "cells of a plane", across, "planes (N * C)", down, table)


def _kernels(counts: Counter[tuple[str, str]]) -> GeometryGrid:
    across = _names(KERNELS)
    table = [[counts[row, column] for column in across] for row in _RELATIONS]
    return GeometryGrid(
        "Which windows", "cells of the kernel, or windows of a plane", across, "along the axes", _RELATIONS, table
    )


def _window_class(case: str) -> tuple[str, str]:
    """Return (kernel against stride, cells of the kernel); for an adaptive operator the windows of a plane."""
    record = json.loads(case)
    if "output_size" in record:
        return "adaptive", _size_class(KERNELS, prod(size or 1 for size in _list(record["output_size"])))
    kernel = _list(record["kernel_size"])
    stride = _list(record.get("stride") or kernel)
    axes = max(len(kernel), len(stride))
    pairs = list(zip(_spread(kernel, axes), _spread(stride, axes), strict=True))
    signs = {(k > s) - (k < s) for k, s in pairs} - ({0} if any(k != s for k, s in pairs) else set())
    relation = "mixed" if len(signs) > 1 else _RELATIONS[1 - signs.pop()]
    rank = 3 if "3d" in str(record["operator"]).lower() else 2  # the kernel may be one number for all axes
    return relation, _size_class(KERNELS, prod(_spread(kernel, max(axes, rank))))


def _list(value: object) -> list[int]:
    return [int(number) for number in value] if isinstance(value, list) else [int(str(value))]


def _spread(values: list[int], axes: int) -> list[int]:
    return values if len(values) == axes else values * axes


def _size_class(begins: Sequence[int], value: int) -> str:
    """Return the class that a number lies in; what is below the first lies in that."""
    below = [begin for begin in begins if begin <= value]
    return _name(below[-1] if below else begins[0])


def _names(begins: Sequence[int]) -> list[str]:
    return [_name(begin) for begin in begins]


def _name(begin: int) -> str:
    if begin < 4096:
        return f"{begin}+"
    return f"2{str(begin.bit_length() - 1).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}+"
