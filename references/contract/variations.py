"""Every way to break a call in one field, enumerated from the signature of its API and the call itself.

Nothing is written out clause by clause: every dtype and every tag for every tensor, alone and together with those that
should agree with it; ranks from 0 to 8; lengths of lists from 0 to 5; zero, -1, one too many or too few, and both ends
of int64 on each axis by itself; every pointer null; views of each tensor. `expectations` answers for all of them, so
that a clause is broken in every way that a single field can break it, and kept in every way in which it can be kept.

Two broken fields at once pin who is looked at first: every field's own breach stands beside that of every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations

from poolproof.references.contract.call import ContractCall, TensorArgument, row_major_strides
from poolproof.references.contract.changes import (
    Change,
    Changes,
    Flagged,
    Listed,
    Nulled,
    Reshaped,
    Retagged,
    Retyped,
    Viewed,
    changed,
)
from poolproof.references.contract.examples import base_template, legal_calls
from poolproof.references.contract.expectation import expectations
from poolproof.references.contract.facts import Shape
from poolproof.references.contract.running import may_ask
from poolproof.references.contract.vocabulary import DTYPES, OUT_POINTERS, TAGS, Signature
from poolproof.references.products import Product

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

RANKS = range(9)
LENGTHS = range(6)
"""Ranks of a tensor, and lengths of a list, that are tried."""

BASE = "base"
"""The name of the legal call that every example starts from."""


@cache
def models(product: Product, api: str) -> Mapping[str, ContractCall]:
    """The legal calls that may be changed, by name; where the product refuses the API, one that is legal elsewhere."""
    return legal_calls(product, api) or {BASE: base_template(api).call()}


@cache
def variations(product: Product, api: str) -> Mapping[str, tuple[Changes, ...]]:
    """What is changed in which legal call: each field by itself in one of every sort, and every two in the first.

    By the name of the legal call; no two that are made of one call are the same.
    """
    named = models(product, api)
    made = {name: single_changes(named[name]) for name in _one_of_each_sort(named)}
    made[BASE] = _distinct((*made[BASE], *_two_fields(named[BASE])))
    return {name: tuple(each for each in made[name] if _is_defined(product, named[name], each)) for name in made}


def _is_defined(product: Product, model: ContractCall, changes: Changes) -> bool:
    """Whether a source says what becomes of the call: not where a negative length passes."""
    if not any(isinstance(change, Reshaped) and min(change.shape, default=0) < 0 for change in changes):
        return True
    call = changed(model, changes)
    return may_ask(call, expectations(product, call))


@cache
def single_changes(call: ContractCall) -> tuple[Changes, ...]:
    """Every change of one field of a call without null pointers: of one argument, or of several that go together."""
    return _distinct((*_of_tensors(call), *_of_lists(call), *_of_pointers(call)))


def _distinct(changes: Iterable[Changes]) -> tuple[Changes, ...]:
    """Without those that change the same fields to the same values as earlier ones."""
    return tuple({frozenset(each): each for each in reversed(tuple(changes))}.values())[::-1]


def _one_of_each_sort(named: Mapping[str, ContractCall]) -> Iterable[str]:
    """Names of the first calls whose self has this rank, this tag and cells or none: libraries branch on those.

    Where an API has one list, calls apart in which its values are alike: a shorter list may then mean the same.
    """
    sorts: dict[tuple[object, ...], str] = {}
    for name, call in named.items():
        data = call.tensor("self")
        alike = len(call.lists) == 1 and len({*call.attribute(*call.lists)}) == 1
        sorts.setdefault((data.rank, data.format, data.is_empty, alike), name)
    return sorts.values()


# Tensors.


def _of_tensors(call: ContractCall) -> Iterator[Changes]:
    for names in together(call):
        yield from _retyped(call, names)
        yield from _retagged(call, names)
        yield from _reshaped(call, names)
    for name in call.tensors:
        yield from _viewed(name, call.tensor(name))


def together(call: ContractCall) -> tuple[tuple[str, ...], ...]:
    """Each tensor by itself; then those of one shape, those that hold values, and all: what clauses compare."""
    shapes: dict[Shape, list[str]] = {}
    for name in call.tensors:
        shapes.setdefault(call.tensor(name).shape, []).append(name)
    alike = (tuple(names) for names in shapes.values())
    groups = (*((name,) for name in call.tensors), *alike, call.signature.data, tuple(call.tensors))
    return tuple(dict.fromkeys(groups))


def _retyped(call: ContractCall, names: tuple[str, ...]) -> Iterator[Changes]:
    for dtype in DTYPES:
        yield from _unless_unchanged(call, tuple(Retyped(name, dtype) for name in names))


def _retagged(call: ContractCall, names: tuple[str, ...]) -> Iterator[Changes]:
    for tag in TAGS:
        yield from _unless_unchanged(call, tuple(Retagged(name, tag) for name in names))


def _reshaped(call: ContractCall, names: tuple[str, ...]) -> Iterator[Changes]:
    shapes = {name: call.tensor(name).shape for name in names}
    for rank in RANKS:
        yield from _unless_unchanged(call, tuple(Reshaped(name, of_rank(shapes[name], rank)) for name in names))
    for axis in range(min(map(len, shapes.values()))):
        for change in LENGTH_CHANGES if len(names) == 1 else COMMON_LENGTH_CHANGES:
            resized = (Reshaped(name, _with_value(shapes[name], axis, change)) for name in names)
            yield from _unless_unchanged(call, tuple(resized))


def of_rank(shape: Shape, rank: int) -> Shape:
    """The shape without its first axes, or behind axes of length 1."""
    return (*(1,) * (rank - len(shape)), *shape[max(len(shape) - rank, 0) :])


COMMON_LENGTH_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda length: max(length - 1, 0),
    lambda length: length + 1,
    lambda length: 0,
    lambda length: 1,
    lambda length: 2**31,
)
"""What is done to the length of one axis, in tensors that then agree."""

LENGTH_CHANGES: tuple[Callable[[int], int], ...] = (
    *COMMON_LENGTH_CHANGES,
    lambda length: -1,
    lambda length: INT64_MAX,
    lambda length: INT64_MIN,
)
"""What is done to the length of one axis of a tensor that then disagrees with others.

Tensors that agree on a negative length would pass the checks, and no source says what becomes of them.
"""


def _viewed(name: str, tensor: TensorArgument) -> Iterator[Changes]:
    """Every other cell, in a storage that has them and in one that has not; behind the end, and backwards."""
    wide = (*tensor.shape[:-1], 2 * tensor.shape[-1])
    steps = (*row_major_strides(wide)[:-1], 2)
    dense = tensor.strides
    yield (Viewed(name, steps, 0, wide),)
    yield (Viewed(name, steps, 0, tensor.storage),)
    yield (Viewed(name, steps, INT64_MAX, wide),)
    yield (Viewed(name, dense, 1, tensor.storage),)
    yield (Viewed(name, (*dense[:-1], -1), 0, tensor.storage),)


# Lists and the flag.


def _of_lists(call: ContractCall) -> Iterator[Changes]:
    for name in call.lists:
        for values in _lists_like(call.attribute(name)):
            yield from _unless_unchanged(call, (Listed(name, values),))
    if call.ceil_mode is not None:
        yield (Flagged(not call.ceil_mode),)


def _lists_like(values: Shape) -> Iterator[Shape]:
    values = values or (1,)
    for length in LENGTHS:
        yield (values * length)[:length]
    for axis in range(len(values)):
        for change in VALUE_CHANGES:
            yield _with_value(values, axis, change)
    for change in VALUE_CHANGES:
        yield (change(values[0]),)


VALUE_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda value: 0,
    lambda value: -1,
    lambda value: 1,
    lambda value: value + 1,
    lambda value: value - 1,
    lambda value: value + 2**32,
    lambda value: 2**62,
    lambda value: INT64_MAX,
    lambda value: INT64_MIN,
)
"""What is done to one value of a list; one of them is the same in 32 bits."""


# Pointers.


def _of_pointers(call: ContractCall) -> Iterator[Changes]:
    for name in pointers(call.signature):
        yield (Nulled(name),)


def pointers(signature: Signature) -> tuple[str, ...]:
    """Every argument of phase one that may be null."""
    return (*signature.tensors, *signature.lists, *OUT_POINTERS)


# Two fields at once.


def _two_fields(call: ContractCall) -> Iterator[Changes]:
    for first, second in combinations(_breaches(call), 2):
        if _touches_two(first + second):
            yield first + second


def _breaches(call: ContractCall) -> tuple[Changes, ...]:
    """One change for each field of each argument that no library takes for legal, wherever it looks."""
    found: list[Changes] = [(Nulled(name),) for name in pointers(call.signature)]
    for name in call.tensors:
        shape = call.tensor(name).shape
        found.append((Retyped(name, "BOOL"),))
        found.append((Retagged(name, "NDC1HWC0"),))
        found.append((Reshaped(name, of_rank(shape, RANKS[-1])),))
        found.append((Reshaped(name, (*shape[:-1], shape[-1] + 1)),))
    for name in call.lists:
        values = call.attribute(name)
        found.append((Listed(name, (1,) * LENGTHS[-1]),))
        found.append((Listed(name, (*values[:-1], -1)),))
    return tuple(found)


def _touches_two(changes: Changes) -> bool:
    """Whether no change undoes or hides another: a null pointer has no fields, and a list or a shape but one value."""
    first, second = changes
    return first.argument != second.argument or not _hides(first, second)


def _hides(first: Change, second: Change) -> bool:
    return isinstance(first, Nulled) or isinstance(second, Nulled) or type(first) is type(second)


def _with_value(values: Shape, axis: int, change: Callable[[int], int]) -> Shape:
    return (*values[:axis], _within_int64(change(values[axis])), *values[axis + 1 :])


def _within_int64(value: int) -> int:
    return min(max(value, INT64_MIN), INT64_MAX)


def _unless_unchanged(call: ContractCall, changes: Changes) -> Iterator[Changes]:
    """The changes that are any; nothing where none is."""
    effective = tuple(change for change in changes if change.alters(call))
    if effective:
        yield effective
