"""Clauses of the windowed forward APIs, in the order in which the library checks them.

Pages: aclnnMaxPool3dWithArgmax, aclnnMaxPool2dWithIndices, aclnnMaxPool2dWithMask. Code: the library's
``pooling/max_pool3d_with_argmax_v2``, and statuses
measured on its host code.
"""

from __future__ import annotations

from poolproof.references.contract.builders import (
    FLOATS,
    INTEGERS,
    UNNAMED,
    assembly,
    dilation_one,
    dilation_positive,
    dtype_listed,
    dtype_same,
    empty_exit,
    format_same,
    kernel_positive,
    length_in,
    listed_tags,
    longer,
    not_null,
    not_private,
    not_supported,
    null_outputs,
    padding_at_most_half,
    padding_not_negative,
    plane_bounded,
    rank_in,
    shape_same,
    some_window_fits,
    stride_positive,
    tag_rank_fits,
    views_inside,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import mask_shape, pooled_shape, runs_on_blocks, same_or_single, tag_fits
from poolproof.references.contract.planar import (
    blocks_tag_fits,
    channels_last_fits,
    computed_plane_bounded,
    no_hollow_plane,
    planar_lengths,
    pool_fits,
    result_tag_rank_fits,
)
from poolproof.references.contract.reach import BEFORE_A2, ONLY_310B, ONLY_950, PRE_950, SINCE_A2
from poolproof.references.contract.rules import Breach, ClauseTable, Earlier, Page, Rule
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product

_F1 = Earlier(ReturnCode.INVALID_PARAMETER, "F1")
"""``aclnn_max_pool3d_with_argmax.cpp:188`` has changed."""
_UNLISTED = Breach(template={"shape": (3, 6, 7), "tag": "NC"})
_TAGS_ON_950 = ("NDHWC", "NCDHW", "NCHW", "ND")


def _result_differs(tensor: str) -> Rule:
    return Rule(
        name=f"shape.{tensor}",
        statement=f"{tensor} has the pooled shape of self.",
        decides=lambda call, product: not same_or_single(call.tensor(tensor).shape, pooled_shape(call)),
        stage="assembly",
        breach=Breach(tensors={tensor: {"shape": longer}}),
    )


MAX_POOL_3D = ClauseTable.of(
    "aclnnMaxPool3dWithArgmax",
    "3d-fwd",
    *null_outputs(),
    not_supported(BEFORE_A2, page=Page("agrees", "E35")),
    not_null("self", earlier=_F1),
    not_null("kernelSize", earlier=_F1),
    not_null("stride", earlier=_F1),
    not_null("padding", earlier=_F1),
    not_null("dilation", earlier=_F1),
    not_null("out", earlier=_F1),
    not_null("indices", earlier=_F1),
    dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    dtype_listed("indices", {"A2": ("INT32",), "950": INTEGERS}),
    dtype_same("out"),
    *format_same("out", "indices"),
    rank_in("self", (4, 5)),
    Rule(
        name="format.supported",
        statement="The format tag is NDHWC, NCDHW, NCHW or ND.",
        decides=lambda call, product: call.tensor("self").format not in _TAGS_ON_950,
        reach=ONLY_950,
        breach=Breach(template={"tag": "NC"}),
    ),
    listed_tags({"A2": ("NCDHW", "ND")}, "F2", reach=PRE_950),
    length_in("kernelSize", (1, 3)),
    kernel_positive(),
    length_in("stride", (0, 1, 3)),
    stride_positive(),
    length_in("padding", (1, 3)),
    padding_not_negative(),
    padding_at_most_half(),
    length_in("dilation", (1, 3)),
    dilation_one(reach=PRE_950),
    dilation_positive(reach=ONLY_950, status=None, page=Page("refuses", "E34")),
    some_window_fits(status=None, page=Page("refuses", "E35")),
    empty_exit("self and out have no axis of length 0; with one the call succeeds.", ("self", "out")),
    views_inside("self"),
    plane_bounded(
        3,
        statement="The product of self's last three axes is at most 2^31 - 1, in signed 64-bit arithmetic.",
        status=ReturnCode.INTERNAL_NULL,
        stage="assembly",
        source="code",
        page=Page("silent", "E36"),
    ),
    tag_rank_fits(),
    _result_differs("out"),
    _result_differs("indices"),
)


def _planar_formats(listed: Rule) -> tuple[Rule, ...]:
    return (*format_same("out"), not_private("self", "out"), listed, rank_in("self", (3, 4)))


def _planar_values(*dilation: Rule) -> tuple[Rule, ...]:
    """Values of the 2-D APIs' lists, after all their lengths, and what they say of self."""
    return (
        kernel_positive(),
        stride_positive(),
        padding_not_negative(),
        padding_at_most_half(),
        *dilation,
        no_hollow_plane(),
        some_window_fits(),
    )


def _planar_exit() -> Rule:
    return empty_exit("N of self is not 0; with N = 0 the call succeeds and computes nothing.", ("self", "out"))


def _channels_last_fits(status: ReturnCode) -> Rule:
    return channels_last_fits("out", status=status, stage="assembly", source="code", page=Page("refuses", "F2"))


def _tag_is_not_inferred(call: ContractCall, product: Product) -> bool:
    """``max_pool_with_argmax_v3_infershape.cpp:87-91``."""
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format not in ("ND", "NCHW", "NHWC")


def _indices_tag_misfits(call: ContractCall, product: Product) -> bool:
    """``contiguous.cpp:645-652`` of ops-math, and ``aclnn_max_pool2d_with_indices.cpp:769-770`` at rank 3."""
    out, indices = call.tensor("out"), call.tensor("indices")
    if out.rank == 3 and product.value_in(PRE_950):
        return not tag_fits(indices)
    return out.format not in ("ND", indices.format)


def _forward_tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    """``aclnn_max_pool2d_with_indices.cpp:527, 595, 599``."""
    tensor = call.tensor("self")
    fits = tensor.format == "NCHW" if tensor.rank == 4 else tag_fits(tensor)
    return runs_on_blocks(call, product) and not fits


MAX_POOL_2D = ClauseTable.of(
    "aclnnMaxPool2dWithIndices",
    "2d-fwd",
    *null_outputs(),
    not_null("self"),
    not_null("kernelSize", UNNAMED),
    not_null("stride", UNNAMED),
    not_null("padding", UNNAMED),
    not_null("dilation", UNNAMED),
    not_null("out"),
    not_null("indices", UNNAMED),
    not_supported(BEFORE_A2),
    dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    dtype_same("out"),
    dtype_listed("indices", {"A2": INTEGERS, "950": INTEGERS}),
    *_planar_formats(listed_tags({"A2": ("NCHW", "ND"), "950": ("NCHW", "ND", "NHWC")}, "F2", breach=_UNLISTED)),
    *planar_lengths(length_in("kernelSize", (1, 2))),
    *_planar_values(dilation_positive(reach=ONLY_950), dilation_one(reach=PRE_950)),
    pool_fits("out", "indices"),
    shape_same("indices", "out"),
    _planar_exit(),
    views_inside("self"),
    computed_plane_bounded(stage="assembly"),
    assembly(
        "format.inferred",
        "On 950 tensors of rank 4 are tagged ND, NCHW or NHWC.",
        _tag_is_not_inferred,
        Breach(template={"tag": "HWCN"}),
        reach=ONLY_950,
        page=Page("allows", "F5"),
    ),
    result_tag_rank_fits(SINCE_A2, page=Page("allows", "C3")),
    _channels_last_fits(ReturnCode.INVALID_PARAMETER),
    assembly(
        "format.indices",
        "indices has the tag of a result that is not ND; at rank 3 on A2 and A3 a tag of that rank.",
        _indices_tag_misfits,
        Breach(tensors={"indices": {"format": "HWCN"}}),
        page=Page("allows", "F6"),
    ),
)

MASK = ClauseTable.of(
    "aclnnMaxPool2dWithMask",
    "mask-fwd",
    not_null("kernelSize"),
    not_null("self"),
    not_null("out"),
    length_in("kernelSize", (1, 2)),
    not_supported(ONLY_950, name="product.950"),
    *null_outputs(),
    not_null("stride"),
    not_null("padding"),
    not_null("dilation"),
    not_null("indices", UNNAMED),
    not_supported(ONLY_310B),
    dtype_listed("self", {"A2": FLOATS, "910": ("FLOAT", "FLOAT16"), "310P": ("FLOAT",)}),
    dtype_same("out"),
    dtype_listed("indices", dict.fromkeys(("A2", "910", "310P"), ("INT8",))),
    *_planar_formats(listed_tags(dict.fromkeys(("A2", "910", "310P"), ("NCHW", "ND")), "F2", breach=_UNLISTED)),
    *planar_lengths(),
    *_planar_values(dilation_one()),
    pool_fits("out"),
    Rule(
        name="shape.indices",
        statement="indices has the mask's shape: (N, C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32).",
        decides=lambda call, product: call.tensor("indices").shape != mask_shape(call),
        breach=Breach(tensors={"indices": {"shape": longer}}),
    ),
    _planar_exit(),
    views_inside("self"),
    computed_plane_bounded(stage="assembly"),
    result_tag_rank_fits(PRE_950, page=Page("allows", "C1")),
    blocks_tag_fits(
        statement="With a 1x1 kernel, and always on 910 and 310P: rank 4 is tagged NCHW, rank 3 NCL, ND or NC.",
        decides=_forward_tag_has_no_blocks,
        page=Page("allows", "F4"),
    ),
    _channels_last_fits(ReturnCode.INTERNAL_NULL),
)
