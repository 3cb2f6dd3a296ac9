"""Builders of the rules that many APIs share: pointers, dtypes, formats, ranks, lists, shapes.

A builder returns the rule with its breach beside it, so that a row of a clause table is one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.facts import (
    INT32_MAX,
    Shape,
    attribute,
    leaves_storage,
    nothing_pooled,
    plane,
    tag_fits,
)
from poolproof.references.contract.reach import PRE_950, Reach
from poolproof.references.contract.rules import (
    NOTHING_TO_BREAK,
    Breach,
    BreachOf,
    Decides,
    Earlier,
    Page,
    Products,
    Rule,
    Statement,
    always,
)
from poolproof.references.contract.vocabulary import OUT_POINTERS, PRIVATE_TAGS, ReturnCode
from poolproof.references.products import Product

FLOATS = ("FLOAT", "FLOAT16", "BF16")
INTEGERS = ("INT32", "INT64")
UNNAMED = Page("silent", "E12")
"""A pointer that the page does not name among those whose null it refuses."""

PerProduct = Mapping[str, tuple[str, ...]]
"""Allowed words by product; a product that is not in it has those of the nearest that it is like."""

_UNLISTED_TAGS = {"A2": "NC", "950": "NC", "910": "NHWC", "310P": "NHWC", "310B": "NC"}
"""A tag that no page lists and the code takes."""

_DATA = ("dtype", ("BF16", "FLOAT16", "INT32"))
_INDEX = ("index_dtype", ("INT64", "INT8", "FLOAT"))
"""Field of a template and what to put there for a dtype that a list does not hold, the most tempting first."""

_PLAIN_ORDER = {3: "NCL", 4: "NCHW", 5: "NCDHW"}

_PLANES = {2: ("H * W", (1, 1, 65536, 32768)), 3: ("D * H * W", (1, 1, 64, 1024, 32768))}
"""What the plane is called, and a shape of self whose plane is one cell too large."""

_WORDS = {0: "zero", 1: "one", 2: "two", 3: "three"}


# Changes that breaches make to a legal call.


def longer(shape: Shape) -> Shape:
    """One more cell along the last axis."""
    return (*shape[:-1], shape[-1] + 1)


def unbatched(shape: Shape) -> Shape:
    return shape[1:]


def more_batches(shape: Shape) -> Shape:
    return (shape[0] + 1, *shape[1:])


def without_batches(shape: Shape) -> Shape:
    return (0, *shape[1:])


def last_is(value: int) -> Callable[[Shape], Shape]:
    return lambda values: (*values[:-1], value)


def of_rank(rank: int) -> Callable[[Shape], Shape]:
    return lambda shape: (*(1,) * (rank - len(shape)), *shape)


# Pointers and products.


def null_outputs() -> tuple[Rule, ...]:
    """The two out-pointers; no page names them."""
    return tuple(
        Rule(
            name=f"null.{name}",
            statement=f"The out-pointer {name} is not null.",
            decides=_output_is_null(name),
            status=ReturnCode.NULL_POINTER,
            source="code",
            page=Page("silent", "E12"),
            breach=Breach(null_outputs=(name,)),
        )
        for name in OUT_POINTERS
    )


def not_null(name: str, page: Page | None = None, earlier: Earlier | None = None) -> Rule:
    """A tensor or list that must be there."""
    is_list = name in ("kernelSize", "stride", "padding", "dilation", "outputSize")
    return Rule(
        name=f"null.{name}",
        statement=f"{name} is not a null pointer.",
        decides=_is_null(name),
        status=ReturnCode.NULL_POINTER,
        source="code" if page else "page",
        page=page,
        earlier=earlier,
        breach=Breach(lists={name: None}) if is_list else Breach(tensors={name: None}),
    )


def not_supported(reach: Reach, **fields: Any) -> Rule:
    """Products that refuse the API whatever the call."""
    rule = Rule(
        name="product",
        statement=lambda products: f"The API is not supported on {names(products)}.",
        decides=always,
        reach=reach,
        breach=NOTHING_TO_BREAK,
    )
    return replace(rule, **fields)


# Dtypes.


def dtype_listed(tensor: str, allowed: PerProduct, **fields: Any) -> Rule:
    """A tensor whose dtype is one of the product's."""
    field, candidates = _INDEX if tensor.startswith("indices") else _DATA
    rule = Rule(
        name=f"dtype.{tensor}",
        statement=lambda products: f"{tensor} is {_words_on(products, allowed)}.",
        decides=lambda call, product: call.tensor(tensor).dtype not in product.value_in(allowed),
        tables=(allowed,),
        breach=lambda product: Breach(template={field: _outside(product.value_in(allowed), candidates)}),
    )
    return replace(rule, **fields)


def dtype_same(tensor: str, **fields: Any) -> Rule:
    """A tensor of self's dtype."""
    rule = Rule(
        name=f"dtype.{tensor}",
        statement=f"{tensor} has self's dtype.",
        decides=lambda call, product: call.tensor(tensor).dtype != call.tensor("self").dtype,
        breach=Breach(tensors={tensor: {"dtype": "FLOAT16"}}),
    )
    return replace(rule, **fields)


# Formats and ranks.


def format_same(*tensors: str) -> tuple[Rule, ...]:
    """Tensors that carry self's format tag."""
    return tuple(
        Rule(
            name=f"format.{tensor}",
            statement=f"{tensor} has self's format tag.",
            decides=_format_differs(tensor),
            breach=Breach(tensors={tensor: {"format": "NC"}}),
        )
        for tensor in tensors
    )


def not_private(*tensors: str) -> Rule:
    """Data tensors of equal tags, none of them private."""
    return Rule(
        name="format.private",
        statement="The data tensors carry no private format tag.",
        decides=_any_private(tensors),
        breach=Breach(tensors={tensor: {"format": "NC1HWC0"} for tensor in tensors}),
    )


def indices_not_private() -> Rule:
    return Rule(
        name="format.private.indices",
        statement="indices carries no private format tag.",
        decides=_any_private(("indices",)),
        breach=Breach(tensors={"indices": {"format": "NC1HWC0"}}),
    )


def listed_tags(allowed: PerProduct, erratum: str, **fields: Any) -> Rule:
    """Tags that the page lists, which the code does not check.

    Where a page lists ND, a tag that names the same order of axes for the tensor's rank counts as listed.
    """
    rule = Rule(
        name="format.listed",
        statement=lambda products: f"The format tag is one that the page lists: {_words_on(products, allowed)}.",
        decides=lambda call, product: not _is_listed(call.tensor("self"), product.value_in(allowed)),
        status=None,
        tables=(allowed, _UNLISTED_TAGS),
        page=Page("refuses", erratum),
        breach=lambda product: Breach(template={"tag": product.value_in(_UNLISTED_TAGS)}),
    )
    return replace(rule, **fields)


def rank_in(tensor: str, ranks: tuple[int, int]) -> Rule:
    return Rule(
        name=f"rank.{tensor}",
        statement=f"{tensor} has rank {ranks[0]} or {ranks[1]}.",
        decides=lambda call, product: call.tensor(tensor).rank not in ranks,
        breach=Breach(tensors={tensor: {"shape": of_rank(ranks[1] + 1)}}),
    )


# Attribute lists.


def length_in(name: str, lengths: tuple[int, ...], **fields: Any) -> Rule:
    words = joined(tuple(_WORDS[length] for length in lengths), "or")
    rule = Rule(
        name=f"length.{name}",
        statement=f"{name} holds {words} values.",
        decides=lambda call, product: len(call.attribute(name)) not in lengths,
        breach=Breach(lists={name: (1,) * (lengths[-1] + 1)}),
    )
    return replace(rule, **fields)


def kernel_positive() -> Rule:
    return Rule(
        name="kernelSize.positive",
        statement="Every value of kernelSize is at least 1.",
        decides=_attribute_below("kernelSize", 1),
        breach=Breach(template={"kernel_size": last_is(0)}),
    )


def stride_positive() -> Rule:
    return Rule(
        name="stride.positive",
        statement="Every value of stride is at least 1.",
        decides=_attribute_below("stride", 1),
        breach=Breach(lists={"stride": (0,)}),
    )


def padding_not_negative() -> Rule:
    return Rule(
        name="padding.not-negative",
        statement="Every value of padding is at least 0.",
        decides=_attribute_below("padding", 0),
        breach=Breach(template={"padding": last_is(-1)}),
    )


def padding_at_most_half(page: Page | None = None) -> Rule:
    return Rule(
        name="padding.at-most-half",
        statement="Padding is at most half the kernel (rounded down) on every axis.",
        decides=padding_exceeds(2),
        source="code" if page else "page",
        page=page,
        breach=Breach(template={"padding": last_is(2)}),
    )


def dilation_positive(**fields: Any) -> Rule:
    rule = Rule(
        name="dilation.positive",
        statement="Every value of dilation is at least 1.",
        decides=_attribute_below("dilation", 1),
        breach=Breach(template={"dilation": last_is(0)}),
    )
    return replace(rule, **fields)


def dilation_one(**fields: Any) -> Rule:
    rule = Rule(
        name="dilation.one",
        statement="Every value of dilation is 1.",
        decides=lambda call, product: set(attribute(call, "dilation")) != {1},
        breach=Breach(template={"dilation": last_is(2)}),
    )
    return replace(rule, **fields)


# Shapes.


def plane_bounded(spatial_rank: int, **fields: Any) -> Rule:
    """The plane that int32 indices can address."""
    axes, shape_above = _PLANES[spatial_rank]
    rule = Rule(
        name="plane",
        statement=f"{axes} of self is at most 2^31 - 1, in signed 64-bit arithmetic.",
        decides=lambda call, product: plane(call) > INT32_MAX,
        reach=PRE_950,
        breach=Breach(template={"shape": shape_above}),
    )
    return replace(rule, **fields)


def some_window_fits(**fields: Any) -> Rule:
    rule = Rule(
        name="shape.pooled",
        statement="At least one window fits along every axis.",
        decides=lambda call, product: nothing_pooled(call),
        breach=Breach(template={"kernel_size": last_is(16)}),
    )
    return replace(rule, **fields)


def shape_same(tensor: str, model: str) -> Rule:
    return Rule(
        name=f"shape.{tensor}",
        statement=f"{tensor} has {model}'s shape.",
        decides=lambda call, product: call.tensor(tensor).shape != call.tensor(model).shape,
        breach=Breach(tensors={tensor: {"shape": longer}}),
    )


def empty_exit(statement: str, tensors: tuple[str, ...], page: Page | None = None) -> Rule:
    """The early success of an empty call: workspace 0, nothing computed, nothing checked any more."""
    return Rule(
        name="empty",
        statement=statement,
        decides=lambda call, product: any(call.tensor(name).is_empty for name in tensors),
        status=ReturnCode.SUCCESS,
        source="code",
        page=page,
        breach=Breach(template={"shape": without_batches}),
    )


# After the argument checks.


def assembly(name: str, statement: Statement, decides: Decides, breach: Breach | BreachOf, **fields: Any) -> Rule:
    """What fails while the library assembles the operators of a call that passed its checks."""
    rule = Rule(
        name=name,
        statement=statement,
        decides=decides,
        status=ReturnCode.INTERNAL_NULL,
        source="code",
        stage="assembly",
        breach=breach,
    )
    return replace(rule, **fields)


def views_inside(*tensors: str) -> Rule:
    """Strided inputs, which the library copies into contiguous ones before anything else."""
    return assembly(
        "storage",
        f"{joined(tensors, 'and')} {'stays' if len(tensors) == 1 else 'stay'} within the storage where not contiguous.",
        lambda call, product: any(leaves_storage(call.tensor(name)) for name in tensors),
        Breach(tensors={"self": {"strides": lambda strides: tuple(2 * stride for stride in strides)}}),
        page=Page("silent", "C12"),
    )


def tag_rank_fits(**fields: Any) -> Rule:
    """The tag's own rank, which the assembly of results insists on."""
    rule = assembly(
        "format.rank",
        "The format tag's own rank is the tensors' rank.",
        lambda call, product: not tag_fits(call.tensor("self")),
        Breach(template={"tag": "NCHW"}),
        page=Page("refuses", "C1"),
    )
    return replace(rule, **fields)


def tiling(name: str, statement: Statement, decides: Decides, breach: Breach | BreachOf, **fields: Any) -> Rule:
    """What an operator's tiling refuses; in phase two, unless the fields say otherwise."""
    rule = Rule(
        name=name,
        statement=statement,
        decides=decides,
        status=ReturnCode.INTERNAL_NULL,
        source="observed",
        stage="tiling",
        phase=2,
        breach=breach,
    )
    return replace(rule, **fields)


def padding_exceeds(divisor: int) -> Decides:
    """Whether padding is above the kernel divided by ``divisor`` on some axis."""

    def decides(call: ContractCall, product: Product) -> bool:
        pairs = zip(attribute(call, "padding"), attribute(call, "kernelSize"), strict=True)
        return any(padding > kernel // divisor for padding, kernel in pairs)

    return decides


def joined(words: tuple[str, ...], conjunction: str) -> str:
    """``A, B or C``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def names(products: Sequence[Product]) -> str:
    """``A2, A3 and 950``."""
    return joined(tuple(product.name for product in products), "and")


def _output_is_null(name: str) -> Decides:
    return lambda call, product: name in call.null_outputs


def _is_null(name: str) -> Decides:
    def decides(call: ContractCall, product: Product) -> bool:
        return (call.tensors[name] if name in call.tensors else call.lists[name]) is None

    return decides


def _format_differs(tensor: str) -> Decides:
    return lambda call, product: call.tensor(tensor).format != call.tensor("self").format


def _any_private(tensors: tuple[str, ...]) -> Decides:
    return lambda call, product: any(call.tensor(name).format in PRIVATE_TAGS for name in tensors)


def _attribute_below(name: str, least: int) -> Decides:
    return lambda call, product: min(attribute(call, name)) < least


def _is_listed(tensor: TensorArgument, listed: tuple[str, ...]) -> bool:
    same_order = "ND" in listed and tensor.format == _PLAIN_ORDER.get(tensor.rank)
    return tensor.format in listed or same_order


def _outside(allowed: tuple[str, ...], candidates: tuple[str, ...]) -> str:
    return next(dtype for dtype in candidates if dtype not in allowed)


def _words_on(products: Products, allowed: PerProduct) -> str:
    """``A, B or C on A2 and A3; D on 950``, products of equal sets together."""
    groups: dict[tuple[str, ...], list[Product]] = {}
    for product in products:
        groups.setdefault(product.value_in(allowed), []).append(product)
    return "; ".join(f"{joined(words, 'or')} on {names(alike)}" for words, alike in groups.items())
