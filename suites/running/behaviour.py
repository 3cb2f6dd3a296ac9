"""What of an implementation's behaviour a case shows, and how much of it is not seen yet.

A behaviour is two facts about a call that came together in an operator: its route, clause, dtypes, recipes, layouts,
how its windows lie, and how large it is, in powers of two and beside them. That two facts together make most faults
show is an observation (Kuhn, Wallace and Gallo, IEEE TSE 30(6), 2004). How likely the next behaviour of a block is one
that nobody saw is what Good and Turing estimate: the share of those that were seen once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from poolproof.references.geometry import pooled_size
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.schema import Row

_SMALLEST_LIMIT = 15
"""Below it, numbers beside a power of two are not told apart."""

_WORDS = ("clause", "aspect", "dtype", "index_dtype", "follows", "gradient", "indices", "values")
_FLAGS = ("batched", "overlapping", "deterministic")


_NUMBERS = (1 << 22) - 3
"""A prime, of which as many behaviours are told apart: a run of days sees a million, and takes a few for others."""

Behaviours = NDArray[np.int64]
"""What a case shows, each by its number, in their order."""


def behaviours(row: Row) -> Behaviours:
    """Those that a row shows, by numbers that every process gives them."""
    facts = np.array([_number(fact) for fact in _facts(row)], np.int64)
    first, second = (0, slice(1, None)) if row.get("planes") is None else _pairs(len(facts))
    return np.unique((facts[first] * 31 + facts[second] * 17 + _number(row["operator"])) % _NUMBERS)


_DOUBT = 8.0
"""Cases that weigh as much as the belief that all of a block is new: the first are the simplest, and unlike others."""


class Sightings:
    """Which behaviours were seen, by all blocks of a run; blocks go by their names."""

    def __init__(self) -> None:
        self._times = np.zeros(_NUMBERS, np.uint8)
        """How often each was seen, 2 for more often."""
        self._seer = np.zeros(_NUMBERS, np.int32)
        """The number of the block that saw it first."""
        self._blocks: dict[str, int] = {}
        self._singles: Counter[int] = Counter()
        self._all: Counter[int] = Counter()
        self._cases: Counter[int] = Counter()

    def new_to(self, shown: Sequence[Behaviours]) -> tuple[list[int], list[int]]:
        """Of what some cases show, what nobody saw before, and what is seen for the second time."""
        numbers, counts = np.unique(np.concatenate(shown), return_counts=True)
        times = self._times[numbers]
        is_new = times == 0
        return numbers[is_new].tolist(), numbers[(times == 1) | (is_new & (counts > 1))].tolist()

    def note(self, block: str, first: Sequence[int], again: Sequence[int], count: int, cases: int) -> None:
        """Learn what some ``cases`` of a block showed, ``count`` behaviours in all: see `new_to`."""
        number = self._blocks.setdefault(block, len(self._blocks))
        self._times[first] = 1
        self._seer[first] = number
        self._singles[number] += len(first)
        singles = np.array(again, np.int64)[self._times[again] == 1]
        self._times[singles] = 2
        for seer, lost in zip(*np.unique(self._seer[singles], return_counts=True), strict=True):
            self._singles[int(seer)] -= int(lost)
        self._all[number] += count
        self._cases[number] += cases

    def unseen(self, block: str) -> float:
        """The share of what the next case of a block shows that nobody saw: 1 of a block that was not asked yet, what
        Good and Turing estimate of one that was asked often.
        """
        number = self._blocks.get(block, -1)
        cases, seen_once = self._cases[number], self._singles[number] / max(self._all[number], 1)
        return (_DOUBT + cases * seen_once) / (_DOUBT + cases)


@cache
def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of every two of so many."""
    first, second = np.triu_indices(count, 1)
    return first, second


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
