"""Builders of the rules that only the 2-D windowed APIs have, with indices or with a mask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolproof.references.contract.builders import (
    assembly,
    last_is,
    length_in,
    longer,
    names,
    padding_exceeds,
    plane_bounded,
    tag_rank_fits,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import (
    INT32_MAX,
    attribute,
    is_hollow,
    misreads_channels_last,
    plane,
    pooled_shape,
    runs_on_blocks,
    tag_fits,
    wrapped,
)
from poolproof.references.contract.reach import ALWAYS_ON_BLOCKS, ONLY_950, PRE_950, Reach
from poolproof.references.contract.rules import Breach, Page, Products, Rule
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product


def padding_at_most_kernel() -> Rule:
    """The weaker bound that the 2-D backward pages print; above it, page and code agree."""
    return Rule(
        name="padding.at-most-kernel",
        statement="Padding is at most the kernel on every axis.",
        decides=padding_exceeds(1),
        breach=Breach(template={"padding": last_is(3)}),
    )


def padding_at_most_half_effective() -> Rule:
    """A second look at padding, which the first makes redundant until the effective kernel overflows."""
    return Rule(
        name="padding.at-most-half-effective",
        statement="Padding is at most half the dilated kernel, in signed 64-bit arithmetic.",
        decides=_padding_exceeds_effective,
        reach=ONLY_950,
        source="observed",
        breach=Breach(lists={"dilation": (2**62, 1)}),
    )


def planar_lengths(*lengths: Rule) -> tuple[Rule, ...]:
    """Lengths of the lists, all before any value; the mask APIs have checked kernelSize's already."""
    return (*lengths, length_in("stride", (0, 1, 2)), length_in("padding", (1, 2)), length_in("dilation", (1, 2)))


def no_hollow_plane(**fields: Any) -> Rule:
    rule = Rule(
        name="shape.hollow",
        statement="C, H and W of self are not 0; only N may be.",
        decides=lambda call, product: is_hollow(call),
        breach=Breach(template={"shape": (2, 0, 6, 7)}),
    )
    return replace(rule, **fields)


def pool_fits(tensor: str, *alike: str) -> Rule:
    """The pooled tensor; ``alike`` are those that should have its shape."""
    return Rule(
        name=f"shape.{tensor}",
        statement=f"{tensor} has the pooled shape of self; NHWC is read with channels last.",
        decides=lambda call, product: call.tensor(tensor).shape != pooled_shape(call),
        breach=Breach(tensors={name: {"shape": longer} for name in (tensor, *alike)}),
    )


def computed_plane_bounded(**fields: Any) -> Rule:
    """The plane on A2 and A3, refused by the 3-D operator that computes 2-D calls there."""
    rule = plane_bounded(
        2,
        decides=lambda call, product: plane(call) > INT32_MAX and not runs_on_blocks(call, product),
        status=ReturnCode.INTERNAL_NULL,
        source="code",
        page=Page("silent", "E36"),
    )
    return replace(rule, **fields)


def result_tag_rank_fits(reach: Reach, **fields: Any) -> Rule:
    """The tag's own rank; since 950 only unbatched results are assembled, and blocks have a rule of their own."""
    rule = tag_rank_fits(
        statement=_result_tag_statement,
        decides=_result_tag_misfits,
        reach=reach,
        breach=Breach(template={"shape": (3, 6, 7), "tag": "NCHW"}),
    )
    return replace(rule, **fields)


def blocks_tag_fits(**fields: Any) -> Rule:
    """Tags that the mask APIs can turn into NC1HWC0."""
    rule = assembly(
        "format.blocks",
        _blocks_statement,
        _tag_has_no_blocks,
        Breach(template={"kernel_size": (1, 1), "padding": (0, 0), "tag": "ND"}),
        page=Page("allows", "C8"),
    )
    return replace(rule, **fields)


def channels_last_fits(tensor: str, **fields: Any) -> Rule:
    """NHWC on A2 and A3, where sizes are checked with channels last and computed with channels first."""
    rule = Rule(
        name="format.channels-last",
        statement=f"Tensors tagged NHWC, which are computed as NCHW, have a {tensor} that fits self when read so.",
        decides=misreads_channels_last,
        reach=PRE_950,
        breach=Breach(template={"tag": "NHWC"}),
    )
    return replace(rule, **fields)


def _padding_exceeds_effective(call: ContractCall, product: Product) -> bool:
    padding, kernel, dilation = (attribute(call, name) for name in ("padding", "kernelSize", "dilation"))
    axes = zip(padding, kernel, dilation, strict=True)
    return any(2 * pad > wrapped((size - 1) * step + 1) for pad, size, step in axes)


def _result_tag_statement(products: Products) -> str:
    unbatched = [product for product in products if not product.value_in(PRE_950)]
    exception = f"; on {names(unbatched)} only where that is 3" if unbatched else ""
    return f"The format tag's own rank is the tensors' rank{exception}."


def _result_tag_misfits(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    is_assembled = product.value_in(PRE_950) or tensor.rank == 3
    return is_assembled and not tag_fits(tensor) and not runs_on_blocks(call, product)


def _blocks_statement(products: Products) -> str:
    always = names([product for product in products if product.value_in(ALWAYS_ON_BLOCKS)])
    return f"With a 1x1 kernel, and with every kernel on {always}, tensors of rank 4 are NCHW or NHWC."


def _tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format not in ("NCHW", "NHWC") and runs_on_blocks(call, product)
