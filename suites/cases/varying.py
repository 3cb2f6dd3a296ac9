"""Variations of a case in a single respect, by which a condition is narrowed, its neighbours, and its producers.

Each is legal, and has no window without cells unless the case has one. A neighbour shares with a case what a cache
might take for everything: shapes, attributes or dtypes; an implementation that remembers too much confuses them. A
producer is the forward that a backward takes its indices or its mask from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import Any

from poolproof.references.geometry import expand
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Adaptive, Windowed
from poolproof.suites.cases.case import Case, CaseError

MAX_ELEMENTS = 1 << 20
"""Most elements of self, and of grad_output."""

_MAX_LENGTH = 1 << 13
"""Largest length of an axis, and of its windows: the tables of an axis are as long as its windows and their taps."""

_OTHERS_ELEMENTS = 1 << 20
"""Elements of self of all cases that differ in one parameter from one that has fewer."""

_OTHER_DTYPE = {"float16": "bfloat16", "bfloat16": "float16", "float32": "float16", "float64": "float32"}
"""Another dtype for each, of the same size where there is one: a cache may take it for the same."""

_LARGE = 1 << 26
"""Bytes of a call from which on no other is made of it."""

_OFFSET = 16
"""Elements by which a tensor lies further on in its storage."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """An integer of a case that can be another from ``low`` to ``most``; ``value`` is that of the case.

    It stands in a list, ``field``, for one ``axis`` or for all.
    """

    case: Case
    name: str
    value: int
    low: int
    most: int
    field: str
    axis: int | None

    def change(self, value: int) -> Record:
        """Return its field with another value, on all axes where it is of none."""
        values = spelled(self.case)[self.field]
        return {self.field: [value if self.axis in (None, axis) else own for axis, own in enumerate(values)]}

    def with_value(self, value: int) -> Case | None:
        """Change the case to another value there; None where it is none, or too large."""
        return changed(self.case, self.change(value)) if self.low <= value <= self.most else None


def parameters(case: Case) -> list[Parameter]:
    """List the integers of a case that can change: its lengths and those of its windows."""
    rank, shape = case.api.spatial_rank, case.shape
    leading = len(shape) - rank
    most = [MAX_ELEMENTS] * leading + [_MAX_LENGTH] * rank
    names = ("N", "C", "D", "H", "W") if rank == 3 else ("N", "C", "H", "W")
    found = [
        Parameter(case, name, shape[axis], 1, most[axis], "shape", axis)
        for axis, name in enumerate(names[-len(shape) :])
    ]
    for name, values in _lists(case).items():
        low = 0 if name == "padding" else 1
        found += [Parameter(case, name, value, low, _MAX_LENGTH, name, axis) for axis, value in enumerate(values)]
        found.append(Parameter(case, name, max(values), low, _MAX_LENGTH, name, None))
    return found


def alternatives(case: Case) -> list[Record]:
    """List changes of other fields of its JSON: another flag, no layouts or one alone, and the batch axis elsewhere."""
    flags = [attribute.name for attribute in case.attributes.attributes() if attribute.is_flag]
    changes: list[Record] = [{name: not getattr(case.attributes, name)} for name in flags]
    changes += [{"layouts": {tensor: layout}} for tensor, layout in case.layouts] if len(case.layouts) > 1 else []
    changes += [{"layouts": {}}] if case.layouts else []
    return [*changes, {"shape": list(_other_batch(case))}]


def changed(case: Case, change: Record) -> Case | None:
    """Change fields of the case; None where there is none such, or one with an empty window, or it is too large."""
    record = spelled(case) | change
    if prod(record["shape"]) > MAX_ELEMENTS:
        return None
    try:
        other = Case.from_record(record)
    except CaseError:
        return None
    is_small = other.planes * other.plane_windows <= MAX_ELEMENTS
    return other if is_small and (case.has_empty_window or not other.has_empty_window) else None


def spelled(case: Case) -> Record:
    """Return its JSON as data, with a value for every axis in each list."""
    return json.loads(case.to_json()) | {name: list(values) for name, values in _lists(case).items()}


def _lists(case: Case) -> dict[str, tuple[int, ...]]:
    rank, windows = case.api.spatial_rank, case.attributes
    match windows:
        case Adaptive():
            return {"output_size": windows.output_size}
        case Windowed():
            kernel = expand(windows.kernel_size, rank)
            stride = expand(windows.stride, rank, kernel)
            padding, dilation = expand(windows.padding, rank, (0,)), expand(windows.dilation, rank, (1,))
            return {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}


def _other_batch(case: Case) -> tuple[int, ...]:
    """Add a batch axis where there is none; remove one of length 1, and put all planes in a longer one."""
    rank = case.api.spatial_rank
    if len(case.shape) == rank + 1:
        return (1, *case.shape)
    batch, channels, *spatial = case.shape
    return (channels, *spatial) if batch == 1 else (channels, batch, *spatial)


def neighbours(case: Case) -> list[Case]:
    """List the legal cases with other attributes, another layout, of an empty batch, and with other data.

    What has nothing but other data comes last: called next, a case lies at the same addresses.
    """
    laid_out, is_batched = dict(case.layouts), len(case.shape) == case.api.spatial_rank + 2
    sliced = tuple((name, "sliced") for name in sorted(case.api.strided) if name not in laid_out)
    candidates = [
        replace(case, attributes=case.attributes.other(), layouts=(), literals=()),
        replace(case, layouts=sliced),
        replace(case, shape=(0, *case.shape[1:]), layouts=(), literals=()) if is_batched else None,
        replace(case, gradient="special", values="infinities", indices="last", seed=case.seed + 1, literals=()),
    ]
    return list(filter(_is_legal, filter(None, candidates)))


def twin(case: Case) -> Case | None:
    """Find a case of the same shapes and layouts, but a kernel of another size; None where there is none."""
    if 0 in case.shape or case.literals:
        return None
    for windows in case.attributes.resized(case.api.spatial_rank):
        candidate = replace(case, attributes=windows)
        if _is_legal(candidate) and candidate.pooled_shape == case.pooled_shape and not candidate.has_bit_mask:
            return candidate
    return None


def pairs_one_apart(case: Case) -> list[tuple[Case, Case]]:
    """Pair the case with each that differs from it in exactly one parameter, in the order of their calls.

    The first input of each pair begins elsewhere in its storage: so a library prepares it anew. Orders turn with the
    seed.
    """
    found = []
    for number, other in enumerate(differing_in_one(case), 1):
        first, second = (_further_on(each, 2 * number * _OFFSET) for each in (case, other))
        if _is_legal(first) and _is_legal(second):
            found.append((first, second) if (case.seed + number) % 2 else (second, first))
    return found


def differing_in_one(case: Case) -> list[Case]:
    """List a legal case for each parameter, other flag, dtype, layout, offset and mode, in all else the same.

    Of many elements not so many, others with each seed. None of literal data, nor of an empty tensor or a large one.
    """
    if 0 in case.shape or case.literals or case.memory_bytes() >= _LARGE:
        return []
    kernel = twin(case)
    index_dtype = {"int32": "int64", "int64": "int32"}.get(case.index_dtype, case.index_dtype)
    modes = replace(case, index_dtype=index_dtype), replace(case, deterministic=not case.deterministic)
    others = [kernel, *map(partial(changed, case), alternatives(case)[:-1]), *modes]
    turn = case.seed // 2  # its last bit is the order of two calls
    others += [alike[turn % len(alike)] for alike in _of_other_numbers(case).values() if alike]
    others += [replace(case, layouts=((case.api.inputs[0], "sliced"),)), _further_on(case, _OFFSET)]
    others.append(replace(case, dtype=_OTHER_DTYPE[case.dtype]))
    found = [_with_spelling_of(case, other) for other in others if other is not None]
    legal = list(filter(_is_legal, (other for other in found if other != case)))
    most = max(_OTHERS_ELEMENTS // prod(case.shape), 1)
    first = case.seed % len(legal) if len(legal) > most else 0
    return [*legal[first:], *legal[:first]][:most]


def _of_other_numbers(case: Case) -> dict[str, list[Case]]:
    """List by parameter the cases in which it is another: on one axis or on all, or with its axes exchanged.

    A key may have but one axis of it, or lose their order.
    """
    found: dict[str, list[Case | None]] = {}
    for each in parameters(case):
        others = found.setdefault(each.name, [])
        others.append(each.with_value(each.value + 1) or each.with_value(each.value - 1))
    for name, values in _lists(case).items():
        found[name].append(changed(case, {name: values[::-1]}))
    leading, spatial = case.shape[: -case.api.spatial_rank], case.spatial_shape
    found["shape"] = [changed(case, {"shape": [*leading, *spatial[::-1]]})]
    usual = spelled(case)
    return {name: [other for other in others if other and spelled(other) != usual] for name, others in found.items()}


def _further_on(case: Case, elements: int) -> Case:
    """Let the first input begin so many elements further on in its storage."""
    name, layout = case.api.inputs[0], case.layout(case.api.inputs[0])
    laid_out = dict(case.layouts) | {name: str(layout._replace(offset=layout.offset + elements))}
    return replace(case, layouts=tuple(sorted(laid_out.items())))


def _with_spelling_of(case: Case, other: Case) -> Case:
    """Spell lists of the same values as in the case: implementations see how they are spelled."""
    values = _lists(other)
    own = {name: getattr(case.attributes, name) for name, same in _lists(case).items() if same == values[name]}
    kept = {name: spelling for name, spelling in own.items() if spelling or name != "stride" or "kernel_size" in own}
    return replace(other, attributes=replace(other.attributes, **kept))


def producers(case: Case) -> list[Case]:
    """List the forwards of this geometry and data that make what a backward takes, its own index dtype first."""
    if case.api.producer is None:
        return []
    literals = tuple((name, values) for name, values in case.literals if name == "self")
    forward = OPERATORS[case.api.producer]
    return [
        replace(case, operator=forward.name, index_dtype=index_dtype, layouts=(), literals=literals)
        for index_dtype in dict.fromkeys((case.index_dtype, "int64", "int32"))
    ]


def needs_producer(case: Case) -> bool:
    """Tell whether nobody but the implementation's own forward can make what a backward takes."""
    return "indices" in case.api.inputs and 0 not in case.shape and (case.has_bit_mask or case.has_empty_window)


def beside(case: Case, operator: Operator, dtype: str, index_dtype: str) -> Case | None:
    """Make the call of another operator that has most in common with a case; None if that call is illegal.

    A cache without the operator in its key confuses the two. Windows of another kind are as many. Three axes have a
    first one of length 1, which two axes have among the channels.
    """
    lists, leading, spatial = _lists(case), case.leading_shape, case.spatial_shape
    if operator.windows is not type(case.attributes):
        numbers = tuple(axis.windows for axis in case.axes)
        sizes = tuple(max(length // max(number, 1), 1) for length, number in zip(spatial, numbers, strict=True))
        lists = {"output_size": numbers} if operator.windows is Adaptive else {"kernel_size": sizes}
    if operator.spatial_rank > case.api.spatial_rank:
        spatial, lists = (1, *spatial), {name: (int(name != "padding"), *own) for name, own in lists.items()}
    elif operator.spatial_rank < case.api.spatial_rank:
        leading, spatial = (*leading[:-1], leading[-1] * spatial[0]), spatial[1:]
        lists = {name: own[1:] for name, own in lists.items()}
    kept = ("gradient", "indices", "values", "scale", "deterministic", "seed")
    fields = {name: getattr(case, name) for name in kept}
    for flag in (each.name for each in operator.windows.attributes() if each.is_flag):
        fields[flag] = getattr(case.attributes, flag, False)
    fields |= {"dtype": dtype, "index_dtype": index_dtype, "shape": (*leading, *spatial), **lists}
    other = Case.of(operator.name, **fields)
    return other if _is_legal(other) else None


def auxiliary_cases(case: Case) -> list[Case]:
    return [*neighbours(case), *differing_in_one(case), *chain.from_iterable(pairs_one_apart(case))]


def _is_legal(case: Case) -> bool:
    try:
        Case.from_record(json.loads(case.to_json()))
    except CaseError:
        return False
    return not case.has_empty_window and case.memory_bytes() < _LARGE
