"""Case lists of TTK, the test tool of kernels and APIs: CSV files with a row for each case, Python literals in cells.

How the tool completes a row of a kernel was read in the scripts beside the lists: self of the gradient's kernel is
integers in [-128, 127], indices are those of a forward on it, the gradient is that forward's output, whatever ranges
are listed. Of an API no script is published: its data are as listed, but indices are those of a forward on self.
Columns, defaults and spellings are those of the guides of its repository, hicann/ops-test-kit, at 3264c2b6.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from poolproof.references.layouts import TAGS
from poolproof.references.operators import OPERATORS, Operator, find_operator
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.cases.lists.fields import (
    API_ATTRIBUTES,
    RowError,
    declared_recipe,
    dtype_named,
    legal_case,
    seed_of,
    tagged_layouts,
)
from poolproof.suites.cases.lists.torch_calls import torch_attributes, torch_operator
from poolproof.suites.cases.recipes.gradients import pointed
from poolproof.suites.cases.recipes.spreads import Spread

KERNELS = {
    "max_pool_grad_with_argmax_v3": "MaxPool2dWithIndicesBackward",
    "max_pool_with_argmax_v3": "MaxPool2dWithIndices",
}
"""The operators that the library runs by a kernel of TTK's lists."""

_INDEX_DTYPES = {3: "int32", 9: "int64"}
_INPUTS = ("self", "grad_output", "indices")
_NHWC = TAGS["nhwc"]


@dataclass(frozen=True)
class ListColumns:
    """Columns that a row of one kind of lists needs, of ``dtypes`` and ``shapes``, and its names of ``attributes``."""

    operator: str
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]
    attributes: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.operator, *self.dtypes, *self.shapes


_ATTRIBUTES = {"ksize": "kernel_size", "strides": "stride", "pads": "padding", "dilation": "dilation"}
_KERNEL = ListColumns(
    "op_name",
    ("input_dtypes", "output_dtypes"),
    ("input_shapes", "output_shapes"),
    _ATTRIBUTES | {"ceil_mode": "ceil_mode"},
)
_API = ListColumns(
    "api_name", ("tensor_dtypes",), ("tensor_view_shapes",), API_ATTRIBUTES | {"outputSize": "output_size"}
)
_UNREAD = ("tensor_view_strides", "tensor_storage_shapes", "tensor_view_offsets")

_OPTIONAL = ("attributes", "input_data_ranges", "tensor_formats", "precision_tolerances", "absolute_precision")

_LEFT = -2, 2
"""The bounds that the tool takes where a list leaves them out."""

MADE = str(Spread("whole", (-128.0, 127.0)))
"""What the tool's input script fills self with."""

_ATOL = 1e-08


class Ttk(ListFormat):
    name = "ttk"
    looks = "CSV with the columns api_name or op_name, and shapes"

    def recognises(self, text: str) -> bool:
        try:
            heading = _table(text).fieldnames or ()
        except csv.Error:
            return False
        return any({form.operator, form.shapes[0]} <= set(heading) for form in (_KERNEL, _API))

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        try:
            rows = list(_table(text))
        except csv.Error as error:
            raise ValueError(str(error)) from error
        for number, row in enumerate(rows, 1):
            if any(str(cell or "").strip() for cell in row.values()):
                yield self.entry(row, label, number)

    def name_of(self, row: Any, number: int) -> str:
        return row.get("testcase_name") or str(number)

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        form = _KERNEL if _KERNEL.operator in row else _API
        cells = _cells(row, form)
        api = _operator(cells, form)
        tensors = (*_INPUTS, "grad_input") if form is _KERNEL and api.is_backward else api.tensors
        if _is_torch(cells):  # outputs are listed for calls with out= alone
            tensors = tensors[: max(len(api.inputs), len(_listed(cells, form.shapes[0])))]
        shapes = _for_each(cells, form.shapes, tensors)
        dtype, index_dtype = _dtypes(cells, form, api, tensors)
        ranges = _for_each(cells, ("input_data_ranges",), tensors[: len(api.inputs)])
        attributes, seed = _attributes(cells, form, api, index_dtype, shapes["self"]), seed_of(name)
        tags = cells.get("tensor_formats", [cells["attributes"].get("data_format")])
        channels_last = isinstance(tags, list) and tags[:1] == [_NHWC]
        planes = {tensor: _planes_first(given, channels_last, form) for tensor, given in shapes.items()}
        recipes = {
            field: declared_recipe(tensor, _bounds(tensor, ranges[tensor]), dtype, seed)
            for tensor, field in (("grad_output", "gradient"), ("self", "values"))
            if tensor in ranges
        }
        if form is _KERNEL and api.is_backward:
            recipes = {"values": MADE, "gradient": pointed.__name__}
        record = {"operator": api.name, "shape": planes["self"], "dtype": dtype, "index_dtype": index_dtype}
        case = legal_case(record | attributes | {"seed": seed} | recipes)
        case = replace(case, layouts=tagged_layouts(case)) if channels_last else case
        for tensor, listed in planes.items():
            if listed != list(case.tensor_shape(tensor)):
                raise RowError(f"{form.shapes[0]}: {tensor} is {listed}, not {list(case.tensor_shape(tensor))}")
        return case, _standard(cells) if api.is_backward else OwnStandard()


def _table(text: str) -> csv.DictReader[str]:
    """Read a table as people save it: separated by commas or, by some spreadsheets, by semicolons."""
    heading = text.partition("\n")[0]
    table = csv.DictReader(io.StringIO(text), delimiter=max(",;", key=heading.count))
    table.fieldnames = [name.strip() for name in table.fieldnames or ()]
    return table


def _cells(row: Mapping[str, Any], form: ListColumns) -> dict[str, Any]:
    """Read the cells as Python values; `RowError` names one that is none."""
    if str(row.get("is_enabled")).upper() == "FALSE":
        raise RowError("is_enabled: the list has switched this row off")
    for column in _UNREAD:
        if row.get(column) not in (None, "", "()"):
            raise RowError(f"{column}: only tensors that lie as their shapes say are read, not {row[column]:.60}")
    cells: dict[str, Any] = {"attributes": {}, "input_data_ranges": [None]}
    for column in (*form.columns, *_OPTIONAL):
        text = str(row.get(column) or "").strip()
        if not text:
            if column in form.columns:
                raise RowError(f"{column}: it is empty")
            continue
        try:
            cells[column] = text if column == form.operator else literal(text)
        except ValueError as error:
            raise RowError(f"{column}: {error}") from error
    return cells


def _is_torch(cells: Mapping[str, Any]) -> bool:
    """Tell whether the row is one of an end-to-end list, which calls a framework."""
    return not cells.get(_API.operator, "aclnn").startswith("aclnn")


def _operator(cells: Mapping[str, Any], form: ListColumns) -> Operator:
    name = cells[form.operator]
    if _is_torch(cells):
        if not name.startswith("torch"):
            raise RowError(f"api_name: poolproof reads functions of torch and aclnn, not {name}")
        return torch_operator(name)
    if form is _KERNEL and name not in KERNELS:
        raise RowError(f"op_name: the kernel {name!r} runs no operator of this family; {', '.join(KERNELS)} do")
    try:
        return OPERATORS[KERNELS[name]] if form is _KERNEL else find_operator(name)
    except KeyError as error:
        raise RowError(f"api_name: {error.args[0]}") from error


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


def _attributes(
    cells: Mapping[str, Any], form: ListColumns, api: Operator, index_dtype: str, shape: Sequence[Any]
) -> dict[str, Any]:
    given = cells["attributes"]
    if not isinstance(given, dict):
        raise RowError("attributes: they must be a dictionary")
    if _is_torch(cells):
        return torch_attributes(api, shape, (), given)
    if unknown := set(given) - set(form.attributes) if form is _API else ():
        raise RowError(f"attributes: {unknown.pop()!r} is none of {', '.join(form.attributes)}")
    number = given.get("dtype", 3)
    if form is _KERNEL and (not isinstance(number, int) or _INDEX_DTYPES.get(number) != index_dtype):
        what = f"dtype {number!r} (3 is int32, 9 int64)"
        raise RowError(f"attributes: {what} does not agree with {index_dtype!r} indices")
    missing = [name for name in _ATTRIBUTES if name not in given] if form is _KERNEL else []
    if missing:
        raise RowError(f"attributes: {missing[0]} is missing")
    return {ours: given[theirs] for theirs, ours in form.attributes.items() if theirs in given}


def _for_each(cells: Mapping[str, Any], columns: Sequence[str], tensors: Sequence[str]) -> dict[str, Any]:
    """Read what columns say of the tensors, in their order; one that is about inputs may go on with outputs."""
    given = [value for column in columns for value in _listed(cells, column)]
    if len(given) == 1 and columns[0] in ("input_data_ranges", "tensor_dtypes"):
        given *= len(tensors)
    if len(given) < len(tensors) or (len(given) > len(tensors) and "ranges" not in columns[0]):
        raise RowError(f"{columns[0]}: a value is needed for each of {', '.join(tensors)}, not {len(given)}")
    kind = {"input_data_ranges": list | None}.get(columns[0], str if "dtypes" in columns[0] else list)
    if not all(isinstance(value, kind) for value in given[: len(tensors)]):
        raise RowError(f"{columns[0]}: {given!r:.60} is no {'text' if kind is str else 'list'} for each tensor")
    return dict(zip(tensors, given, strict=False))


def _listed(cells: Mapping[str, Any], column: str) -> list[Any]:
    if not isinstance(cells[column], list):
        raise RowError(f"{column}: {cells[column]!r:.60} is no tuple")
    return cells[column]


def _dtypes(cells: Mapping[str, Any], form: ListColumns, api: Operator, tensors: Sequence[str]) -> tuple[str, str]:
    """Return the dtypes of the data and of the indices, which a list that names one dtype for all leaves open."""
    listed = _for_each(cells, form.dtypes, tensors)
    leaves_open = "indices" not in listed or len(set(listed.values())) == 1
    index_dtype = ("int64" if _is_torch(cells) else api.indices.dtypes[0]) if leaves_open else listed["indices"]
    dtype, *others = {dtype_named(form.dtypes[0], listed[tensor]) for tensor in tensors if tensor != "indices"}
    if others:
        raise RowError(f"{form.dtypes[0]}: all data are of one dtype, not {listed}")
    return dtype, index_dtype


def _bounds(tensor: str, given: Any) -> list[Any]:
    """Return a range with the tool's bounds for those left out; values behind it are to occur in the data."""
    if given and len(given) > len(_LEFT):
        raise RowError(f"{tensor}: poolproof cannot make {given[2:]} occur in the range {given[:2]}")
    return [left if bound is None else bound for bound, left in zip(given or _LEFT, _LEFT, strict=False)]


def _planes_first(shape: Sequence[Any], channels_last: bool, form: ListColumns) -> list[Any]:
    if len(shape) != 4 and (form is _KERNEL or channels_last):
        raise RowError(f"{form.shapes[0]}: {list(shape)} has {len(shape)} axes, and the kernel takes 4")
    return [shape[0], shape[3], shape[1], shape[2]] if channels_last else list(shape)


def _standard(cells: Mapping[str, Any]) -> OwnStandard:
    """Read relative tolerance and free share of the one output, and the absolute tolerance."""
    if "precision_tolerances" not in cells:
        return OwnStandard()
    try:
        ((rtol, free),) = cells["precision_tolerances"]
        atol = cells.get("absolute_precision", _ATOL)
        close = float(rtol), float(free), float(atol[0] if isinstance(atol, list) else atol)
    except (TypeError, ValueError, IndexError) as error:
        raise RowError(f"precision_tolerances: a pair of numbers is needed for the one output: {error}") from error
    if not all(0.0 <= number < inf for number in close):
        raise RowError(f"precision_tolerances: {close} are no tolerances")
    return OwnStandard(f"close {' '.join(f'{number:g}' for number in close)}", close=close)
