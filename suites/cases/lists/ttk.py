"""Case lists of TTK, the kernels' test tool: a CSV file with a row for each case, Python literals in its fields.

How the tool completes a row was read in the input script of this kernel: self is integers in [-128, 127], indices are
those of a forward on it, the gradient is that forward's output, whatever ranges are listed.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.layouts import TAGS
from poolproof.suites.cases.lists.base import OURS, ListFormat, NotExpressible, inexpressible_feature
from poolproof.suites.cases.lists.entry import (
    Entry,
    OwnStandard,
    RowError,
    declared_recipe,
    legal_case,
    seed_of,
    tagged_layouts,
)
from poolproof.suites.cases.recipes.gradients import pointed
from poolproof.suites.cases.recipes.spreads import Spread

KERNELS = {"max_pool_grad_with_argmax_v3": "MaxPool2dWithIndicesBackward"}
"""The operators that the library runs by a kernel of TTK's lists."""

_DTYPES = ("float32", "float16", "bfloat16")
_INDEX_DTYPES = {3: "int32", 9: "int64"}
_ATTRIBUTES = {"ksize": "kernel_size", "strides": "stride", "pads": "padding", "dilation": "dilation"}
_INPUTS = ("self", "grad_output", "indices")
_NHWC = TAGS["nhwc"]

MADE = str(Spread("whole", (-128.0, 127.0)))
"""What the tool's input script fills self with."""

COLUMNS = (
    "testcase_name",
    "op_name",
    "input_dtypes",
    "input_ori_shapes",
    "output_ori_shapes",
    "input_ori_formats",
    "output_ori_formats",
    "attributes",
    "input_shapes",
    "output_dtypes",
    "output_shapes",
    "input_formats",
    "output_formats",
    "input_data_ranges",
    "precision_tolerances",
    "absolute_precision",
    "soc_series",
)
_READ = ("op_name", "input_dtypes", "input_shapes", "attributes", "input_data_ranges")
"""Columns without which a row is no case."""

_CLOSE = {"float32": 1e-4, "float16": 1e-3, "bfloat16": 1e-3}
_ATOL = 1e-08


class Ttk(ListFormat):
    """TTK CSV."""

    name = "ttk"

    def recognises(self, text: str) -> bool:
        heading = next(csv.reader(io.StringIO(text)), [])
        return {"testcase_name", "op_name"} <= set(heading)

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        try:
            rows = list(csv.DictReader(io.StringIO(text)))
        except csv.Error as error:
            raise ValueError(str(error)) from error
        for number, row in enumerate(rows, 1):
            yield self.entry(row, label, number)

    def name_of(self, row: Any, number: int) -> str:
        return row.get("testcase_name") or str(number)

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        cells = _cells(row)
        if cells["op_name"] not in KERNELS:
            raise RowError(f"op_name: {cells['op_name']!r} is none of {', '.join(KERNELS)}")
        attributes = _attributes(cells)
        dtypes, shapes, ranges = map(partial(_three, cells), ("input_dtypes", "input_shapes", "input_data_ranges"))
        if dtypes[0] not in _DTYPES or dtypes[1] != dtypes[0]:
            raise RowError(f"input_dtypes: self and gradient are both one of {', '.join(_DTYPES)}, not {dtypes}")
        channels_last = attributes.pop("data_format", "NCHW") == _NHWC
        number = attributes.pop("dtype", 3)
        index_dtype = _INDEX_DTYPES.get(number) if isinstance(number, int) else None
        if index_dtype is None or index_dtype != dtypes[2]:
            problem = f"does not agree with {dtypes[2]!r} indices"
            raise RowError(f"attributes: dtype {number!r} (3 is int32, 9 int64) {problem}")
        record = attributes | {
            "operator": KERNELS[cells["op_name"]],
            "shape": _planes_first(shapes[0], channels_last),
            "dtype": dtypes[0],
            "index_dtype": index_dtype,
            "values": MADE,
            "gradient": pointed.__name__,
            "seed": seed_of(name),
        }
        case = legal_case(record)
        case = replace(case, layouts=tagged_layouts(case)) if channels_last else case
        for column, tensor, given in (("gradient", "grad_output", shapes[1]), ("indices", "indices", shapes[2])):
            if _planes_first(given, channels_last) != list(case.tensor_shape(tensor)):
                raise RowError(f"input_shapes: {column} is {list(given)}, and the windows give {case.pooled_shape}")
        for tensor, given in zip(_INPUTS[:2], ranges[:2], strict=True):
            declared_recipe(tensor, list(given), dtypes[0], case.seed)  # the tool fills in other data, but reads these
        return case, _standard(cells)

    def write(self, case: Case, number: int) -> dict[str, str]:
        if case.operator not in KERNELS.values():
            raise NotExpressible(f"no kernel of TTK's lists is known for {case.operator}")
        channels_last = case.layouts == tagged_layouts(case)
        reason = inexpressible_feature(replace(case, layouts=() if channels_last else case.layouts))
        if reason:
            raise NotExpressible(reason)
        if len(case.shape) != 4:
            raise NotExpressible("TTK's kernel takes batched tensors alone")
        if case.dtype not in _DTYPES or case.index_dtype not in _INDEX_DTYPES.values():
            raise NotExpressible(f"TTK's kernel has no {case.dtype} with {case.index_dtype} indices")
        if (case.values, case.gradient) != (MADE, pointed.__name__):
            raise NotExpressible("TTK's input script makes integers in [-128, 127], and their maxima as gradient")
        return _written(case, f"poolproof_{number:06d}", channels_last)

    def without_case(self, row: Any) -> Any:
        return {name: row.get(name) for name in COLUMNS}

    def document(self, rows: Sequence[Any]) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, (*COLUMNS, OURS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read the cells as Python values; `RowError` names one that is none."""
    cells: dict[str, Any] = {}
    for column in (*_READ, "precision_tolerances", "absolute_precision"):
        text = row.get(column)
        if not isinstance(text, str) or not text:
            if column in _READ:
                raise RowError(f"{column}: it is empty")
            continue
        try:
            cells[column] = text if column == "op_name" else literal(text)
        except ValueError as error:
            raise RowError(f"{column}: {error}") from error
    return cells


def literal(text: str) -> Any:
    """Read a Python literal in which nan and inf may stand; ValueError for anything else."""
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError(f"{text:.60} is no Python literal") from error


_NUMBERS = {"nan": float("nan"), "inf": float("inf")}


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.Tuple(items) | ast.List(items):
            return [_value(item) for item in items]
        case ast.Dict(keys, values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand)
        case _:
            raise ValueError(f"{ast.unparse(node):.60} is no Python literal")


def _attributes(cells: Mapping[str, Any]) -> dict[str, Any]:
    given = cells["attributes"]
    if not isinstance(given, dict):
        raise RowError("attributes: they must be a dictionary")
    missing = [name for name in _ATTRIBUTES if name not in given]
    if missing:
        raise RowError(f"attributes: {missing[0]} is missing")
    own = {ours: given[theirs] for theirs, ours in _ATTRIBUTES.items()}
    return own | {name: given[name] for name in ("ceil_mode", "data_format", "dtype") if name in given}


def _three(cells: Mapping[str, Any], column: str) -> list[Any]:
    """Read what a column says of self, gradient and indices."""
    given = cells[column]
    if not isinstance(given, list) or len(given) != len(_INPUTS):
        raise RowError(f"{column}: it needs a value for each of {', '.join(_INPUTS)}")
    if column != "input_dtypes" and not all(isinstance(value, list) for value in given):
        raise RowError(f"{column}: {given!r:.60} is no list of lists")
    return given


def _planes_first(shape: Sequence[Any], channels_last: bool) -> list[Any]:
    if len(shape) != 4:
        raise RowError(f"input_shapes: {list(shape)} has {len(shape)} axes, and the kernel takes 4")
    return [shape[0], shape[3], shape[1], shape[2]] if channels_last else list(shape)


def _standard(cells: Mapping[str, Any]) -> OwnStandard:
    """Read relative tolerance and free share of the one output, and the absolute tolerance."""
    if "precision_tolerances" not in cells:
        return OwnStandard()
    try:
        ((rtol, free),) = cells["precision_tolerances"]
        close = float(rtol), float(free), float(cells.get("absolute_precision", _ATOL))
    except (TypeError, ValueError) as error:
        raise RowError(f"precision_tolerances: a pair of numbers is needed for the one output: {error}") from error
    if not all(0.0 <= number < inf for number in close):
        raise RowError(f"precision_tolerances: {close} are no tolerances")
    return OwnStandard(f"close {' '.join(f'{number:g}' for number in close)}", close=close)


def _written(case: Case, name: str, channels_last: bool) -> dict[str, str]:
    assert isinstance(case.attributes, Windowed)
    tag = _NHWC if channels_last else "NCHW"
    order = (0, 2, 3, 1) if channels_last else range(4)
    shapes = tuple(tuple(case.tensor_shape(tensor)[axis] for axis in order) for tensor in _INPUTS)
    names = (attribute.name for attribute in case.api.attributes)
    passed: dict[str, Any] = dict(zip(names, case.api.passed(case.attributes), strict=True))
    number = next(number for number, dtype in _INDEX_DTYPES.items() if dtype == case.index_dtype)
    given = {theirs: list(passed[ours] or passed["kernel_size"]) for theirs, ours in _ATTRIBUTES.items()}
    lists = {theirs: values if len(values) == 2 else values * 2 for theirs, values in given.items()}
    attributes = lists | {"dtype": number, "ceil_mode": passed["ceil_mode"], "data_format": tag}
    shape, tolerance = shapes[:1], _CLOSE[case.dtype]
    ranges = ((-128, 127), (-128, 127), (0, max(case.plane_size - 1, 0)))
    cells = {
        "op_name": next(kernel for kernel, operator in KERNELS.items() if operator == case.operator),
        "input_dtypes": (case.dtype, case.dtype, case.index_dtype),
        "input_ori_shapes": shapes,
        "output_ori_shapes": shape,
        "input_ori_formats": (tag,) * 3,
        "output_ori_formats": (tag,),
        "attributes": attributes,
        "input_shapes": shapes,
        "output_dtypes": (case.dtype,),
        "output_shapes": shape,
        "input_formats": (tag,) * 3,
        "output_formats": (tag,),
        "input_data_ranges": ranges,
        "precision_tolerances": ((tolerance, tolerance),),
        "absolute_precision": _ATOL,
        "soc_series": "",
    }
    return {"testcase_name": name} | {column: str(value) for column, value in cells.items()}
