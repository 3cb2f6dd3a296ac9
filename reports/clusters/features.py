"""Features that a condition can be about: all that a row says of its call, each a word, a flag or a number with a name.

A feature that a row does not have (the kernel of an adaptive call, the clause of a call of values) is missing there,
and no condition about it holds. Of features that separate the same rows the one that is made first here is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from poolproof.reports.clusters.case_fields import (
    AXES,
    TensorLayout,
    Windows,
    cells,
    layouts_of,
    leading_of,
    read_case,
    windows_of,
)
from poolproof.reports.rows.checks import held_to
from poolproof.reports.rows.schema import Row

Value = bool | int | str
Feature = tuple[str, Value]

READ = (
    *("case", "operator", "dtype", "index_dtype", "product", "overlapping", "gradient", "indices", "values"),
    *("classes", "clause", "route", "k_cells", "aspect", "block"),
)
"""Columns that features are made from; `dilated`, `padded` and others follow from the case."""

MAX_KEPT = 4096
"""Rows whose features are remembered: they take some kilobytes each."""

_DETAIL = "route's "

_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_INPUTS = {True: ("grad_output", "self", "indices"), False: ("self",)}
_OUTPUTS = {True: ("grad_input",), False: ("out", "indices")}
"""Tensors of a backward (True) and of a forward (False)."""


def feature_table(rows: pd.DataFrame) -> dict[str, list[Value | None]]:
    """Return for each feature its value in each of the rows, None where a row does not have it."""
    columns = [map(_hashable, rows[name]) if name in rows else [None] * len(rows) for name in READ]
    records = [_features_of(*values) for values in zip(*columns, strict=True)]
    names = dict.fromkeys(name for record in records for name in record)
    is_flag = {name: {record.get(name, 0) for record in records} <= {0, 1} for name in names}
    # how many cores or tiles a route has follows from call and machine: of its details only flags are features
    kept = [name for name in names if is_flag[name] or not name.startswith(_DETAIL)]
    return {name: [record.get(name) for record in records] for name in kept}


def features_of(row: Row) -> dict[str, Value]:
    """Return the features of one row, which may lack columns: an unjudged case has none of an answer."""
    return dict(_features_of(*(_hashable(row.get(name)) for name in READ)))


@lru_cache(MAX_KEPT)
def _features_of(*values: Any) -> Mapping[str, Value]:
    """Return the features of a row with these values in the columns `READ`."""
    return dict(_features(dict(zip(READ, values, strict=True))))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | np.ndarray) else value


def _features(row: Mapping[str, Any]) -> Iterator[Feature]:
    case, operator = read_case(row["case"]), _text(row["operator"])
    windows = windows_of(operator, case)
    if windows is not None:
        yield from _call(row, case)
        yield from _window_flags(row, windows)
        yield from _lengths(windows, leading_of(operator, case), _text(row["dtype"]))
        yield from _layouts(operator, layouts_of(case))
    yield from _words(row)
    if windows is None:
        yield from _low_level(case)
    yield from _route(_text(row["route"]))
    if aspect := held_to(_text(row["aspect"]), _text(row["block"])):
        yield "aspect", aspect


def _call(row: Mapping[str, Any], case: Mapping[str, Any]) -> Iterator[Feature]:
    operator = _text(row["operator"])
    yield "a backward", "Backward" in operator
    yield "a 3-D operator", "3d" in operator
    yield "half precision", _BYTES.get(_text(row["dtype"])) == 2
    yield "a batch axis", len(case["shape"]) == (5 if "3d" in operator else 4)
    yield "deterministic mode", case.get("deterministic") is True
    yield "an empty tensor", 0 in case["shape"]
    yield "scale", int(case.get("scale") or 0)
    classes = row["classes"] if row["classes"] is not None else ()
    yield "a window without cells", "empty window" in classes if not isinstance(classes, float) else False
    counts = row["k_cells"]
    if counts is not None and not isinstance(counts, float) and len(counts):
        most = max((number for number, count in enumerate(counts) if count), default=0)
        yield "gradients in one cell", 1 if most == 0 else 2 ** (most - 1) + 1


def _window_flags(row: Mapping[str, Any], windows: Windows) -> Iterator[Feature]:
    if row["overlapping"] is not None and row["overlapping"] == row["overlapping"]:
        yield "overlapping windows", bool(row["overlapping"])
    yield "adaptive windows", windows.is_adaptive
    yield "one window per plane", cells(windows.count) == 1
    yield "several windows per plane", cells(windows.count) > 1
    yield "lengths that differ by axis", len(set(windows.size)) > 1
    yield "H unlike W", windows.size[-2] != windows.size[-1]
    yield "windows per row unlike W", windows.count[-1] != windows.size[-1]
    if windows.is_adaptive:
        sizes = list(zip(windows.size, windows.count, strict=True))
        yield "an output longer than the input", any(count > size for size, count in sizes)
        yield "an output that divides the input", all(count and size % count == 0 for size, count in sizes)
    else:
        yield from _strided_flags(windows)


def _strided_flags(windows: Windows) -> Iterator[Feature]:
    kernel, stride, reach = windows.kernel, windows.stride, windows.reach
    axes = list(zip(kernel, stride, reach, windows.dilation, strict=True))
    yield "dilation > 1", any(k > 1 and d > 1 for k, _, _, d in axes)
    yield "padding", any(windows.padding)
    yield "padding along W", windows.padding[-1] > 0
    yield "ceil_mode", windows.ceil_mode
    yield "stride < kernel", any(s < k for k, s, _, _ in axes)
    yield "stride < dilated kernel", any(s < r for _, s, r, _ in axes)
    blind = all(k <= s for k, s, _, _ in axes) and any(s < r for _, s, r, _ in axes)
    yield "kernel <= stride < dilated kernel", blind
    yield "stride > kernel", any(s > k for k, s, _, _ in axes)
    yield "a kernel > stride that is no multiple of it", any(k > s and k % s for k, s, _, _ in axes)
    yield "a kernel of one cell", cells(kernel) == 1
    yield (
        "an even kernel padded by half of it",
        any(k % 2 == 0 and p == k // 2 for k, p in zip(kernel, windows.padding, strict=True)),
    )
    yield "a window beyond the input's end", any(more > 0 for more in windows.beyond)
    yield "a window beyond the row's end", windows.beyond[-1] > 0
    yield "cells behind the last window", any(more < 0 for more in windows.beyond)
    yield "a stride that differs by axis", len(set(stride)) > 1
    yield "a kernel that differs by axis", len(set(kernel)) > 1
    yield "a dilation that differs by axis", len(set(windows.dilation)) > 1


def _lengths(windows: Windows, leading: tuple[int, ...], dtype: str) -> Iterator[Feature]:
    planes, plane, row = cells(leading), cells(windows.size), windows.count[-1]
    yield "N*C", planes
    yield "C", leading[-1]
    yield "N", leading[0] if len(leading) > 1 else 1
    yield from _by_axis("", windows.size)
    yield "plane cells", plane
    yield "elements", planes * plane
    yield "windows per row", row
    yield "windows per plane", cells(windows.count)
    yield "windows", planes * cells(windows.count)
    for name in ("kernel", "stride", "padding", "dilation"):
        if lengths := getattr(windows, name):
            yield f"largest {name}", max(lengths)
            yield from _by_axis(f"{name} along ", lengths)
    if not windows.is_adaptive:
        yield "kernel cells", cells(windows.kernel)
    for divisor in (8, 16, 32, 64):
        yield f"N*C mod {divisor}", planes % divisor
    for divisor in (8, 64):
        yield f"windows per row mod {divisor}", row % divisor
    yield "W mod 8", windows.size[-1] % 8
    yield "plane cells mod 16", plane % 16
    yield "elements mod 16", planes * plane % 16
    if dtype in _BYTES:
        yield "bytes of self mod 32", planes * plane * _BYTES[dtype] % 32


def _by_axis(name: str, lengths: tuple[int, ...]) -> Iterator[Feature]:
    for axis, length in zip(AXES[-len(lengths) :], lengths, strict=True):
        yield f"{name}{axis}", length


def _layouts(operator: str, layouts: Mapping[str, TensorLayout]) -> Iterator[Feature]:
    inputs, outputs = _INPUTS["Backward" in operator], _OUTPUTS["Backward" in operator]
    for tensor in (*inputs, *outputs):
        layout = layouts.get(tensor, TensorLayout("contiguous"))
        yield f"a strided {tensor}", layout.has_gaps
        yield f"an offset of {tensor}", layout.has_offset
        yield f"an expanded {tensor}", layout.repeats
        yield f"layout of {tensor}", layout.name
    yield "a strided input", any(layouts[tensor].has_gaps for tensor in inputs if tensor in layouts)
    yield "a strided output", any(layouts[tensor].has_gaps for tensor in outputs if tensor in layouts)
    yield "a tensor that is not contiguous", bool(layouts)
    yield "an expanded tensor", any(layout.repeats for layout in layouts.values())
    yield "tensors tagged NHWC", any(layout.name == "nhwc" for layout in layouts.values())


def _words(row: Mapping[str, Any]) -> Iterator[Feature]:
    for column, name in _WORDS.items():
        if text := _text(row[column]):
            yield name, text


_WORDS = {
    "operator": "operator",
    "dtype": "dtype",
    "index_dtype": "index dtype",
    "gradient": "gradient recipe",
    "indices": "indices recipe",
    "values": "values recipe",
    "clause": "clause",
    "product": "product",
}


def _low_level(case: Mapping[str, Any]) -> Iterator[Feature]:
    """Yield what the line of a low-level call says of its tensors and lists."""
    for name, tensor in _mapping(case.get("tensors")).items():
        yield f"a null {name}", tensor is None
        if isinstance(tensor, dict) and isinstance(tensor.get("shape"), list):
            yield f"dtype of {name}", str(tensor.get("dtype"))
            yield f"format of {name}", str(tensor.get("format"))
            yield f"rank of {name}", len(tensor["shape"])
            yield f"an empty {name}", 0 in tensor["shape"]
    for name, values in _mapping(case.get("lists")).items():
        yield f"a null {name}", values is None
        if isinstance(values, list):
            yield f"length of {name}", len(values)
            for place, value in enumerate(values, 1):
                yield f"value {place} of {name}", int(value)


def _route(route: str) -> Iterator[Feature]:
    """Parse a route's first words, and the numbers that follow: ``template; cores 3; scratch 1``."""
    template, *others = (part.strip() for part in route.split(";"))
    if template:
        yield "route", template
    for other in others:
        name, _, value = other.rpartition(" ")
        if name and value.isdecimal():
            yield f"{_DETAIL}{name}", int(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return a text; missing values of tables are none."""
    return value if isinstance(value, str) else ""
