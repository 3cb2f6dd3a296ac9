"""Facts of a row's call: its windows, its layouts, and the features for conditions.

A line without a case of values (a call of the contract, or damaged) has no geometry. No condition holds about a feature
that a row lacks, such as the kernel of an adaptive call, or the clause of a call of values. Of features that separate
the same rows, conditions name the first one made here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod
from typing import Any

import numpy as np

from poolproof.references.formats import FORMATS
from poolproof.references.geometry import expand, pooled_size
from poolproof.references.indices import INDEX_DTYPES
from poolproof.references.layouts import MemoryLayout
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Adaptive, Lengths
from poolproof.reports.rows.schema import Row

Value = bool | int | str
Feature = tuple[str, Value]

READ_OF_CALL = ("case", "operator", "dtype", "index_dtype", "product", "gradient", "indices", "values")
"""Columns from which `call_features` are made."""

READ = (*READ_OF_CALL, "overlapping", "classes", "data", "clause", "route", "k_cells")
"""Columns from which features are made; `dilated`, `padded` and others follow from the case."""

_DETAIL = "route's "
_RECIPE = " recipe"
_AXES = "DHW"

_NUMBERS = ("{} with NaN", "{} with infinities", "{} with -0.0", "subnormal {}")
INDEX_BITS = (7, 8, 11, 15, 16)
"""Bits of integers that int8, uint8 or bfloat16, float16, int16 and uint16 represent exactly."""

DATA: Mapping[str, tuple[str, ...]] = {
    "values": (*(word.format("values") for word in _NUMBERS), "equal values"),
    "forward": ("ties",),
    "backward": (
        *(word.format("gradients") for word in _NUMBERS),
        *("several windows on one cell", "inexact sums", "opposite infinities in one cell"),
        "indices other than the forward's",
        *(f"an index past 2^{bits}" for bits in INDEX_BITS),
    ),
}
"""Words of the column ``data``: of self, and by the operator's direction."""

MASKING = tuple(word.format(tensor) for tensor in ("values", "gradients") for word in _NUMBERS)
"""Words of data that can hide a fault: they say where it does not show, not what causes it."""

_TAGGED = "nhwc"
# names of layouts with elements that share memory
_SHARING = ("expanded", "overlapping", "nhwc_expanded")
# with an offset of their own
_OFFSET = ("contiguous_slice", "channels_last_slice", "narrowed_", "nhwc_narrowed_")
# without gaps
_DENSE = ("contiguous", "contiguous_slice", "odd_units", "nhwc_transposed")
_PACKED = ("packed", "packed, offset")
_GAPPED = re.compile(r"(?:stepped|narrowed)_(?P<axis>[ncdhw])\d?|sliced|padded_rows")
_KINDS = {"odd_units": "odd units", "channels_last": "channels last", "channels_last_slice": "channels last"}
"""Kinds of layouts that are not packed, have no gap along an axis, and exchange no axes."""
GAP = "gap along "


@dataclass(frozen=True)
class Geometry:
    """Axes ([N,] C) before the spatial ones, and lengths along each of those; adaptive windows have no ``kernel``."""

    leading: Lengths
    size: Lengths
    count: Lengths
    kernel: Lengths = ()
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    ceil_mode: bool = False

    @property
    def is_adaptive(self) -> bool:
        return not self.kernel

    @cached_property
    def planes(self) -> int:
        return prod(self.leading)

    @cached_property
    def reach(self) -> Lengths:
        """Cells from the first to the last of a window: dilation (kernel - 1) + 1."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @cached_property
    def beyond(self) -> Lengths:
        """Cells by which the last window passes the end of the input; negative if cells remain."""
        axes = zip(self.count, self.stride, self.padding, self.reach, self.size, strict=True)
        return tuple((count - 1) * s - p + reach - size for count, s, p, reach, size in axes)

    @cached_property
    def added(self) -> Lengths:
        """Windows that ceil_mode adds along each axis: 1, 0, or -1 if the added one is dropped."""
        if not self.ceil_mode:
            return (0,) * len(self.size)
        axes = zip(self.size, self.stride, self.padding, self.reach, self.count, strict=True)
        spans = [(s, size + 2 * p - reach, count) for size, s, p, reach, count in axes]
        return tuple(count - span // s - 1 or -(span % s > 0) for s, span, count in spans)

    @cached_property
    def taps(self) -> int:
        """Cells of the largest window, including those outside the plane."""
        return prod(self.kernel) if self.kernel else prod(map(_most_over, self.size, self.count))

    @cached_property
    def meeting(self) -> int:
        """Most windows that can have a cell in common."""
        if self.is_adaptive:
            return prod(map(_most_over, self.count, self.size))
        axes = zip(self.kernel, self.stride, self.dilation, self.count, strict=True)
        steps = [(k, s, d, count, gcd(s, d)) for k, s, d, count in axes]
        return prod(max(min(-(-k * g // s), -(-count * g // d)), 1) for k, s, d, count, g in steps)


def _most_over(parts: int, cells: int) -> int:
    """Return how many of ``parts``, spread over ``cells`` as adaptive windows are, can share one cell."""
    return 1 - (gcd(parts, cells) - parts) // cells if cells else 0


@dataclass(frozen=True)
class TensorLayout:
    """Layout of one tensor, by its name and the offset after it."""

    text: str

    @property
    def name(self) -> str:
        return self.text.partition("+")[0]

    @property
    def has_gaps(self) -> bool:
        """Whether its elements are not consecutive in memory."""
        return self.name not in _DENSE

    @property
    def has_offset(self) -> bool:
        return "+" in self.text or self.name.startswith(_OFFSET)

    @property
    def repeats(self) -> bool:
        """Whether several elements share memory."""
        return self.name.startswith(_SHARING)

    @property
    def kind(self) -> str:
        """The kind of the usual layouts; a narrowed axis counts as a gap, not as an offset."""
        if self.repeats:
            return "elements shared"
        name = self.name.removeprefix(f"{_TAGGED}_")
        if gapped := _GAPPED.fullmatch(name):
            return f"{GAP}{(gapped['axis'] or 'w').upper()}"
        is_packed = name in (_TAGGED, "contiguous", "contiguous_slice")
        return _KINDS.get(name, _PACKED[self.has_offset] if is_packed else "axes exchanged")


def read_case(line: Any) -> Mapping[str, Any]:
    """Return the JSON object of a `case`; empty if there is none."""
    try:
        return _mapping(json.loads(line))
    except (TypeError, ValueError, RecursionError):
        return {}


def geometry_of(operator: str, case: Mapping[str, Any]) -> Geometry | None:
    """Return the geometry of a call of values; None for a call of the contract, and for invalid fields."""
    try:
        called = OPERATORS[operator]
        rank, shape = called.spatial_rank, tuple(case["shape"])
        leading, size = shape[:-rank], shape[-rank:]
        if called.windows is Adaptive:
            return Geometry(leading, size, tuple(case["output_size"]))
        kernel = expand(case["kernel_size"], rank)
        stride = expand(case.get("stride") or (), rank, kernel)
        padding = expand(case.get("padding") or (), rank, (0,))
        dilation = expand(case.get("dilation") or (), rank, (1,))
        ceil_mode = bool(case.get("ceil_mode"))
        axes = zip(size, kernel, stride, padding, dilation, strict=True)
        count = tuple(pooled_size(*axis, ceil_mode) for axis in axes)
        return Geometry(leading, size, count, kernel, stride, padding, dilation, ceil_mode)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def feature_table(rows: Iterable[Row]) -> dict[str, list[Value | None]]:
    """Return the values of each feature in all rows, None in rows without it."""
    records = [_features_of(*(_hashable(row.get(name)) for name in READ)) for row in rows]
    names = dict.fromkeys(name for record in records for name in record)
    is_flag = {name: {record.get(name, 0) for record in records} <= {0, 1} for name in names}
    # numbers of cores or tiles follow from call and machine: of a route's details only flags are features
    kept = [name for name in names if is_flag[name] or not name.startswith(_DETAIL)]
    kept = [name for name in kept if not name.endswith(_RECIPE)]  # recipes are ours only: `DATA` describes their values
    return {name: [record.get(name) for record in records] for name in kept}


def features_of(row: Row) -> dict[str, Value]:
    """Return the features of one row, which may lack columns: an unjudged case has no features of an answer."""
    return dict(_features_of(*(_hashable(row.get(name)) for name in READ)))


def call_features(row: Row) -> dict[str, Value]:
    """Return those features of a call from which `factors` makes classes, and others that cost little."""
    return dict(_features(dict.fromkeys(READ) | {name: row.get(name) for name in READ_OF_CALL}, is_brief=True))


@lru_cache(4096)
def _features_of(*values: Any) -> Mapping[str, Value]:
    """Return the features of a row with these values in the columns `READ`, from a cache of some kilobytes."""
    return dict(_features(dict(zip(READ, values, strict=True))))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _features(row: Mapping[str, Any], *, is_brief: bool = False) -> Iterator[Feature]:
    case = read_case(row["case"])
    windows = geometry_of(_text(row["operator"]), case)
    if windows is not None:
        operator = OPERATORS[row["operator"]]
        yield from _call(row, case, operator)
        if row["overlapping"] is not None:
            yield "overlapping windows", bool(row["overlapping"])
        yield from _window_flags(windows)
        yield from _lengths(windows)
        layouts = {tensor: TensorLayout(str(text)) for tensor, text in _mapping(case.get("layouts")).items()}
        if not is_brief:
            yield from _bytes_of_tensors(operator, row, windows)
        yield from _layouts(operator, layouts)
        if not is_brief:
            yield from _gaps(operator, layouts, windows)
        if isinstance(row["data"], tuple):
            yield from ((word, word in row["data"]) for word in DATA["values"] + DATA[operator.direction])
    yield from ((name, text) for column, name in _WORDS.items() if (text := _text(row[column])))
    if windows is None and case:
        yield "a legal call", not _text(row["clause"])
        yield from _low_level(case)
    yield from _route(_text(row["route"]))


def _call(row: Mapping[str, Any], case: Mapping[str, Any], operator: Operator) -> Iterator[Feature]:
    yield "a backward", operator.is_backward
    yield "a 3-D operator", operator.spatial_rank == 3
    yield "half precision", _bytes(_text(row["dtype"])) == 2
    yield "a batch axis", len(case["shape"]) == operator.spatial_rank + 2
    yield "deterministic mode", case.get("deterministic") is True
    yield "an empty tensor", 0 in case["shape"]
    yield "scale", int(case.get("scale") or 0)
    if "kernel_size" in case:
        length = len(case.get("stride") or ())
        yield "stride list", ("empty", "one value")[length] if length < 2 else "a value per axis"
    classes, counts = row["classes"], row["k_cells"]  # a table's missing list is not a tuple
    yield "a window without cells", isinstance(classes, tuple) and "empty window" in classes
    if isinstance(counts, tuple) and counts:
        most = max((number for number, count in enumerate(counts) if count), default=0)
        yield "gradients in one cell", 1 if most == 0 else 2 ** (most - 1) + 1


def _window_flags(windows: Geometry) -> Iterator[Feature]:
    yield "adaptive windows", windows.is_adaptive
    yield "one window per plane", prod(windows.count) == 1
    yield "several windows per plane", prod(windows.count) > 1
    yield "lengths that differ by axis", len(set(windows.size)) > 1
    yield "H unlike W", windows.size[-2] != windows.size[-1]
    yield "windows per row unlike W", windows.count[-1] != windows.size[-1]
    if windows.is_adaptive:
        sizes = list(zip(windows.size, windows.count, strict=True))
        yield "an output longer than the input", any(count > size for size, count in sizes)
        yield "an output that divides the input", all(count and size % count == 0 for size, count in sizes)
        yield "window bounds that float32 rounds", any(_rounded_in_float32(*axis) for axis in sizes)
        return
    kernel, stride, reach = windows.kernel, windows.stride, windows.reach
    axes = list(zip(kernel, stride, reach, windows.dilation, strict=True))
    yield "dilation > 1", any(k > 1 and d > 1 for k, _, _, d in axes)
    yield "padding", any(windows.padding)
    yield "ceil_mode", windows.ceil_mode
    yield "stride < kernel", any(s < k for k, s, _, _ in axes)
    yield "stride < dilated kernel", any(s < r for _, s, r, _ in axes)
    blind = all(k <= s for k, s, _, _ in axes) and any(s < r for _, s, r, _ in axes)
    yield "kernel <= stride < dilated kernel", blind
    yield "stride > kernel", any(s > k for k, s, _, _ in axes)
    yield "a kernel > stride that is no multiple of it", any(k > s and k % s for k, s, _, _ in axes)
    yield "a kernel of one cell", prod(kernel) == 1
    half_padded = any(k % 2 == 0 and p == k // 2 for k, p in zip(kernel, windows.padding, strict=True))
    yield "an even kernel padded by half of it", half_padded
    yield "a window that ceil_mode adds", 1 in windows.added
    yield "a window that ceil_mode drops", -1 in windows.added
    yield "a window beyond the input's end", any(more > 0 for more in windows.beyond)
    yield "a window beyond the row's end", windows.beyond[-1] > 0
    yield "cells behind the last window", any(more < 0 for more in windows.beyond)
    for name in ("stride", "kernel", "padding", "dilation"):
        yield f"a {name} that differs by axis", len(set(getattr(windows, name))) > 1


@lru_cache(4096)
def _rounded_in_float32(size: int, count: int) -> bool:
    """Tell whether bounds of adaptive windows change if the ratio of the lengths is a float32, as in kernels."""
    windows = np.arange(count + 1, dtype=np.int64)
    products = windows.astype(np.float32) * (np.float32(size) / np.float32(count or 1))
    first, last, exact = np.floor(products[:-1]), np.ceil(products[1:]), windows * size
    return bool((first != exact[:-1] // (count or 1)).any() or (last != -(-exact[1:] // (count or 1))).any())


def _lengths(windows: Geometry) -> Iterator[Feature]:
    planes, plane, row = windows.planes, prod(windows.size), windows.count[-1]
    yield "N*C", planes
    yield "C", windows.leading[-1]
    yield "N", windows.leading[0] if len(windows.leading) > 1 else 1
    yield from _by_axis("", windows.size)
    yield "plane cells", plane
    yield "elements", planes * plane
    yield "windows per row", row
    yield "windows per plane", prod(windows.count)
    yield "windows", planes * prod(windows.count)
    for name in ("kernel", "stride", "padding", "dilation"):
        if lengths := getattr(windows, name):
            yield f"largest {name}", max(lengths)
            yield from _by_axis(f"{name} along ", lengths)
    yield "kernel cells", windows.taps
    yield "kernel cells * windows per plane", windows.taps * prod(windows.count)
    if windows.kernel:
        yield "dilated kernel cells", prod(windows.reach)
        yield "stride product", prod(windows.stride)
    yield "windows over one cell", windows.meeting
    counts = {"N*C": planes, "windows per row": row, "windows per plane": prod(windows.count)}
    yield from (remainder for name, count in counts.items() for remainder in _remainders(name, count))
    yield "C mod 2", windows.leading[-1] % 2
    yield "W mod 8", windows.size[-1] % 8
    yield "plane cells mod 16", plane % 16
    yield "elements mod 16", planes * plane % 16


def _remainders(name: str, count: int) -> Iterator[Feature]:
    """Yield the remainders of a count by the widths of vectors, blocks and transfers."""
    yield from ((f"{name} mod {divisor}", count % divisor) for divisor in _DIVISORS)


_DIVISORS = (8, 16, 32, 64)


def _by_axis(name: str, lengths: tuple[int, ...]) -> Iterator[Feature]:
    for axis, length in zip(_AXES[-len(lengths) :], lengths, strict=True):
        yield f"{name}{axis}", length


def _bytes_of_tensors(operator: Operator, row: Mapping[str, Any], windows: Geometry) -> Iterator[Feature]:
    """Yield remainders of the bytes of each tensor that is written, and their largest remainder."""
    pooled, indices = (*windows.leading, *windows.count), _INDEX_BYTES.get(_text(row["index_dtype"]), 0)
    shapes = {
        operator.pooled: pooled,
        "indices": operator.indices.tensor_shape(windows.leading, windows.count, windows.taps),
    }
    sizes = dict[str, int]()
    for tensor in operator.outputs:
        width = indices if tensor == "indices" else _bytes(_text(row["dtype"]))
        if width:
            sizes[tensor] = prod(shapes.get(tensor, (*windows.leading, *windows.size))) * width
            yield from _remainders(f"bytes of {tensor}", sizes[tensor])
    for divisor in _DIVISORS if sizes else ():
        yield f"bytes of an output mod {divisor}", max(size % divisor for size in sizes.values())


_INDEX_BYTES = {name: np.dtype(name).itemsize for name in INDEX_DTYPES}


def _layouts(operator: Operator, layouts: Mapping[str, TensorLayout]) -> Iterator[Feature]:
    for tensor in operator.tensors:
        layout = layouts.get(tensor, TensorLayout("contiguous"))
        one, an = ("", "") if tensor == "indices" else ("a ", "an ")
        yield f"{one}strided {tensor}", layout.has_gaps
        yield f"an offset of {tensor}", layout.has_offset
        yield f"{an}expanded {tensor}", layout.repeats
        yield f"arrangement of {tensor}", layout.kind
    yield "a strided input", any(layouts[tensor].has_gaps for tensor in operator.inputs if tensor in layouts)
    yield "a strided output", any(layouts[tensor].has_gaps for tensor in operator.outputs if tensor in layouts)
    yield "a tensor that is not contiguous", bool(layouts)
    yield "an expanded tensor", any(layout.repeats for layout in layouts.values())
    yield "tensors tagged NHWC", any(layout.name.startswith(_TAGGED) for layout in layouts.values())


def _gaps(operator: Operator, layouts: Mapping[str, TensorLayout], windows: Geometry) -> Iterator[Feature]:
    words = (*_LEADING[-len(windows.leading) :], *_SPATIAL[-len(windows.size) :])
    for kind, tensors in (("an input", operator.inputs), ("an output", operator.outputs)):
        steps = [_steps(operator, windows, tensor, layouts[tensor].text) for tensor in tensors if tensor in layouts]
        for word, *own in zip(words, *steps, strict=True):
            yield f"a gap between {word} of {kind}", any(step > filled for step, filled in own)
            yield f"{word} of {kind} not side by side", any(step != filled for step, filled in own)
        within_planes = [step for own in steps for step, _ in own[-len(windows.size) :]]
        yield f"cells of a plane of {kind} repeated", 0 in within_planes


_LEADING, _SPATIAL = ("batch items", "planes"), ("slices", "rows", "cells")


def _steps(operator: Operator, windows: Geometry, tensor: str, layout: str) -> list[tuple[int, int]]:
    """Return for each axis the distance of neighbours, and the length of the elements of one of them.

    Both are 1 if there are no neighbours. With a tag the axes are in its order, channels last.
    """
    shape = windows.leading + (windows.count if tensor in (operator.pooled, "indices") else windows.size)
    try:
        strides = MemoryLayout.parse(layout).place(shape, operator.spatial_rank).strides
    except ValueError:  # a damaged line
        return [(1, 1)] * len(shape)
    order = list(range(len(shape)))
    if layout.startswith(_TAGGED):
        order.append(order.pop(len(windows.leading) - 1))
    filled = dict(zip(order, [*(shape[axis] * strides[axis] for axis in order[1:]), 1], strict=True))
    return [(strides[axis], filled[axis]) if size > 1 else (1, 1) for axis, size in enumerate(shape)]


_WORDS = {
    "operator": "operator",
    "dtype": "dtype",
    "index_dtype": "index dtype",
    **{column: f"{column}{_RECIPE}" for column in ("gradient", "indices", "values")},
    "clause": "clause",
    "product": "product",
}


def _low_level(case: Mapping[str, Any]) -> Iterator[Feature]:
    """Yield the features of a low-level call's tensors and lists."""
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
    """Parse a route's first words, and the following numbers: ``template; cores 3; scratch 1``."""
    template, *details = (part.strip() for part in route.split(";"))
    if template:
        yield "route", template
    for detail in details:
        name, _, value = detail.rpartition(" ")
        if name and value.isdecimal():
            yield f"{_DETAIL}{name}", int(value)


def _bytes(dtype: str) -> int:
    """Return the bytes of an element; 0 for an unknown dtype."""
    return FORMATS[dtype].dtype.itemsize if dtype in FORMATS else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
