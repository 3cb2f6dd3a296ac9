"""Clauses of the contract: each has a sentence, a source, the library's answer, and a way to break it.

A contract is an ordered table of clauses per API. The first clause that decides a call gives the response. A clause may
therefore rely on every earlier one (no null pointers, known ranks, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, Self

from poolproof.references.contract.call import Change, Changes, ContractCall, ContractError, Field
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product

Products = tuple[Product, ...]

Wording = str | Callable[[Products], str]
"""A sentence, or a function that makes it from the products of the clause."""

Decides = Callable[[ContractCall, Product], bool]
"""Whether a clause decides this call on this product: true if the call breaks the clause's sentence."""

Reach = Mapping[str, bool]
"""Product -> whether a clause holds; a product without an entry inherits by `Product.like`."""

PRE_950: Reach = {"A2": True, "950": False, "910": False, "310P": False, "310B": False}
SINCE_A2: Reach = {"A2": True, "950": True, "910": False, "310P": False, "310B": False}
BEFORE_A2: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": True}
ONLY_950: Reach = {"A2": False, "950": True, "910": False, "310P": False, "310B": False}
ONLY_310: Reach = {"A2": False, "950": False, "910": False, "310P": True, "310B": True}
ONLY_310B: Reach = {"A2": False, "950": False, "910": False, "310P": False, "310B": True}

ALWAYS_ON_BLOCKS: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": False}
"""Products on which the mask APIs go through NC1HWC0 for every kernel size."""

COMPLETE_TABLES = {"PRE_950": PRE_950, "SINCE_A2": SINCE_A2, "ONLY_950": ONLY_950, "ALWAYS_ON_BLOCKS": ALWAYS_ON_BLOCKS}
"""Tables that predicates read, by name. Each must have a value for every product."""


@dataclass(frozen=True)
class PageReading:
    """What the published page says where it differs from the code.

    Attributes:
        reading: The page's answer.
            ``refuses``: the page promises 161002 from phase one. ``allows``: it promises no refusal here.
            ``silent``: it says nothing that a caller could rely on.
            ``agrees``: the status is the code's; the erratum describes a contradiction elsewhere.
        erratum: The known disagreement (a key of `ERRATA`).
    """

    reading: Literal["refuses", "allows", "silent", "agrees"]
    erratum: str


@dataclass(frozen=True)
class Earlier:
    """The answer of older releases, before the library's code changed; the erratum names them."""

    status: ReturnCode
    erratum: str


@dataclass(frozen=True)
class Breach:
    """How to break one clause, starting from a legal call.

    Attributes:
        template: Fields of `Template` to replace. The call built from them is otherwise consistent.
        changes: Changes of that call, which touch nothing else. Values may be functions of the old ones.
    """

    template: Mapping[str, Any]
    changes: Changes = ()


def altered(field: Field, value: Any, *arguments: str, **template: Any) -> Breach:
    """Return the breach that makes the same change to all ``arguments`` of a call of that template."""
    return Breach(template, tuple(Change(argument, field, value) for argument in arguments))


NOTHING_TO_BREAK = Breach({})
"""The breach of a clause that a legal call already breaks, such as an unsupported product."""

BreachOf = Callable[[Product], Breach]
"""A breach that depends on the product."""


@dataclass(frozen=True)
class Clause:
    """One clause of one API's contract.

    Attributes:
        name: Topic of the clause; its id is the API's prefix, a dot and this.
        breach: How to break this clause only.
        status: The code's answer if the clause decides; None if only the page has the clause.
        reach: Products of the clause, among those that earlier clauses leave (see `Contract`); None for all of them.
        tables: Tables that ``decides``, ``wording`` and ``breach`` read. Each needs a value for every product of the
            clause.
        source: The API's published page, the library's sources, or a run of the library's host code.
        phase: The phase that answers.
        stage: Where the library notices: argument checks, assembly of operators, or an operator's tiling.
        page: The page's own answer, if different.
        earlier: The answer of earlier releases, if different.
        crashes: The code crashes instead of returning ``status``.
        id, api, products: Set by `Contract.placed`; ``products`` are those on which the clause holds.
    """

    name: str
    wording: Wording
    decides: Decides
    breach: Breach | BreachOf
    status: ReturnCode | None = ReturnCode.INVALID_PARAMETER
    reach: Reach | None = None
    tables: tuple[Mapping[str, Any], ...] = ()
    source: Literal["page", "code", "observed"] = "page"
    phase: Literal[1, 2] = 1
    stage: Literal["arguments", "assembly", "tiling"] = "arguments"
    page: PageReading | None = None
    earlier: Earlier | None = None
    crashes: bool = False
    id: str = ""
    api: str = ""
    products: Products = ()

    @property
    def statement(self) -> str:
        return self.wording if isinstance(self.wording, str) else self.wording(self.products)

    def breach_on(self, product: Product) -> Breach:
        return self.breach if isinstance(self.breach, Breach) else self.breach(product)

    def with_fields(self, **fields: Any) -> Self:
        return replace(self, **fields)


def always(call: ContractCall, product: Product) -> bool:
    """Decide every call, as an unsupported product does."""
    return True


@dataclass(frozen=True)
class Contract:
    """The ordered clauses of one API, as written or as `placed` on products."""

    api: str
    prefix: str
    clauses: tuple[Clause, ...]
    products: Products = ()

    @classmethod
    def of(cls, api: str, prefix: str, *clauses: Clause) -> Contract:
        return cls(api, prefix, clauses)

    def placed(self, products: Iterable[Product]) -> Contract:
        """Determine the products of each clause.

        `ContractError` names a product that can reach a clause and has no value in one of its tables, or a value of an
        unknown product.
        """
        known = remaining = tuple(products)
        names, placed = {product.name for product in known}, []
        for clause in self.clauses:
            for name in chain(clause.reach or (), *clause.tables):
                if name not in names:
                    wrong = f"table {clause.name} of {self.api} has a value for {name!r}, which is no product"
                    raise ContractError(wrong)
            reached = remaining
            if clause.reach is not None:
                require_values(reached, clause.reach, clause.name, self.api)
                reached = tuple(product for product in reached if product.value_in(clause.reach))
            for table in clause.tables:
                require_values(reached, table, clause.name, self.api)
            placed.append(replace(clause, id=f"{self.prefix}.{clause.name}", api=self.api, products=reached))
            if clause.decides is always and clause.status is not None:  # the code reaches no later clause
                remaining = tuple(product for product in remaining if product not in reached)
        return Contract(self.api, self.prefix, tuple(placed), known)

    def on(self, product: Product) -> tuple[Clause, ...]:
        """Return the clauses that hold on a product, in order; raise `ContractError` if the product is unknown."""
        if product not in self._by_product:
            known = ", ".join(map(str, self.products))
            raise ContractError(f"product {product.name!r} is not one of {known}")
        return self._by_product[product]

    @cached_property
    def by_id(self) -> Mapping[str, Clause]:
        return {clause.id: clause for clause in self.clauses}

    @cached_property
    def _by_product(self) -> Mapping[Product, tuple[Clause, ...]]:
        return {
            product: tuple(clause for clause in self.clauses if product in clause.products) for product in self.products
        }


def require_values(products: Products, table: Mapping[str, Any], name: str, owner: str) -> None:
    """Raise `ContractError` for the first product without a value in the table ``name`` of ``owner``."""
    for product in products:
        if not product.has_value_in(table):
            raise ContractError(
                f"product {product.name!r} has no value in table {name} of {owner}: "
                "give it one, or name a product that it is like"
            )


ERRATA = {
    "E11": "The two 2-D backward pages refuse padding above the kernel; the code refuses padding above half of it.",
    "E12": "Pages list only some of the pointers that may not be null; the code checks all of them.",
    "E13": "The 3-D backward page takes dilation 1 only; the code takes every positive dilation.",
    "E14": "The 3-D backward page does not support empty tensors; the code succeeds and writes nothing.",
    "E16": "On A2 and A3 the 2-D backward page takes INT32 indices; the code lists INT8 too, which tiling refuses.",
    "E17": "The 2-D backward pages refuse indices of another shape; the code compares and drops the result.",
    "E19": "The mask page takes rank 4 only and compares the mask with gradOutput; the code takes ranks 3 and 4.",
    "E20": "A mask kernelSize of a wrong length is an invalid parameter by the page, a null pointer by the code.",
    "E21": "On 950 the mask backward refuses the product before it looks at any pointer.",
    "E26": "The adaptive 2-D forward page allows an outputSize of 0 in its parameter table, not in its error list.",
    "E27": "The adaptive 2-D forward page refuses outputs of a wrong shape as invalid parameters; the code compares"
    " numbers of elements only and answers with an internal error.",
    "E29": "The adaptive 2-D forward checks its format list only on the general path (910, or DOUBLE data).",
    "E30": "The adaptive 2-D backward page limits the plane on every product; the code does not on 950.",
    "E34": "On 950 the 3-D forward checks dilation's length but not that its values are positive.",
    "E35": "The 3-D forward leaves early when out is empty, before it compares out with the pooled shape.",
    "E36": "A plane above 2^31 - 1 in the 3-D forward is an internal error by the code; the page names no status.",
    "E37": "The adaptive 3-D forward compares indicesOut with outputOut along the first axes only, one per value of"
    " outputSize, and leaves the rest to the assembly of its result, which an empty call never reaches.",
    "E38": "The 3-D backward page ties gradOutput to the forward's output; the code leaves that to tiling.",
    "E39": "The 2-D backward APIs take plain tags that their pages leave out; NHWC on A2 and A3 is checked with"
    " channels last and computed with channels first.",
    "E40": "The 3-D backward takes plain tags that its page leaves out; under NDHWC it reads N, C, D, H, W.",
    "C1": "A tag of another rank than the tensor's is an internal error by the code, an invalid parameter by the page.",
    "C2": "At rank 3 the adaptive 2-D backward takes NCL only, though its page lists ND.",
    "C3": "At rank 3 the 2-D backward takes neither NCHW nor (on 950) NHWC, though its page lists them.",
    "C8": "The mask path of 1x1 kernels, and of every kernel on 910, takes NCHW and NHWC only.",
    "C9": "A mask kernelSize of a wrong length together with a null stride, padding or dilation kills the process.",
    "C11": "gradOutput and self that differ in N or C are refused by tiling, in phase one or two by the route taken.",
    "C12": "A view of an input that is not contiguous and leaves its storage is an internal error; no page names it.",
    "F1": "Releases before 2026-06-30 refuse null pointers of the 3-D forward as invalid parameters; later ones as its"
    " page promises.",
    "F2": "The windowed forwards and the adaptive APIs take plain tags that their pages leave out.",
    "F3": "The adaptive 2-D forward has no check of the product; its page does not support Atlas inference devices.",
    "F4": "On blocks the mask forward takes NHWC at no rank, and at rank 3 no tag of another rank.",
    "F5": "On 950 the 2-D forward infers shapes for ND, NCHW and NHWC only.",
    "F6": "The 2-D and the adaptive forwards compare tags of outputs with that of a result; their pages ask for no such"
    " thing.",
    "F7": "On 950, where outputSize does not divide self's lengths, the adaptive 2-D forward pools tensors that are not"
    " tagged NCHW along their second and third axes; its page lists NHWC.",
    "F8": "The adaptive 2-D forward takes no unbatched tensor tagged NHWC, which its page lists; on 950 the process"
    " dies of it.",
    "F9": "On A2 and A3, where outputSize divides self's lengths, a plane above 2^31 - 1 is an internal error of the"
    " adaptive 2-D forward; its page names no limit.",
}
"""Disagreements between the library's published pages and its code about a status, or within a page.

E: found by comparing pages with code. C: found by running the library's host code on both sides of each clause. F:
found in the sources of the forward APIs.
"""
