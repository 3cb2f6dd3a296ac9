"""What a rule of the contract is: one sentence, who says so, how a library answers, and how to break it.

A contract is an ordered table of rules per API. The first rule that decides a call gives the answer; rules that
decide may therefore rely on every rule before them (no null pointers, known ranks, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.vocabulary import PRODUCTS, Status

Decides = Callable[[ContractCall, str], bool]
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
    status: Status = Status.INVALID_PARAMETER


@dataclass(frozen=True, kw_only=True)
class Breach:
    """How to break one rule, starting from a legal call.

    recipe
        Fields of `Recipe` to replace; the call built from them is consistent in everything else.
    tensors
        Per tensor: None for a null pointer, or fields to replace by values or by functions of the old value.
    lists
        Attribute lists to replace in the built call, without touching shapes.
    null_outputs
        Out-pointers to make null.
    """

    recipe: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    lists: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    null_outputs: tuple[str, ...] = ()


NOTHING_TO_BREAK = Breach()
"""The breach of a rule that a legal call already meets, such as an unsupported product."""

BreachOf = Callable[[str], Breach]
"""A breach that depends on the product."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One clause of one API's contract.

    name
        What the clause is about; its id is the API's prefix, a dot and this.
    statement
        The clause in one sentence.
    decides
        See `Decides`.
    status
        What the code answers where the rule decides; None where the code does not check (only the page does).
    products
        Where the rule holds; empty: everywhere that earlier rules leave (see `Contract`).
    phase
        The phase that answers.
    page
        The page's own answer where it differs.
    crashes
        The code dies instead of answering; ``status`` is what it would have answered.
    breach
        How to break this rule alone.
    """

    name: str
    statement: str
    decides: Decides
    breach: Breach | BreachOf
    status: Status | None = Status.INVALID_PARAMETER
    products: tuple[str, ...] = ()
    source: Source = "page"
    phase: Literal[1, 2] = 1
    stage: Stage = "arguments"
    page: Page | None = None
    crashes: bool = False

    def breach_on(self, product: str) -> Breach:
        return self.breach if isinstance(self.breach, Breach) else self.breach(product)


def always(call: ContractCall, product: str) -> bool:
    """Decide every call: what an unsupported product does."""
    return True


@dataclass(frozen=True)
class Contract:
    """The ordered rules of one API, each with the products on which it can be reached."""

    api: str
    prefix: str
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, api: str, prefix: str, *rules: Rule) -> Contract:
        """Fill in the products: a rule without any holds on those that no earlier rule refused outright."""
        remaining: tuple[str, ...] = PRODUCTS
        placed = []
        for rule in rules:
            products = tuple(product for product in rule.products or remaining if product in remaining)
            placed.append(replace(rule, products=products))
            if rule.decides is always and rule.status is not None:
                remaining = tuple(product for product in remaining if product not in products)
        return cls(api, prefix, tuple(placed))

    def id(self, rule: Rule) -> str:
        return f"{self.prefix}.{rule.name}"

    def on(self, product: str) -> tuple[Rule, ...]:
        """The rules that hold on a product, in order."""
        return tuple(rule for rule in self.rules if product in rule.products)
