"""Low-level calls about an API, in the parts that blocks of the contract aspect are made of.

Parts that are listed have a clause each and are counted by it. Parts that vary or draw calls are counted as wholes: a
clause for each of their calls is only looked up when they are made. A drawn call is a legal one with nought to three
perturbations, of which nobody chooses what they break, if anything: so the order of the checks is tried with more than
two of them broken, and values in places that no enumeration thought of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations

from poolproof.references.contract.call import Change, Changes, ContractCall, changed
from poolproof.references.contract.changes import (
    INT64_MAX,
    INT64_MIN,
    LENGTHS,
    RANKS,
    models,
    sentence,
    single_changes,
    variations,
)
from poolproof.references.contract.examples import base_template, legal_calls, violating_call, violating_pair
from poolproof.references.contract.expectation import all_clauses, expectations, find_clause, may_ask
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.products import Product
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.suites.cases.generation import Draws, T, composite, derive_seed, generate

CALLS_PER_PART = 1000
"""Most calls in one part that varies or draws: small enough to spread over workers."""

DRAWN_PER_CASE = 20
"""How many calls are drawn about each API for each case that a plan has of an aspect: they cost microseconds."""

ClauseCall = tuple[str, str, ContractCall]
"""The id of the clause that decides a call (empty where it is legal), a sentence about it, and the call."""


@dataclass(frozen=True)
class CallPart:
    """A part of the calls about an API on a product: there are ``count`` of them, which ``make`` makes.

    ``clauses`` counts them by clause; empty where they are counted as a whole.
    """

    id: str
    count: int
    make: Callable[[], Sequence[ClauseCall]] = field(compare=False)
    clauses: Counter[str] = field(default_factory=Counter, compare=False)


def call_parts(product: Product, api: str, cases: int, seed: int) -> Iterator[CallPart]:
    """Cut all that a plan of so many cases asks about an API into parts."""
    for kind, listed in _listed(product, api).items():
        make = partial(_of_kind, product, api, kind)
        yield CallPart(kind, len(listed), make, Counter(clause for clause, _, _ in listed))
    made = {legal: len(changes) for legal, changes in variations(product, api).items()}
    slices = ((legal, start) for legal, length in made.items() for start in range(0, length, CALLS_PER_PART))
    for number, (legal, start) in enumerate(slices):
        stop = min(start + CALLS_PER_PART, made[legal])
        make = partial(_varied, product, api, legal, start, stop)
        yield CallPart(f"variations-{number}", stop - start, make)
    size = cases * DRAWN_PER_CASE
    for number, start in enumerate(range(0, size, CALLS_PER_PART)):
        own_seed = derive_seed(seed, product.name, api, "drawn", number)
        yield drawn_part(product, api, number, min(CALLS_PER_PART, size - start), own_seed)


def _varied(product: Product, api: str, legal: str, start: int, stop: int) -> list[ClauseCall]:
    """Make the variations from ``start`` to ``stop`` of a legal call that is known by its name."""
    model, made = models(product, api)[legal], variations(product, api)[legal][start:stop]
    return [clause_call(product, changed(model, changes), f"{legal}, {sentence(changes)}") for changes in made]


def drawn_part(product: Product, api: str, number: int, count: int, seed: int) -> CallPart:
    return CallPart(f"drawn-{number}", count, partial(_drawn, product, api, count, seed))


def _drawn(product: Product, api: str, count: int, seed: int) -> list[ClauseCall]:
    return [clause_call(product, call, "drawn") for call in drawn_calls(product, api, count, seed)]


def clause_call(product: Product, call: ContractCall, of: str = "") -> ClauseCall:
    """Name the clause that decides a call by the code, or by the page alone; ``of`` says where the call comes from."""
    expected = expectations(product, call)
    clause = expected.code.clause or (expected.page.clause if expected.page else None) or ""
    return clause, find_clause(clause).statement if clause else f"Legal: {of}.", call


@cache
def _listed(product: Product, api: str) -> Mapping[str, list[ClauseCall]]:
    """Break each clause alone, and two at once (which pins their order), and list calls that are just legal."""
    held = [clause for clause in all_clauses(api) if product in clause.products]
    pairs = ((first, second, violating_pair(product, first.id, second.id)) for first, second in combinations(held, 2))
    return {
        "clauses": [(clause.id, clause.statement, violating_call(product, clause.id)) for clause in held],
        "pairs": [
            (first.id, f"{first.statement} It comes before: {second.statement}", call)
            for first, second, call in pairs
            if call is not None
        ],
        "legal": [("", f"Legal: {name}.", call) for name, call in legal_calls(product, api).items()],
    }


def _of_kind(product: Product, api: str, kind: str) -> list[ClauseCall]:
    return _listed(product, api)[kind]


MAX_PERTURBATIONS = 3


def drawn_calls(product: Product, api: str, count: int, seed: int) -> list[ContractCall]:
    """Draw ``count`` different calls that depend on product, API and seed alone; none that may not be made."""
    found: dict[ContractCall, None] = {}
    turn = 0
    while len(found) < count:
        some = (count - len(found) + count // 8) // 10 * 10 + 11
        drawn = generate(calls.make(product, api), some, derive_seed(seed, turn))
        found |= dict.fromkeys(call for call in drawn if may_ask(call, expectations(product, call)))
        turn += 1
    return list(found)[:count]


@composite
def calls(draw: Draws, product: Product, api: str) -> ContractCall:
    """Draw a legal call, changed in up to three places; some may not be made (`may_ask`)."""
    call = _of_drawn_windows(draw, api) if draw.flip() else _one_of(draw, tuple(models(product, api).values()))
    for _ in range(draw.between(0, MAX_PERTURBATIONS)):
        changes = (_any_change(draw, api),) if draw.flip() else _one_of(draw, _single_changes(product, api))
        call = changed(call, changes)
    return call


def _of_drawn_windows(draw: Draws, api: str) -> ContractCall:
    """Draw windows and a plane, from which all else follows: some padding is too large, some planes too small."""
    signature = SIGNATURES[api]
    fields = _FIELDS[signature.operator.windows](draw, signature.spatial_rank)
    template = base_template(api)
    shape = (*template.shape[: -signature.spatial_rank], *_each(draw, 1, 12, signature.spatial_rank))
    return template.changed({"shape": shape, **fields}).call()


def _windowed_fields(draw: Draws, rank: int) -> dict[str, tuple[int, ...] | bool]:
    kernel = _each(draw, 1, 5, rank)
    return {
        "kernel_size": kernel,
        "stride": _each(draw, 1, 4, rank),
        "padding": tuple(draw.between(0, size // 2 + 1) for size in kernel),
        "dilation": _each(draw, 1, 2, rank),
        "ceil_mode": draw.chance(0.5),
    }


_FIELDS: Mapping[type[Windows], Callable[[Draws, int], dict[str, tuple[int, ...] | bool]]] = per_kind(
    "drawn calls",
    {Windowed: _windowed_fields, Adaptive: lambda draw, rank: {"output_size": _each(draw, 0, 12, rank)}},
)


def _each(draw: Draws, low: int, high: int, rank: int) -> tuple[int, ...]:
    return tuple(draw.between(low, high) for _ in range(rank))


@cache
def _single_changes(product: Product, api: str) -> tuple[Changes, ...]:
    return tuple(change for call in models(product, api).values() for change in single_changes(call))


def _any_change(draw: Draws, api: str) -> Change:
    signature = SIGNATURES[api]
    if signature.lists and draw.flip():
        return Change(_one_of(draw, signature.lists), "values", _any_list(draw, LENGTHS[-1], 0.7767857142857144))
    return Change(_one_of(draw, signature.tensors), "shape", _any_list(draw, RANKS[-1], 0.84296875))


def _one_of(draw: Draws, options: Sequence[T]) -> T:
    """Choose one, which takes no draw where there is but one."""
    return draw.choose(options) if len(options) > 1 else options[0]


_EXTREME = (2**31 - 1, 2**31, 2**62, INT64_MAX, INT64_MIN)


def _any_list(draw: Draws, most: int, further: float) -> tuple[int, ...]:
    """Draw at most ``most`` values; ``further`` is the probability of another that makes the average half of that."""
    values: list[int] = []
    while len(values) < most and draw.chance(further):
        values.append(draw.choose(_EXTREME) if draw.flip() else draw.between(-2, 9))
    return tuple(values)
