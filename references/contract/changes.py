"""Changes of one field of one argument of a call, and pairs of them.

Variations follow from the signature of an API and the call itself, not from clauses. They are:

- every dtype and tag for every tensor, by itself and together with tensors that should agree with it
- ranks from 0 to 8, and lengths of lists from 0 to 5
- on each axis: zero, -1, one too many or too few, and both ends of int64
- every null pointer, and views of each tensor

`expectations` has an answer for all of them, so every way to break or keep a clause with one field is tried. Each
field's breach is also paired with every other, which shows the clause that is checked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, repeat

from poolproof.references.contract.builders import of_rank
from poolproof.references.contract.call import Change, Changes, ContractCall, TensorArgument, changed
from poolproof.references.contract.examples import base_template, every_other, legal_calls
from poolproof.references.contract.expectation import expectations, may_ask
from poolproof.references.contract.facts import Shape
from poolproof.references.contract.vocabulary import DTYPES, OUT_POINTERS, TAGS, Signature
from poolproof.references.products import Product


def sentence(changes: Changes) -> str:
    """Describe changes in words; return an empty text for no changes."""
    return ", ".join(map(str, changes))


def differences(call: ContractCall, model: ContractCall) -> Changes:
    """List the changes that turn ``model``, a call of the same API without null pointers, into ``call``."""
    listed: list[Change] = []
    for name, tensor in call.tensors.items():
        listed += _of_tensor(name, tensor, model.tensor(name)) if tensor else [Change(name, "null")]
    for name, values in call.lists.items():
        if values != model.lists[name]:
            listed.append(Change(name, "null") if values is None else Change(name, "values", values))
    if call.ceil_mode != model.ceil_mode:
        listed.append(Change("ceilMode", "flag", bool(call.ceil_mode)))
    return (*listed, *(Change(name, "null") for name in OUT_POINTERS if name in call.null_outputs))


def nearest(call: ContractCall, named: Mapping[str, ContractCall]) -> tuple[str, Changes]:
    """Return the name of the call that needs the fewest changes to become ``call``, and those changes."""
    by_name = {name: differences(call, model) for name, model in named.items()}
    name = min(by_name, key=lambda name: len(by_name[name]))
    return name, by_name[name]


def _of_tensor(name: str, tensor: TensorArgument, model: TensorArgument) -> Iterator[Change]:
    if tensor.shape != model.shape:
        yield Change(name, "shape", tensor.shape)
        model = model.reshaped(tensor.shape)
    if tensor.view != model.view:
        yield Change(name, "view", tensor.view)
    if tensor.dtype != model.dtype:
        yield Change(name, "dtype", tensor.dtype)
    if tensor.format != model.format:
        yield Change(name, "format", tensor.format)


INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

RANKS = range(9)
LENGTHS = range(6)
"""Ranks of a tensor, and lengths of a list, to try."""

BASE = "base"
"""The name of the legal call from which every example starts."""


@cache
def models(product: Product, api: str) -> Mapping[str, ContractCall]:
    """Return legal calls to change, by name; if the product refuses the API, one that is legal elsewhere."""
    return legal_calls(product, api) or {BASE: base_template(api).call()}


@cache
def variations(product: Product, api: str) -> Mapping[str, tuple[Changes, ...]]:
    """Return distinct changes, by the name of the legal call to change.

    They are each field by itself in one call of every sort, every two fields in the base, and dtypes in one call per
    dtype.
    """
    named = models(product, api)
    by_call = {name: single_changes(named[name]) for name in _one_of_each_sort(named)}
    by_call[BASE] = _distinct((*by_call[BASE], *_two_fields(named[BASE])))
    seen = {named[name].tensor("self").dtype for name in by_call}
    for name, call in named.items():
        if (dtype := call.tensor("self").dtype) not in seen:
            seen.add(dtype)
            by_call[name] = _distinct(_effective(call, _of_dtypes((tensor,) for tensor in call.tensors)))
    return {
        name: tuple(changes for changes in by_call[name] if _is_defined(product, named[name], changes))
        for name in by_call
    }


def _is_defined(product: Product, model: ContractCall, changes: Changes) -> bool:
    """Check whether a source defines the outcome; none does if a negative length passes the checks."""
    if not any(change.field == "shape" and min(change.value, default=0) < 0 for change in changes):
        return True
    call = changed(model, changes)
    return may_ask(call, expectations(product, call))


@cache
def single_changes(call: ContractCall) -> tuple[Changes, ...]:
    """List all changes of one field of a call without null pointers, in one argument or in several together."""
    nulls = ((Change(name, "null"),) for name in pointers(call.signature))
    views = (view for name in call.tensors for view in _viewed(name, call.tensor(name)))
    return _distinct((*_effective(call, _of_tensors(call)), *views, *_effective(call, _of_lists(call)), *nulls))


def _effective(call: ContractCall, candidates: Iterable[Changes]) -> Iterator[Changes]:
    """Leave out changes without an effect on the call."""
    return filter(None, (tuple(change for change in changes if change.applied(call) != call) for changes in candidates))


def _distinct(changes: Iterable[Changes]) -> tuple[Changes, ...]:
    """Drop changes that set the same fields to the same values as earlier ones."""
    return tuple({frozenset(together): together for together in reversed(tuple(changes))}.values())[::-1]


def _one_of_each_sort(named: Mapping[str, ContractCall]) -> Iterable[str]:
    """Name the first call of each sort: rank, tag and emptiness of self, on which libraries branch.

    If an API has only one list, calls with equal values in it are separate sorts, because a shorter list may mean the
    same.
    """
    sorts: dict[tuple[object, ...], str] = {}
    for name, call in named.items():
        data = call.tensor("self")
        alike = len(call.lists) == 1 and len({*call.attribute(*call.lists)}) == 1
        sorts.setdefault((data.rank, data.format, data.is_empty, alike), name)
    return sorts.values()


def _of_dtypes(groups: Iterable[tuple[str, ...]]) -> Iterator[Changes]:
    for names in groups:
        for dtype in DTYPES:
            yield tuple(Change(name, "dtype", dtype) for name in names)


def _of_tensors(call: ContractCall) -> Iterator[Changes]:
    yield from _of_dtypes(together(call))
    for names in together(call):
        for tag in TAGS:
            yield tuple(Change(name, "format", tag) for name in names)
        yield from _reshaped({name: call.tensor(name).shape for name in names})


def together(call: ContractCall) -> tuple[tuple[str, ...], ...]:
    """Group tensors as clauses compare them: each alone, those of one shape, those with values, and all."""
    shapes: dict[Shape, list[str]] = {}
    for name in call.tensors:
        shapes.setdefault(call.tensor(name).shape, []).append(name)
    alike = (tuple(names) for names in shapes.values())
    groups = (*((name,) for name in call.tensors), *alike, call.signature.data, tuple(call.tensors))
    return tuple(dict.fromkeys(groups))


def _reshaped(shapes: Mapping[str, Shape]) -> Iterator[Changes]:
    for rank in RANKS:
        yield tuple(Change(name, "shape", of_rank(rank)(shape)) for name, shape in shapes.items())
    for axis in range(min(map(len, shapes.values()))):
        alternatives = (_other_lengths(shape[axis], disagrees=len(shapes) == 1) for shape in shapes.values())
        for lengths in zip(*alternatives, strict=True):
            resized = map(_with_value, shapes.values(), repeat(axis), lengths)
            yield tuple(Change(name, "shape", shape) for name, shape in zip(shapes, resized, strict=True))


def _other_lengths(length: int, *, disagrees: bool) -> tuple[int, ...]:
    """List other lengths of an axis; negative ones only if the tensor then ``disagrees`` with others.

    Tensors that agree on a negative length would pass the checks, and no source defines the outcome.
    """
    return (max(length - 1, 0), length + 1, 0, 1, 2**31, *((-1, INT64_MAX, INT64_MIN) if disagrees else ()))


def _viewed(name: str, tensor: TensorArgument) -> Iterator[Changes]:
    """View every other cell, in a storage that fits or is too small; also beyond the end, and backwards."""
    dense, (steps, _, wide) = tensor.strides, every_other(tensor).view
    yield (Change(name, "view", (steps, 0, wide)),)
    yield (Change(name, "view", (steps, 0, tensor.storage)),)
    yield (Change(name, "view", (steps, INT64_MAX, wide)),)
    yield (Change(name, "view", (dense, 1, tensor.storage)),)
    yield (Change(name, "view", ((*dense[:-1], -1), 0, tensor.storage)),)


def _of_lists(call: ContractCall) -> Iterator[Changes]:
    for name in call.lists:
        for values in _lists_like(call.attribute(name)):
            yield (Change(name, "values", values),)
    if call.ceil_mode is not None:
        yield (Change("ceilMode", "flag", not call.ceil_mode),)


def _lists_like(values: Shape) -> Iterator[Shape]:
    values = values or (1,)
    for length in LENGTHS:
        yield (values * length)[:length]
    for axis, value in enumerate(values):
        for other in _other_values(value):
            yield _with_value(values, axis, other)
    for other in _other_values(values[0]):
        yield (other,)


def _other_values(value: int) -> tuple[int, ...]:
    """List other values of a list; one of them is equal in 32 bits."""
    return (0, -1, 1, value + 1, value - 1, value + 2**32, 2**62, INT64_MAX, INT64_MIN)


def pointers(signature: Signature) -> tuple[str, ...]:
    """List the arguments of phase one that may be null."""
    return (*signature.tensors, *signature.lists, *OUT_POINTERS)


def _two_fields(call: ContractCall) -> Iterator[Changes]:
    """Pair breaches that do not hide each other: a null pointer has no fields, a list or shape only one value."""
    for first, second in combinations(_breaches(call), 2):
        hides = "null" in (first.field, second.field) or first.field == second.field
        if first.argument != second.argument or not hides:
            yield first, second


def _breaches(call: ContractCall) -> Iterator[Change]:
    """Yield, for each field of each argument, a change that every library refuses."""
    for name in pointers(call.signature):
        yield Change(name, "null")
    for name in call.tensors:
        shape = call.tensor(name).shape
        yield Change(name, "dtype", "BOOL")
        yield Change(name, "format", "NDC1HWC0")
        yield Change(name, "shape", of_rank(RANKS[-1])(shape))
        yield Change(name, "shape", (*shape[:-1], shape[-1] + 1))
    for name in call.lists:
        values = call.attribute(name)
        yield Change(name, "values", (1,) * LENGTHS[-1])
        yield Change(name, "values", (*values[:-1], -1))


def _with_value(values: Shape, axis: int, value: int) -> Shape:
    return (*values[:axis], min(max(value, INT64_MIN), INT64_MAX), *values[axis + 1 :])
