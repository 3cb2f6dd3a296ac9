"""Drawn low-level calls: a legal one, and nought to three perturbations of it.

Nobody chooses what they break, if anything: the contract answers for any call. So the order of the checks is tried
with more than two of them broken, and values in places that no enumeration thought of.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.changes import (
    INT64_MAX,
    INT64_MIN,
    LENGTHS,
    RANKS,
    Change,
    Changes,
    Field,
    changed,
    models,
    single_changes,
)
from poolproof.references.contract.examples import base_template
from poolproof.references.contract.expectation import expectations, may_ask
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.products import Product
from poolproof.references.windows import Adaptive, Windowed, per_kind
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.cases.searching import examples

MAX_PERTURBATIONS = 3

_BATCH = 10
"""Calls that are drawn at a time."""


def drawn_calls(product: Product, api: str, count: int, seed: int) -> list[ContractCall]:
    """Draw ``count`` different calls that depend on product, API and seed alone; none that may not be made."""
    found: dict[ContractCall, None] = {}
    turn = 0
    while len(found) < count:
        wanted = count - len(found) + count // 8
        for calls in examples(_batches(product, api), wanted // _BATCH + 2, derive_seed(seed, turn)):
            found |= dict.fromkeys(call for call in calls if may_ask(call, expectations(product, call)))
        turn += 1
    return list(found)[:count]


@cache
def _batches(product: Product, api: str) -> st.SearchStrategy[list[ContractCall]]:
    return st.lists(_calls(product, api), min_size=_BATCH, max_size=_BATCH)


@st.composite
def _calls(draw: st.DrawFn, product: Product, api: str) -> ContractCall:
    call = draw(_legal_calls(product, api))
    for _ in range(draw(st.integers(0, MAX_PERTURBATIONS))):
        call = changed(call, draw(_perturbations(product, api)))
    return call


@cache
def _legal_calls(product: Product, api: str) -> st.SearchStrategy[ContractCall]:
    """Draw one of the listed legal calls, or one of drawn windows, which is legal where they fit."""
    listed = st.sampled_from(tuple(models(product, api).values()))
    return st.one_of(listed, listed, listed, _of_drawn_windows(api))


@st.composite
def _of_drawn_windows(draw: st.DrawFn, api: str) -> ContractCall:
    """Draw windows and a plane, from which all else follows: some padding is too large, some planes too small."""
    signature = SIGNATURES[api]
    fields = _FIELDS[signature.operator.windows](draw, signature.spatial_rank)
    spatial = draw(_each(1, 12, signature.spatial_rank))
    template = base_template(api)
    return template.changed({"shape": (*template.shape[: -signature.spatial_rank], *spatial), **fields}).call()


Fields = dict[str, tuple[int, ...] | bool]


def _windowed_fields(draw: st.DrawFn, rank: int) -> Fields:
    kernel = draw(_each(1, 5, rank))
    return {
        "kernel_size": kernel,
        "stride": draw(_each(1, 4, rank)),
        "padding": tuple(draw(st.integers(0, size // 2 + 1)) for size in kernel),
        "dilation": draw(_each(1, 2, rank)),
        "ceil_mode": draw(st.booleans()),
    }


def _adaptive_fields(draw: st.DrawFn, rank: int) -> Fields:
    return {"output_size": draw(_each(0, 12, rank))}


_FIELDS = per_kind("drawn calls", {Windowed: _windowed_fields, Adaptive: _adaptive_fields})


@cache
def _each(least: int, most: int, rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*(st.integers(least, most),) * rank)


_VALUES = st.integers(-2, 9) | st.sampled_from((2**31 - 1, 2**31, 2**62, INT64_MAX, INT64_MIN))


@cache
def _perturbations(product: Product, api: str) -> st.SearchStrategy[Changes]:
    """Draw a single change as the enumeration has it, or any list or shape."""
    signature = SIGNATURES[api]
    listed = st.sampled_from(tuple(change for call in models(product, api).values() for change in single_changes(call)))
    shapes = _changes(signature.tensors, "shape", RANKS[-1])
    lists = _changes(signature.lists, "values", LENGTHS[-1]) if signature.lists else shapes
    anything = st.tuples(shapes | lists)
    return st.one_of(listed, listed, listed, anything)


def _changes(arguments: tuple[str, ...], field: Field, longest: int) -> st.SearchStrategy[Change]:
    values = st.lists(_VALUES, max_size=longest).map(tuple)
    return st.builds(Change, st.sampled_from(arguments), st.just(field), values)
