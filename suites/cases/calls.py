"""Low-level calls about an API, in the parts that blocks of the contract aspect are made of.

Parts that are listed have a clause each and are counted by it. Parts that vary or draw calls are counted as wholes: a
clause for each of their calls is only looked up when they are made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Protocol

from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.changes import changed, models, sentence, variations
from poolproof.references.contract.examples import legal_calls, violating_call, violating_pair
from poolproof.references.contract.expectation import all_clauses, expectations
from poolproof.references.products import Product
from poolproof.suites.cases.generation import derive_seed

CALLS_PER_PART = 1000
"""Most calls in one part that varies or draws: small enough to spread over workers."""

DRAWN_PER_CASE = 20
"""How many calls are drawn about each API for each case that a plan has of an aspect: they cost microseconds."""

ClauseCall = tuple[str, str, ContractCall]
"""The id of the clause that decides a call (empty where it is legal), a sentence about it, and the call."""


class CallPart(Protocol):
    """A part of the calls about an API on a product."""

    @property
    def id(self) -> str: ...

    def count(self, product: Product, api: str) -> int: ...

    def by_clause(self, product: Product, api: str) -> Counter[str]:
        """Count the calls about each clause; empty where they are counted as a whole."""

    def calls(self, product: Product, api: str) -> list[ClauseCall]: ...


@dataclass(frozen=True)
class ListedCalls:
    """All calls of one of `KINDS`."""

    id: str

    def count(self, product: Product, api: str) -> int:
        return len(_listed(self.id, product, api))

    def by_clause(self, product: Product, api: str) -> Counter[str]:
        return Counter(clause for clause, _, _ in _listed(self.id, product, api))

    def calls(self, product: Product, api: str) -> list[ClauseCall]:
        return list(_listed(self.id, product, api))


@dataclass(frozen=True)
class VariedCalls:
    """A legal call, known by its name, in those variations that lie from ``start`` to ``stop``."""

    number: int
    legal: str
    start: int
    stop: int

    @property
    def id(self) -> str:
        return f"variations-{self.number}"

    def count(self, product: Product, api: str) -> int:  # noqa: ARG002
        return self.stop - self.start

    def by_clause(self, product: Product, api: str) -> Counter[str]:  # noqa: ARG002
        return Counter()

    def calls(self, product: Product, api: str) -> list[ClauseCall]:
        model = models(product, api)[self.legal]
        made = variations(product, api)[self.legal][self.start : self.stop]
        return [clause_call(product, changed(model, changes), f"{self.legal}, {sentence(changes)}") for changes in made]


@dataclass(frozen=True)
class DrawnCalls:
    """Legal calls with nought to three perturbations."""

    number: int
    size: int
    seed: int = field(compare=False)

    @property
    def id(self) -> str:
        return f"drawn-{self.number}"

    def count(self, product: Product, api: str) -> int:  # noqa: ARG002
        return self.size

    def by_clause(self, product: Product, api: str) -> Counter[str]:  # noqa: ARG002
        return Counter()

    def calls(self, product: Product, api: str) -> list[ClauseCall]:
        from poolproof.suites.cases.drawn_calls import drawn_calls  # with Hypothesis, which nothing else here needs

        return [clause_call(product, call, "drawn") for call in drawn_calls(product, api, self.size, self.seed)]


def call_parts(product: Product, api: str, cases: int, seed: int) -> Iterator[CallPart]:
    """Cut all that a plan of so many cases asks about an API into parts."""
    yield from map(ListedCalls, KINDS)
    slices = [
        (legal, start, min(start + CALLS_PER_PART, len(made)))
        for legal, made in variations(product, api).items()
        for start in range(0, len(made), CALLS_PER_PART)
    ]
    for number, place in enumerate(slices):
        yield VariedCalls(number, *place)
    size = cases * DRAWN_PER_CASE
    for number, start in enumerate(range(0, size, CALLS_PER_PART)):
        part = derive_seed(seed, product.name, api, "drawn", number)
        yield DrawnCalls(number, min(CALLS_PER_PART, size - start), part)


def clause_call(product: Product, call: ContractCall, of: str = "") -> ClauseCall:
    """Name the clause that decides a call by the code, or by the page alone; ``of`` says where the call comes from."""
    expected = expectations(product, call)
    clause = expected.code.clause or (expected.page.clause if expected.page else None) or ""
    return clause, _statements()[clause] if clause else f"Legal: {of}.", call


@cache
def _statements() -> dict[str, str]:
    return {clause.id: clause.statement for clause in all_clauses()}


def _broken_alone(product: Product, api: str) -> Iterator[ClauseCall]:
    for clause in all_clauses(api):
        if product in clause.products:
            yield clause.id, clause.statement, violating_call(product, clause.id)


def _broken_in_pairs(product: Product, api: str) -> Iterator[ClauseCall]:
    ordered = [clause for clause in all_clauses(api) if product in clause.products]
    for first, second in combinations(ordered, 2):
        call = violating_pair(product, first.id, second.id)
        if call is not None:
            yield first.id, f"{first.statement} It comes before: {second.statement}", call


def _legal(product: Product, api: str) -> Iterator[ClauseCall]:
    for name, call in legal_calls(product, api).items():
        yield "", f"Legal: {name}.", call


KINDS: dict[str, Callable[[Product, str], Iterator[ClauseCall]]] = {
    "clauses": _broken_alone,
    "pairs": _broken_in_pairs,
    "legal": _legal,
}
"""Each clause broken alone, two at once (which pins their order), and calls that are just legal."""


@cache
def _listed(kind: str, product: Product, api: str) -> tuple[ClauseCall, ...]:
    return tuple(KINDS[kind](product, api))
