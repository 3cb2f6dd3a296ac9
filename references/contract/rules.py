"""What a rule of the contract is: one sentence, who says so, how a library answers, and how to break it.

A contract is an ordered table of rules per API. The first rule that decides a call gives the answer; rules that
decide may therefore rely on every rule before them (no null pointers, known ranks, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from poolproof.references.contract.call import ContractCall, ContractError
from poolproof.references.contract.reach import Reach
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product

Products = tuple[Product, ...]

Statement = str | Callable[[Products], str]
"""A sentence, or what makes it from the products on which it holds."""

Decides = Callable[[ContractCall, Product], bool]
"""Whether a rule decides this call on this product; true where the call breaks the rule's sentence."""

Source = Literal["page", "code", "observed"]
"""Who says so: the API's published page, the library's sources, or a run of the library's host code."""

Stage = Literal["arguments", "assembly", "tiling"]
"""Where the library notices: its argument checks, the assembly of operators, or an operator's tiling."""


@dataclass(frozen=True)
class Page:
    """What the published page says where it does not say what the code does.

    reading
        ``refuses``: the page promises ``status`` from phase one. ``allows``: the page promises no refusal here.
        ``silent``: the page says nothing that a caller could rely on. ``agrees``: the status is the code's, and the
        erratum tells of a contradiction elsewhere.
    """

    reading: Literal["refuses", "allows", "silent", "agrees"]
    erratum: str
    status: ReturnCode = ReturnCode.INVALID_PARAMETER


@dataclass(frozen=True)
class Earlier:
    """What releases of the library before a change of its code answer; the erratum says which."""

    status: ReturnCode
    erratum: str


@dataclass(frozen=True, kw_only=True)
class Breach:
    """How to break one rule, starting from a legal call.

    template
        Fields of `Template` to replace; the call built from them is consistent in everything else.
    tensors
        Per tensor: None for a null pointer, or fields to replace by values or by functions of the old value.
    lists
        Attribute lists to replace in the built call, without touching shapes.
    null_outputs
        Out-pointers to make null.
    """

    template: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    lists: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    null_outputs: tuple[str, ...] = ()


NOTHING_TO_BREAK = Breach()
"""The breach of a rule that a legal call already meets, such as an unsupported product."""

BreachOf = Callable[[Product], Breach]
"""A breach that depends on the product."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One clause of one API's contract.

    name
        What the clause is about; its id is the API's prefix, a dot and this.
    statement
        See `Statement`.
    decides
        See `Decides`.
    status
        What the code answers where the rule decides; None where the code does not check (only the page does).
    reach
        Where the rule holds, of the products that earlier rules leave (see `Contract`); None: on all of them.
    tables
        What ``decides``, ``statement`` and ``breach`` look up by product: values for every product on which it holds.
    products
        Where the rule holds, as `ClauseTable.contract` finds out.
    phase
        The phase that answers.
    page
        The page's own answer where it differs.
    earlier
        The answer of earlier releases where it differs.
    crashes
        The code dies instead of answering; ``status`` is what it would have answered.
    breach
        How to break this rule alone.
    """

    name: str
    statement: Statement
    decides: Decides
    breach: Breach | BreachOf
    status: ReturnCode | None = ReturnCode.INVALID_PARAMETER
    reach: Reach | None = None
    tables: tuple[Mapping[str, Any], ...] = ()
    products: Products = ()
    source: Source = "page"
    phase: Literal[1, 2] = 1
    stage: Stage = "arguments"
    page: Page | None = None
    earlier: Earlier | None = None
    crashes: bool = False

    @property
    def refuses_all(self) -> bool:
        """Whether the code answers every call by this rule, so that no later one is reached."""
        return self.decides is always and self.status is not None

    def sentence(self) -> str:
        return self.statement if isinstance(self.statement, str) else self.statement(self.products)

    def breach_on(self, product: Product) -> Breach:
        return self.breach if isinstance(self.breach, Breach) else self.breach(product)


def always(call: ContractCall, product: Product) -> bool:
    """Decide every call: what an unsupported product does."""
    return True


@dataclass(frozen=True)
class Contract:
    """The ordered rules of one API, each with the products on which it can be reached."""

    api: str
    prefix: str
    rules: tuple[Rule, ...]
    products: Products

    def id(self, rule: Rule) -> str:
        return f"{self.prefix}.{rule.name}"

    def on(self, product: Product) -> tuple[Rule, ...]:
        """The rules that hold on a product, in order; `ContractError` where the product is unknown."""
        return tuple(self.named_on(product).values())

    def named_on(self, product: Product) -> Mapping[str, Rule]:
        """The same under their ids; every call is held against them, so they are looked up but once."""
        if product not in self._by_product:
            known = ", ".join(each.name for each in self.products)
            raise ContractError(f"product {product.name!r} is not one of {known}")
        return self._by_product[product]

    @cached_property
    def named(self) -> Mapping[str, Rule]:
        """All rules under their ids, in order."""
        return {self.id(rule): rule for rule in self.rules}

    @cached_property
    def _by_product(self) -> Mapping[Product, Mapping[str, Rule]]:
        return {
            product: {clause: rule for clause, rule in self.named.items() if product in rule.products}
            for product in self.products
        }


@dataclass(frozen=True)
class ClauseTable:
    """The ordered rules of one API as they are written down, for whatever products there are."""

    api: str
    prefix: str
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, api: str, prefix: str, *rules: Rule) -> ClauseTable:
        return cls(api, prefix, rules)

    def contract(self, products: Iterable[Product]) -> Contract:
        """The rules with the products on which they hold.

        `ContractError` names a product that can reach a rule and has no value in one of its tables, or a value that is
        no product's.
        """
        known = remaining = tuple(products)
        placed = []
        for rule in self.rules:
            self._require_names(rule, known)
            reached = self._reached(rule, remaining)
            placed.append(replace(rule, products=reached))
            if rule.refuses_all:
                remaining = tuple(product for product in remaining if product not in reached)
        return Contract(self.api, self.prefix, tuple(placed), known)

    def _require_names(self, rule: Rule, known: Products) -> None:
        names = {product.name for product in known}
        for name in chain(rule.reach or (), *rule.tables):
            if name not in names:
                raise ContractError(f"table {rule.name} of {self.api} has a value for {name!r}, which is no product")

    def _reached(self, rule: Rule, remaining: Products) -> Products:
        if rule.reach is not None:
            require_values(remaining, rule.reach, rule.name, self.api)
            remaining = tuple(product for product in remaining if product.value_in(rule.reach))
        for table in rule.tables:
            require_values(remaining, table, rule.name, self.api)
        return remaining


def require_values(products: Products, table: Mapping[str, Any], name: str, owner: str) -> None:
    """`ContractError` names the first of the products that has no value in the table called ``name`` of ``owner``."""
    for product in products:
        if not product.has_value_in(table):
            raise ContractError(
                f"product {product.name!r} has no value in table {name} of {owner}: "
                "give it one, or name a product that it is like"
            )
