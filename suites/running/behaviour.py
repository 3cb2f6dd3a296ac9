"""What of an implementation's behaviour a case shows, and how much of it is not seen yet.

A behaviour is two facts about a call that came together in an operator: its route, clause, dtypes, recipes, layouts,
how its windows lie, and how large it is, in powers of two and beside them. That two facts together make most faults
show is an observation (Kuhn, Wallace and Gallo, IEEE TSE 30(6), 2004). How likely the next behaviour of a block is one
that nobody saw is what Good and Turing estimate: the share of those that were seen once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any
from zlib import crc32

from poolproof.references.geometry import pooled_size
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.schema import Row

_SMALLEST_LIMIT = 15
"""Below it, numbers beside a power of two are not told apart."""

_WORDS = ("clause", "aspect", "dtype", "index_dtype", "follows", "gradient", "indices", "values")
_FLAGS = ("batched", "overlapping", "deterministic")


Behaviours = frozenset[int]
"""What a case shows."""


def behaviours(row: Row) -> Behaviours:
    """Those that a row shows, by numbers that every process gives them."""
    operator = _number(row["operator"])
    facts = [_number(fact) for fact in _facts(row)]
    if row.get("planes") is None:
        clause = facts.pop(0)
        return frozenset((clause * 31 + fact * 17 + operator) & 0xFFFFFFFF for fact in facts)
    return frozenset((first * 31 + second * 17 + operator) & 0xFFFFFFFF for first, second in combinations(facts, 2))


class Sightings:
    """Which behaviours were seen, by all blocks of a run; blocks go by their names."""

    def __init__(self) -> None:
        self._alone: dict[int, str] = {}
        self._seen: set[int] = set()
        self._singles: Counter[str] = Counter()
        self._all: Counter[str] = Counter()

    def new_to(self, shown: Iterable[Iterable[int]]) -> tuple[list[int], list[int]]:
        """Of what some cases show, what nobody saw before, and what was seen once until now."""
        counts = Counter(behaviour for case in shown for behaviour in case)
        first = [behaviour for behaviour in counts if behaviour not in self._seen]
        new = set(first)
        again = [each for each, count in counts.items() if each in self._alone or (each in new and count > 1)]
        return first, again

    def note(self, block: str, first: Iterable[int], again: Iterable[int], count: int) -> None:
        """Learn what some cases of a block showed, ``count`` behaviours in all: see `new_to`."""
        for behaviour in first:
            self._seen.add(behaviour)
            self._alone[behaviour] = block
            self._singles[block] += 1
        for behaviour in again:
            if (owner := self._alone.pop(behaviour, None)) is not None:
                self._singles[owner] -= 1
        self._all[block] += count

    def unseen(self, block: str) -> float:
        """The share of what the next case of a block shows that nobody saw: 1 of one that showed nothing yet."""
        return (self._singles[block] + 1.0) / (self._all[block] + 1.0)


def _facts(row: Row) -> Iterator[str]:
    for name in _WORDS:
        yield f"{name} {row.get(name) or ''}"
    yield f"route {(row.get('route') or '').partition(';')[0]}"
    yield f"verdict {row['verdict']} {','.join(row.get('checks_violated') or ())}"
    case = json.loads(row["case"])
    if "api" in case:
        yield from _of_low_level_call(case)
    elif row.get("planes") is not None:
        yield from _of_call(row, case)


def _of_call(row: Row, case: Mapping[str, Any]) -> Iterator[str]:
    for name in _FLAGS:
        yield f"{name} {row.get(name)}"
    yield f"classes {' '.join(row.get('classes') or ())}"
    yield f"scale {case.get('scale', 0)}"
    yield f"planes {magnitude(row['planes'])}"
    yield f"elements {int(row['elements']).bit_length()}"
    layouts = dict(case.get("layouts", {}))
    for tensor in OPERATORS[row["operator"]].tensors:
        yield f"{tensor} {layouts.get(tensor, '').partition('+')[0]} {'+' in layouts.get(tensor, '')}"
    rank = OPERATORS[row["operator"]].spatial_rank
    size = tuple(case["shape"][-rank:])
    yield f"plane {magnitude(prod(size))}"
    yield f"row {magnitude(size[-1])}"
    yield f"equal lengths {len(set(size)) == 1}"
    yield from _of_adaptive(size, case["output_size"]) if "output_size" in case else _of_windows(size, case)


def _of_adaptive(size: Sequence[int], count: Sequence[int]) -> Iterator[str]:
    for axis, (length, windows) in enumerate(zip(size, count, strict=True)):
        whole = bool(windows) and length % windows == 0
        yield f"axis {axis} {_sign(windows, length)} {whole}"
    yield f"windows {magnitude(prod(count))}"
    yield f"windows of a row {magnitude(count[-1])}"


def _of_windows(size: Sequence[int], case: Mapping[str, Any]) -> Iterator[str]:
    rank = len(size)
    kernel = _each(case["kernel_size"], rank)
    stride = _each(case.get("stride") or kernel, rank)
    padding, dilation = _each(case.get("padding") or (0,), rank), _each(case.get("dilation") or (1,), rank)
    ceil_mode = bool(case.get("ceil_mode"))
    axes = list(zip(size, kernel, stride, padding, dilation, strict=True))
    count = [pooled_size(*axis, ceil_mode) for axis in axes]
    yield f"ceil_mode adds {count != [pooled_size(*axis, False) for axis in axes]}"
    yield f"kernel to stride {_signs(kernel, stride)}"
    yield f"reach to stride {_signs([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)], stride)}"
    yield f"reach to length {_signs([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)], size)}"
    yield f"kernel {magnitude(prod(kernel))}"
    yield f"longest kernel {magnitude(max(kernel))}"
    yield f"longest stride {magnitude(max(stride))}"
    yield f"dilation {max(dilation)}"
    yield f"padding {_sign(max(padding), 0)} {padding[-1] > 0}"
    yield f"equal kernels {len(set(kernel)) == 1}"
    yield f"windows {magnitude(prod(count))}"
    yield f"windows of a row {magnitude(count[-1])}"


def _of_low_level_call(call: Mapping[str, Any]) -> Iterator[str]:
    for name, tensor in (call.get("tensors") or {}).items():
        if tensor is None:
            yield f"{name} null"
        else:
            yield f"{name} {tensor['dtype']}"
            yield f"{name} {tensor['format']}"
            yield f"{name} rank {len(tensor['shape'])} {0 in tensor['shape']}"
    for name, values in (call.get("lists") or {}).items():
        if values is None:
            yield f"{name} null"
        else:
            yield f"{name} {len(values)} {' '.join(sorted({_class_of(value) for value in values}))}"


def _class_of(value: int) -> str:
    """Of a number in a list: its sign, and whether 31 or 32 bits hold it."""
    return f"{_sign(value, 0)}{max(abs(value).bit_length() - 30, 0) and min(abs(value).bit_length(), 33)}"


def magnitude(number: int) -> str:
    """How long a number is in bits; one at a power of two or beside it is told by itself."""
    beside = number >= _SMALLEST_LIMIT and any(_is_power(number + offset) for offset in (-1, 0, 1))
    return f"{number}" if beside else f"{number.bit_length()} bits"


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _signs(first: Sequence[int], second: Sequence[int]) -> str:
    return "".join(sorted({_sign(a, b) for a, b in zip(first, second, strict=True)}))


def _sign(first: int, second: int) -> str:
    return "<" if first < second else ">" if first > second else "="


def _each(values: Sequence[int], rank: int) -> Sequence[int]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


@lru_cache(maxsize=1 << 14)
def _number(fact: str) -> int:
    return crc32(fact.encode())
