"""Builders of clauses that many APIs share: pointers, dtypes, formats, ranks, lists, shapes.

A builder returns the clause with its breach, so that a row of a clause table is one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from poolproof.references.contract import facts
from poolproof.references.contract.call import ContractCall, Field
from poolproof.references.contract.clause import (
    NOTHING_TO_BREAK,
    PRE_950,
    Breach,
    Clause,
    Decides,
    Earlier,
    PageReading,
    Products,
    Reach,
    altered,
    always,
)
from poolproof.references.contract.facts import Shape
from poolproof.references.contract.vocabulary import OUT_POINTERS, PLAIN_TAGS, PRIVATE_TAGS, ReturnCode
from poolproof.references.products import Product

FLOATS = ("FLOAT", "FLOAT16", "BF16")
INTEGERS = ("INT32", "INT64")
UNNAMED = PageReading("silent", "E12")
"""For a pointer that the page does not list among those refused when null."""

PerProduct = Mapping[str, tuple[str, ...]]
"""Product -> allowed words; a product without an entry inherits by `Product.like`."""

_UNLISTED_TAGS = {"A2": "NC", "950": "NC", "910": "NHWC", "310P": "NHWC", "310B": "NC"}
"""Product -> a tag that no page lists and the code accepts."""

_DATA = ("dtype", ("BF16", "FLOAT16", "INT32"))
_INDEX = ("index_dtype", ("INT64", "INT8", "FLOAT"))
"""(Field of a template, dtypes to try for one outside a list, most plausible first)."""

_PLANES = {2: ("H * W", (1, 1, 65536, 32768)), 3: ("D * H * W", (1, 1, 64, 1024, 32768))}
"""Spatial rank -> (the plane in words, a shape of self with a plane one cell too large)."""

_NUMBERS = {0: "zero", 1: "one", 2: "two", 3: "three"}


# Changes that breaches make to a legal call.


def longer(shape: Shape) -> Shape:
    """Add a cell along the last axis."""
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
    """Put axes of length 1 before the shape's, or drop its first ones."""
    return lambda shape: (*(1,) * (rank - len(shape)), *shape[max(len(shape) - rank, 0) :])


# Pointers and products.


def not_null(*names: str, page: PageReading | None = None, earlier: Earlier | None = None) -> tuple[Clause, ...]:

    def clause(name: str) -> Clause:
        return Clause(
            f"null.{name}",
            f"The out-pointer {name} is not null." if name in OUT_POINTERS else f"{name} is not a null pointer.",
            lambda call, product: call.is_null(name),
            altered("null", None, name),
            status=ReturnCode.NULL_POINTER,
            source="code" if page else "page",
            page=page,
            earlier=earlier,
        )

    return tuple(map(clause, names))


def not_supported(reach: Reach, **fields: Any) -> Clause:
    """Refuse every call of the API on the products of ``reach``."""
    return Clause(
        "product",
        lambda products: f"The API is not supported on {names(products)}.",
        always,
        NOTHING_TO_BREAK,
        reach=reach,
    ).with_fields(**fields)


# Dtypes, formats, shapes and ranks.


def dtype_listed(tensor: str, allowed: PerProduct, **fields: Any) -> Clause:
    field, candidates = _INDEX if tensor.startswith("indices") else _DATA
    return Clause(
        f"dtype.{tensor}",
        lambda products: f"{tensor} is {_words_on(products, allowed)}.",
        lambda call, product: call.tensor(tensor).dtype not in product.value_in(allowed),
        lambda product: Breach(
            template={field: next(dtype for dtype in candidates if dtype not in product.value_in(allowed))}
        ),
        tables=(allowed,),
    ).with_fields(**fields)


def _same(field: Field, words: str, other: Any, tensor: str, model: str = "self", **fields: Any) -> Clause:
    """Require a tensor's ``field``, named by ``words``, to equal the model's; ``other`` is a different value."""
    return Clause(
        f"{field}.{tensor}",
        f"{tensor} has {model}'s {words}.",
        lambda call, product: getattr(call.tensor(tensor), field) != getattr(call.tensor(model), field),
        altered(field, other, tensor),
    ).with_fields(**fields)


dtype_same = partial(_same, "dtype", "dtype", "FLOAT16")
format_same = partial(_same, "format", "format tag", "NC")
shape_same = partial(_same, "shape", "shape", longer)


def not_private(*tensors: str, **fields: Any) -> Clause:
    return Clause(
        "format.private",
        "The data tensors carry no private format tag.",
        lambda call, product: any(call.tensor(name).format in PRIVATE_TAGS for name in tensors),
        altered("format", "NC1HWC0", *tensors),
    ).with_fields(**fields)


def listed_tags(allowed: PerProduct, erratum: str, **fields: Any) -> Clause:
    """Require a tag that the page lists, which the code does not check.

    If a page lists ND, the plain tag of the tensor's rank also counts as listed.
    """

    def decides(call: ContractCall, product: Product) -> bool:
        tensor, listed = call.tensor("self"), product.value_in(allowed)
        return tensor.format not in listed and not ("ND" in listed and tensor.format == PLAIN_TAGS.get(tensor.rank))

    return Clause(
        "format.listed",
        lambda products: f"The format tag is one that the page lists: {_words_on(products, allowed)}.",
        decides,
        lambda product: Breach(template={"tag": product.value_in(_UNLISTED_TAGS)}),
        status=None,
        tables=(allowed, _UNLISTED_TAGS),
        page=PageReading("refuses", erratum),
    ).with_fields(**fields)


def rank_in(ranks: tuple[int, int], tensor: str) -> Clause:
    return Clause(
        f"rank.{tensor}",
        f"{tensor} has rank {ranks[0]} or {ranks[1]}.",
        lambda call, product: call.tensor(tensor).rank not in ranks,
        altered("shape", of_rank(ranks[1] + 1), tensor),
    )


# Attribute lists.


def length_in(name: str, lengths: tuple[int, ...], **fields: Any) -> Clause:
    words = joined(tuple(_NUMBERS[length] for length in lengths), "or")
    return Clause(
        f"length.{name}",
        f"{name} holds {words} values.",
        lambda call, product: len(call.attribute(name)) not in lengths,
        altered("values", (1,) * (lengths[-1] + 1), name),
    ).with_fields(**fields)


def at_least(least: int, name: str, breach: Breach, **fields: Any) -> Clause:
    return Clause(
        f"{name}.{'positive' if least else 'not-negative'}",
        f"Every value of {name} is at least {least}.",
        lambda call, product: min(facts.attribute(call, name), default=least) < least,
        breach,
        **fields,
    )


KERNEL_POSITIVE = at_least(1, "kernelSize", Breach(template={"kernel_size": last_is(0)}))
STRIDE_POSITIVE = at_least(1, "stride", altered("values", (0,), "stride"))
PADDING_NOT_NEGATIVE = at_least(0, "padding", Breach(template={"padding": last_is(-1)}))
dilation_positive = partial(at_least, 1, "dilation", Breach(template={"dilation": last_is(0)}))


def padding_at_most_half(page: PageReading | None = None) -> Clause:
    return Clause(
        "padding.at-most-half",
        "Padding is at most half the kernel (rounded down) on every axis.",
        padding_exceeds(2),
        Breach(template={"padding": last_is(2)}),
        source="code" if page else "page",
        page=page,
    )


def dilation_one(**fields: Any) -> Clause:
    return Clause(
        "dilation.one",
        "Every value of dilation is 1.",
        lambda call, product: set(facts.attribute(call, "dilation")) != {1},
        Breach(template={"dilation": last_is(2)}),
    ).with_fields(**fields)


# Shapes.


def plane_bounded(spatial_rank: int, **fields: Any) -> Clause:
    """Bound the plane to the range of int32 indices."""
    axes, shape_above = _PLANES[spatial_rank]
    return Clause(
        "plane",
        f"{axes} of self is at most 2^31 - 1, in signed 64-bit arithmetic.",
        lambda call, product: facts.plane(call) > facts.INT32_MAX,
        Breach(template={"shape": shape_above}),
        reach=PRE_950,
    ).with_fields(**fields)


def some_window_fits(**fields: Any) -> Clause:
    return Clause(
        "shape.pooled",
        "At least one window fits along every axis.",
        lambda call, product: facts.nothing_pooled(call),
        Breach(template={"kernel_size": last_is(16)}),
    ).with_fields(**fields)


def empty_exit(wording: str, tensors: tuple[str, ...], page: PageReading | None = None) -> Clause:
    """Let an empty call succeed early: workspace 0, nothing computed, no further checks."""
    return Clause(
        "empty",
        wording,
        lambda call, product: any(call.tensor(name).is_empty for name in tensors),
        Breach(template={"shape": without_batches}),
        status=ReturnCode.SUCCESS,
        source="code",
        page=page,
    )


# After the argument checks.


assembly = partial(Clause, status=ReturnCode.INTERNAL_NULL, source="code", stage="assembly")
"""A refusal while operators are assembled, after the call passed its checks."""

tiling = partial(Clause, status=ReturnCode.INTERNAL_NULL, source="observed", stage="tiling", phase=2)
"""A refusal in an operator's tiling, in phase two by default."""


def views_inside(*tensors: str) -> Clause:
    """Require strided inputs to stay in their storage; the library first copies them into contiguous tensors."""
    return assembly(
        "storage",
        f"{joined(tensors, 'and')} {'stays' if len(tensors) == 1 else 'stay'} within the storage where not contiguous.",
        lambda call, product: any(facts.leaves_storage(call.tensor(name)) for name in tensors),
        altered("view", lambda view: (tuple(2 * stride for stride in view[0]), *view[1:]), "self"),
        page=PageReading("silent", "C12"),
    )


def tag_rank_fits(**fields: Any) -> Clause:
    """Require the tag's own rank, which the assembly of results demands."""
    return assembly(
        "format.rank",
        "The format tag's own rank is the tensors' rank.",
        lambda call, product: not facts.tag_fits(call.tensor("self")),
        Breach(template={"tag": "NCHW"}),
        page=PageReading("refuses", "C1"),
    ).with_fields(**fields)


def padding_exceeds(divisor: int) -> Decides:
    """Return a predicate: padding exceeds the kernel divided by ``divisor`` on some axis."""

    def decides(call: ContractCall, product: Product) -> bool:
        pairs = zip(facts.attribute(call, "padding"), facts.attribute(call, "kernelSize"), strict=True)
        return any(padding > kernel // divisor for padding, kernel in pairs)

    return decides


def joined(words: tuple[str, ...], conjunction: str) -> str:
    """Join words: ``A, B or C``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def names(products: Sequence[Product]) -> str:
    """Join names: ``A2, A3 and 950``."""
    return joined(tuple(product.name for product in products), "and")


def _words_on(products: Products, allowed: PerProduct) -> str:
    """Join words by product: ``A, B or C on A2 and A3; D on 950``."""
    groups: dict[tuple[str, ...], list[Product]] = {}
    for product in products:
        groups.setdefault(product.value_in(allowed), []).append(product)
    return "; ".join(f"{joined(words, 'or')} on {names(alike)}" for words, alike in groups.items())
