"""Clauses of the contract: one sentence each, who says so, how a library answers, and how to break it.

A contract is an ordered table of clauses per API. The first clause that decides a call gives the response, so a clause
may rely on every clause before it (no null pointers, known ranks, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, Self

from poolproof.references.contract.call import ContractCall, ContractError
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product

Products = tuple[Product, ...]

Wording = str | Callable[[Products], str]
"""A sentence, or a function that makes it from the products on which it holds."""

Decides = Callable[[ContractCall, Product], bool]
"""Whether a clause decides this call on this product; true where the call breaks the clause's sentence."""

Source = Literal["page", "code", "observed"]
"""Who says so: the API's published page, the library's sources, or a run of the library's host code."""

Stage = Literal["arguments", "assembly", "tiling"]
"""Where the library notices: its argument checks, the assembly of operators, or an operator's tiling."""

Reach = Mapping[str, bool]
"""Whether a clause holds, by product; a product that is not in it is as the one that it is like."""

PRE_950: Reach = {"A2": True, "950": False, "910": False, "310P": False, "310B": False}
SINCE_A2: Reach = {"A2": True, "950": True, "910": False, "310P": False, "310B": False}
BEFORE_A2: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": True}
ONLY_950: Reach = {"A2": False, "950": True, "910": False, "310P": False, "310B": False}
ONLY_310: Reach = {"A2": False, "950": False, "910": False, "310P": True, "310B": True}
ONLY_310B: Reach = {"A2": False, "950": False, "910": False, "310P": False, "310B": True}

ALWAYS_ON_BLOCKS: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": False}
"""The products on which the mask APIs go through NC1HWC0 whatever the kernel's size."""

COMPLETE_TABLES = {
    "PRE_950": PRE_950,
    "SINCE_A2": SINCE_A2,
    "ONLY_950": ONLY_950,
    "ALWAYS_ON_BLOCKS": ALWAYS_ON_BLOCKS,
}
"""Tables that predicates look into, by name: every product needs a value in each of them."""


@dataclass(frozen=True)
class PageReading:
    """What the published page says where it differs from the code.

    reading
        ``refuses``: the page promises ``status`` from phase one. ``allows``: the page promises no refusal here.
        ``silent``: the page says nothing that a caller could rely on. ``agrees``: the status is the code's, and the
        erratum tells of a contradiction elsewhere.
    erratum
        The known disagreement (a key of `ERRATA`).
    """

    reading: Literal["refuses", "allows", "silent", "agrees"]
    erratum: str
    status: ReturnCode = ReturnCode.INVALID_PARAMETER


@dataclass(frozen=True)
class Earlier:
    """The answer of releases of the library before a change of its code; the erratum says which."""

    status: ReturnCode
    erratum: str


@dataclass(frozen=True, kw_only=True)
class Breach:
    """How to break one clause, starting from a legal call.

    template
        Fields of `Template` to replace; the call built from them is consistent in everything else.
    tensors
        Per tensor: fields to replace by values or by functions of the old value.
    lists
        Attribute lists to replace in the built call, without touching shapes.
    nulls
        Tensors, lists and out-pointers to make null.
    """

    template: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lists: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    nulls: tuple[str, ...] = ()


NOTHING_TO_BREAK = Breach()
"""The breach of a clause that a legal call already meets, such as an unsupported product."""

BreachOf = Callable[[Product], Breach]
"""A breach that depends on the product."""


@dataclass(frozen=True)
class Clause:
    """One clause of one API's contract.

    name
        What the clause is about; its id is the API's prefix, a dot and this.
    status
        What the code answers where the clause decides; None where only the page makes the clause.
    reach
        Where the clause holds, of the products that earlier clauses leave (see `Contract`); None: on all of them.
    tables
        What ``decides``, ``wording`` and ``breach`` look up by product: each product on which it holds needs a value.
    phase
        The phase that answers.
    page
        The page's own answer where it differs.
    earlier
        The answer of earlier releases where it differs.
    crashes
        The code dies instead of answering ``status``.
    breach
        How to break this clause alone.
    id, api, products
        Set by `ClauseTable.contract`; ``products`` are those on which the clause holds.
    """

    name: str
    wording: Wording
    decides: Decides
    breach: Breach | BreachOf
    status: ReturnCode | None = ReturnCode.INVALID_PARAMETER
    reach: Reach | None = None
    tables: tuple[Mapping[str, Any], ...] = ()
    source: Source = "page"
    phase: Literal[1, 2] = 1
    stage: Stage = "arguments"
    page: PageReading | None = None
    earlier: Earlier | None = None
    crashes: bool = False
    id: str = ""
    api: str = ""
    products: Products = ()

    @property
    def statement(self) -> str:
        """The clause as a sentence."""
        return self.wording if isinstance(self.wording, str) else self.wording(self.products)

    @property
    def is_early_success(self) -> bool:
        return self.status is ReturnCode.SUCCESS

    @property
    def refuses_all(self) -> bool:
        """Whether the code answers every call by this clause, so that no later one is reached."""
        return self.decides is always and self.status is not None

    def breach_on(self, product: Product) -> Breach:
        return self.breach if isinstance(self.breach, Breach) else self.breach(product)

    def with_fields(self, **fields: Any) -> Self:
        return replace(self, **fields)


def always(call: ContractCall, product: Product) -> bool:
    """Decide every call: what an unsupported product does."""
    return True


@dataclass(frozen=True)
class Contract:
    """The ordered clauses of one API, each with the products on which it can be reached."""

    api: str
    clauses: tuple[Clause, ...]
    products: Products

    def on(self, product: Product) -> tuple[Clause, ...]:
        """Return the clauses that hold on a product, in order; `ContractError` where the product is unknown."""
        if product not in self._by_product:
            known = ", ".join(map(str, self.products))
            raise ContractError(f"product {product.name!r} is not one of {known}")
        return self._by_product[product]

    @cached_property
    def by_id(self) -> Mapping[str, Clause]:
        """All clauses by their ids, in order."""
        return {clause.id: clause for clause in self.clauses}

    @cached_property
    def _by_product(self) -> Mapping[Product, tuple[Clause, ...]]:
        return {
            product: tuple(clause for clause in self.clauses if product in clause.products) for product in self.products
        }


@dataclass(frozen=True)
class ClauseTable:
    """The ordered clauses of one API as they are written down, for whatever products there are."""

    api: str
    prefix: str
    clauses: tuple[Clause, ...]

    @classmethod
    def of(cls, api: str, prefix: str, *clauses: Clause) -> ClauseTable:
        return cls(api, prefix, clauses)

    def contract(self, products: Iterable[Product]) -> Contract:
        """Find out on which products each clause holds.

        `ContractError` names a product that can reach a clause and has no value in one of its tables, or a value that
        is no product's.
        """
        known = remaining = tuple(products)
        placed = []
        for clause in self.clauses:
            self._require_names(clause, known)
            reached = self._reached(clause, remaining)
            placed.append(replace(clause, id=f"{self.prefix}.{clause.name}", api=self.api, products=reached))
            if clause.refuses_all:
                remaining = tuple(product for product in remaining if product not in reached)
        return Contract(self.api, tuple(placed), known)

    def _require_names(self, clause: Clause, known: Products) -> None:
        names = {product.name for product in known}
        for name in chain(clause.reach or (), *clause.tables):
            if name not in names:
                raise ContractError(f"table {clause.name} of {self.api} has a value for {name!r}, which is no product")

    def _reached(self, clause: Clause, remaining: Products) -> Products:
        if clause.reach is not None:
            require_values(remaining, clause.reach, clause.name, self.api)
            remaining = tuple(product for product in remaining if product.value_in(clause.reach))
        for table in clause.tables:
            require_values(remaining, table, clause.name, self.api)
        return remaining


def require_values(products: Products, table: Mapping[str, Any], name: str, owner: str) -> None:
    """Raise `ContractError` for the first product that has no value in the table called ``name`` of ``owner``."""
    for product in products:
        if not product.has_value_in(table):
            raise ContractError(
                f"product {product.name!r} has no value in table {name} of {owner}: "
                "give it one, or name a product that it is like"
            )
