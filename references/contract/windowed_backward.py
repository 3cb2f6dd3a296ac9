"""Clauses of the windowed backward APIs, in the order in which the library checks them.

Pages: aclnnMaxPool3dWithArgmaxBackward, aclnnMaxPool2dWithIndicesBackward, aclnnMaxPool2dWithMaskBackward. Code: the
library's ``pooling/max_pool3d_grad_with_argmax``. What comes after the argument checks is from running that code.
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
    indices_not_private,
    kernel_positive,
    length_in,
    listed_tags,
    longer,
    more_batches,
    not_null,
    not_private,
    not_supported,
    null_outputs,
    of_rank,
    padding_at_most_half,
    padding_not_negative,
    plane_bounded,
    rank_in,
    shape_same,
    some_window_fits,
    stride_positive,
    tag_rank_fits,
    tiling,
    unbatched,
    views_inside,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import mask_shape, pooled_shape
from poolproof.references.contract.planar import (
    blocks_tag_fits,
    channels_last_fits,
    computed_plane_bounded,
    no_hollow_plane,
    padding_at_most_half_effective,
    padding_at_most_kernel,
    planar_lengths,
    pool_fits,
    result_tag_rank_fits,
)
from poolproof.references.contract.reach import BEFORE_A2, ONLY_310, ONLY_950, PRE_950, SINCE_A2
from poolproof.references.contract.rules import Breach, ClauseTable, Page, Rule
from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.products import Product


def _leading(call: ContractCall, tensor: str) -> tuple[int, ...]:
    return call.tensor(tensor).shape[: -call.signature.spatial_rank]


def _ranks_differ(call: ContractCall, product: Product) -> bool:
    return call.tensor("self").rank != call.tensor("gradOutput").rank


MAX_POOL_3D_BACKWARD = ClauseTable.of(
    "aclnnMaxPool3dWithArgmaxBackward",
    "3d-bwd",
    *null_outputs(),
    not_null("gradOutput", UNNAMED),
    not_null("self"),
    not_null("indices"),
    not_null("kernelSize", UNNAMED),
    not_null("stride", UNNAMED),
    not_null("padding", UNNAMED),
    not_null("dilation", UNNAMED),
    not_null("gradInput", UNNAMED),
    not_supported(BEFORE_A2),
    dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    dtype_listed("indices", {"A2": ("INT32",), "950": INTEGERS}),
    dtype_same("gradOutput"),
    dtype_same("gradInput"),
    *format_same("gradOutput", "gradInput"),
    not_private("self", "gradOutput", "gradInput"),
    indices_not_private(),
    listed_tags({"A2": ("ND",), "950": ("ND",)}, "E40", breach=Breach(template={"tag": "NDHWC"})),
    rank_in("gradOutput", (4, 5)),
    rank_in("gradInput", (4, 5)),
    rank_in("indices", (4, 5)),
    rank_in("self", (4, 5)),
    length_in("kernelSize", (1, 3)),
    kernel_positive(),
    length_in("stride", (0, 1, 3)),
    stride_positive(),
    length_in("padding", (1, 3)),
    padding_not_negative(),
    padding_at_most_half(),
    length_in("dilation", (1, 3)),
    dilation_positive(),
    dilation_one(status=None, page=Page("refuses", "E13")),
    plane_bounded(3),
    shape_same("indices", "gradOutput"),
    shape_same("gradInput", "self"),
    empty_exit(
        "gradOutput, self and indices have no axis of length 0; with one the call succeeds and writes nothing.",
        ("gradOutput", "self", "indices"),
        Page("refuses", "E14"),
    ),
    views_inside("self", "gradOutput", "indices"),
    assembly(
        "rank.equal",
        "self and gradOutput have the same rank.",
        _ranks_differ,
        Breach(tensors={"gradOutput": {"shape": unbatched}, "indices": {"shape": unbatched}}),
        source="observed",
        page=Page("refuses", "E38"),
    ),
    tag_rank_fits(source="observed"),
    tiling(
        "shape.batch",
        "gradOutput and self agree in N and C.",
        lambda call, product: _leading(call, "self") != _leading(call, "gradOutput"),
        Breach(tensors={"gradOutput": {"shape": more_batches}, "indices": {"shape": more_batches}}),
        page=Page("refuses", "E38"),
    ),
    tiling(
        "shape.gradOutput",
        "gradOutput has the pooled lengths of self along D, H and W.",
        lambda call, product: call.tensor("gradOutput").shape[-3:] != pooled_shape(call)[-3:],
        Breach(tensors={"gradOutput": {"shape": longer}, "indices": {"shape": longer}}),
        page=Page("refuses", "E38"),
    ),
)


def _planar_formats(listed: Rule) -> tuple[Rule, ...]:
    """Formats and ranks of the 2-D APIs, with the page's own list of tags."""
    return (
        *format_same("gradOutput", "gradInput"),
        not_private("self", "gradOutput", "gradInput"),
        indices_not_private(),
        listed,
        rank_in("self", (3, 4)),
        rank_in("gradInput", (3, 4)),
        rank_in("gradOutput", (3, 4)),
        rank_in("indices", (3, 4)),
    )


def _planar_values(*dilation: Rule) -> tuple[Rule, ...]:
    """Values of the 2-D APIs' lists, after all their lengths."""
    return (
        kernel_positive(),
        stride_positive(),
        padding_not_negative(),
        padding_at_most_kernel(),
        padding_at_most_half(Page("allows", "E11")),
        *dilation,
    )


def _planar_shapes(gradients_fit: Rule, *effective: Rule) -> tuple[Rule, ...]:
    """What the 2-D APIs check of self, gradInput and gradOutput before an empty call leaves."""
    return (
        shape_same("gradInput", "self"),
        no_hollow_plane(source="code"),
        *effective,
        some_window_fits(source="code"),
        gradients_fit,
        empty_exit("N of self is not 0; with N = 0 the call succeeds and computes nothing.", ("self",)),
        views_inside("self", "gradOutput", "indices"),
    )


def _planar_tiling() -> tuple[Rule, ...]:
    """What A2 and A3 notice only in phase two, of either 2-D API."""
    return (
        computed_plane_bounded(stage="tiling", phase=2),
        channels_last_fits(
            "gradOutput",
            status=ReturnCode.INTERNAL_NULL,
            stage="tiling",
            phase=2,
            source="observed",
            page=Page("refuses", "E39"),
        ),
    )


def _indices_of_other_rank(call: ContractCall, product: Product) -> bool:
    rank = call.tensor("self").rank
    return call.tensor("indices").rank != rank and (product.value_in(PRE_950) or rank == 3)


def _breach_of_indices_rank(product: Product) -> Breach:
    if product.value_in(PRE_950):
        return Breach(tensors={"indices": {"shape": unbatched}})
    return Breach(template={"shape": (3, 6, 7), "tag": "ND"}, tensors={"indices": {"shape": of_rank(4)}})


MAX_POOL_2D_BACKWARD = ClauseTable.of(
    "aclnnMaxPool2dWithIndicesBackward",
    "2d-bwd",
    *null_outputs(),
    not_null("gradOutput", UNNAMED),
    not_null("self"),
    not_null("indices"),
    not_null("kernelSize", UNNAMED),
    not_null("stride", UNNAMED),
    not_null("padding", UNNAMED),
    not_null("dilation", UNNAMED),
    not_null("gradInput", UNNAMED),
    not_supported(BEFORE_A2),
    dtype_listed("self", {"A2": ("FLOAT",), "950": FLOATS}),
    dtype_same("gradOutput"),
    dtype_same("gradInput"),
    dtype_listed("indices", {"A2": ("INT32", "INT8"), "950": INTEGERS}, source="code"),
    *_planar_formats(listed_tags({"A2": ("ND", "NCHW"), "950": ("ND", "NCHW", "NHWC")}, "E39")),
    *planar_lengths(length_in("kernelSize", (1, 2))),
    *_planar_values(dilation_positive(reach=ONLY_950), dilation_one(reach=PRE_950)),
    *_planar_shapes(pool_fits("gradOutput", "indices"), padding_at_most_half_effective()),
    assembly(
        "rank.indices.equal",
        "indices has self's rank; on 950 only where self has rank 3.",
        _indices_of_other_rank,
        _breach_of_indices_rank,
        source="observed",
        page=Page("refuses", "E17"),
    ),
    result_tag_rank_fits(SINCE_A2, source="observed", page=Page("allows", "C3")),
    tiling(
        "dtype.indices.int32",
        "indices is INT32; INT8 passes the argument checks only.",
        lambda call, product: call.tensor("indices").dtype == "INT8",
        Breach(template={"index_dtype": "INT8"}),
        reach=PRE_950,
        page=Page("refuses", "E16"),
    ),
    tiling(
        "shape.indices",
        "indices has gradOutput's shape.",
        lambda call, product: call.tensor("indices").shape != call.tensor("gradOutput").shape,
        Breach(tensors={"indices": {"shape": longer}}),
        page=Page("refuses", "E17"),
    ),
    *_planar_tiling(),
)


def _length_that_kills(call: ContractCall, product: Product) -> bool:
    some_null = None in (call.lists["stride"], call.lists["padding"], call.lists["dilation"])
    return some_null and len(call.attribute("kernelSize")) not in (1, 2)


MASK_BACKWARD = ClauseTable.of(
    "aclnnMaxPool2dWithMaskBackward",
    "mask-bwd",
    not_supported(ONLY_950, name="product.950", page=Page("agrees", "E21")),
    not_null("kernelSize", UNNAMED),
    not_null("self"),
    not_null("gradOutput", UNNAMED),
    Rule(
        name="length.kernelSize.null-lists",
        statement="Where kernelSize holds neither one nor two values, stride, padding and dilation are not null.",
        decides=_length_that_kills,
        status=ReturnCode.NULL_POINTER,
        source="observed",
        page=Page("refuses", "C9"),
        crashes=True,
        breach=Breach(lists={"kernelSize": (1, 1, 1), "stride": None}),
    ),
    length_in("kernelSize", (1, 2), status=ReturnCode.NULL_POINTER, source="code", page=Page("refuses", "E20")),
    *null_outputs(),
    not_null("indices"),
    not_null("stride", UNNAMED),
    not_null("padding", UNNAMED),
    not_null("dilation", UNNAMED),
    not_null("gradInput", UNNAMED),
    not_supported(ONLY_310),
    dtype_listed("self", {"A2": FLOATS, "910": ("FLOAT", "FLOAT16")}),
    dtype_same("gradOutput"),
    dtype_same("gradInput"),
    dtype_listed("indices", {"A2": ("INT8",), "910": ("INT8",)}),
    *_planar_formats(listed_tags({"A2": ("NCHW",), "910": ("NCHW",)}, "E39")),
    Rule(
        name="rank.unbatched",
        statement="self has rank 4.",
        decides=lambda call, product: call.tensor("self").rank == 3,
        status=None,
        page=Page("refuses", "E19"),
        breach=Breach(template={"shape": (3, 6, 7), "kernel_size": (1, 1), "padding": (0, 0)}),
    ),
    *planar_lengths(),
    *_planar_values(dilation_one()),
    *_planar_shapes(pool_fits("gradOutput")),
    Rule(
        name="shape.indices",
        statement="indices has the mask's shape: (N, C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32).",
        decides=lambda call, product: call.tensor("indices").shape != mask_shape(call),
        status=None,
        page=Page("refuses", "E19"),
        breach=Breach(tensors={"indices": {"shape": longer}}),
    ),
    result_tag_rank_fits(PRE_950, source="observed"),
    blocks_tag_fits(source="observed"),
    *_planar_tiling(),
)
