"""Clauses of the windowed APIs, with indices and with a mask, in the order in which the library checks them.

Pages: aclnnMaxPool3dWithArgmax, aclnnMaxPool2dWithIndices, aclnnMaxPool2dWithMask, and each with Backward. Code: the
library's ``pooling/max_pool3d_with_argmax_v2`` and ``pooling/max_pool3d_grad_with_argmax``, and statuses measured on
its host code.
"""

from __future__ import annotations

from typing import Any

from poolproof.references.contract import builders as require
from poolproof.references.contract import facts
from poolproof.references.contract.builders import (
    FLOATS,
    INTEGERS,
    UNNAMED,
    last_is,
    longer,
    more_batches,
    of_rank,
    unbatched,
)
from poolproof.references.contract.call import Change, ContractCall, wrapped
from poolproof.references.contract.clause import (
    BEFORE_A2,
    ONLY_310,
    ONLY_310B,
    ONLY_950,
    PRE_950,
    SINCE_A2,
    Breach,
    Clause,
    Contract,
    Earlier,
    PageReading,
    Reach,
    altered,
)
from poolproof.references.contract.vocabulary import OUT_POINTERS, ReturnCode
from poolproof.references.products import Product

_F1 = Earlier(ReturnCode.INVALID_PARAMETER, "F1")
"""``aclnn_max_pool3d_with_argmax.cpp:188`` changed."""

_INDICES_NOT_PRIVATE = require.not_private(
    "indices", name="format.private.indices", wording="indices carries no private format tag."
)

_UNLISTED = Breach(template={"shape": (3, 6, 7), "tag": "NC"})


_BACKWARD_POINTERS = (
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("gradOutput", page=UNNAMED),
    *require.not_null("self", "indices"),
    *require.not_null("kernelSize", "stride", "padding", "dilation", "gradInput", page=UNNAMED),
    require.not_supported(BEFORE_A2),
)

_VOLUME_LISTS = (
    require.length_in("kernelSize", (1, 3)),
    require.KERNEL_POSITIVE,
    require.length_in("stride", (0, 1, 3)),
    require.STRIDE_POSITIVE,
    require.length_in("padding", (1, 3)),
    require.PADDING_NOT_NEGATIVE,
    require.padding_at_most_half(),
    require.length_in("dilation", (1, 3)),
)

MAX_POOL_3D_BACKWARD = Contract.of(
    "aclnnMaxPool3dWithArgmaxBackward",
    "3d-bwd",
    *_BACKWARD_POINTERS,
    require.dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    require.dtype_listed("indices", {"A2": ("INT32",), "950": INTEGERS}),
    require.dtype_same("gradOutput"),
    require.dtype_same("gradInput"),
    require.format_same("gradOutput"),
    require.format_same("gradInput"),
    require.not_private("self", "gradOutput", "gradInput"),
    _INDICES_NOT_PRIVATE,
    require.listed_tags({"A2": ("ND",), "950": ("ND",)}, "E40", breach=Breach(template={"tag": "NDHWC"})),
    *(require.rank_in((4, 5), name) for name in ("gradOutput", "gradInput", "indices", "self")),
    *_VOLUME_LISTS,
    require.dilation_positive(),
    require.dilation_one(status=None, page=PageReading("refuses", "E13")),
    require.plane_bounded(3),
    require.shape_same("indices", "gradOutput"),
    require.shape_same("gradInput", "self"),
    require.empty_exit(
        "gradOutput, self and indices have no axis of length 0; with one the call succeeds and writes nothing.",
        ("gradOutput", "self", "indices"),
        PageReading("refuses", "E14"),
    ),
    require.views_inside("self", "gradOutput", "indices"),
    require.assembly(
        "rank.equal",
        "self and gradOutput have the same rank.",
        lambda call, product: call.tensor("self").rank != call.tensor("gradOutput").rank,
        altered("shape", unbatched, "gradOutput", "indices"),
        source="observed",
        page=PageReading("refuses", "E38"),
    ),
    require.tag_rank_fits(source="observed"),
    require.tiling(
        "shape.batch",
        "gradOutput and self agree in N and C.",
        lambda call, product: call.tensor("self").shape[:-3] != call.tensor("gradOutput").shape[:-3],
        altered("shape", more_batches, "gradOutput", "indices"),
        page=PageReading("refuses", "E38"),
    ),
    require.tiling(
        "shape.gradOutput",
        "gradOutput has the pooled lengths of self along D, H and W.",
        lambda call, product: call.tensor("gradOutput").shape[-3:] != facts.pooled_shape(call)[-3:],
        altered("shape", longer, "gradOutput", "indices"),
        page=PageReading("refuses", "E38"),
    ),
)


def _result_fits(tensor: str) -> Clause:
    return Clause(
        f"shape.{tensor}",
        f"{tensor} has the pooled shape of self.",
        lambda call, product: not facts.same_or_single(call.tensor(tensor).shape, facts.pooled_shape(call)),
        altered("shape", longer, tensor),
        stage="assembly",
    )


MAX_POOL_3D = Contract.of(
    "aclnnMaxPool3dWithArgmax",
    "3d-fwd",
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    require.not_supported(BEFORE_A2, page=PageReading("agrees", "E35")),
    *require.not_null("self", "kernelSize", "stride", "padding", "dilation", "out", "indices", earlier=_F1),
    require.dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    require.dtype_listed("indices", {"A2": ("INT32",), "950": INTEGERS}),
    require.dtype_same("out"),
    require.format_same("out"),
    require.format_same("indices"),
    require.rank_in((4, 5), "self"),
    Clause(
        "format.supported",
        "The format tag is NDHWC, NCDHW, NCHW or ND.",
        lambda call, product: call.tensor("self").format not in ("NDHWC", "NCDHW", "NCHW", "ND"),
        Breach(template={"tag": "NC"}),
        reach=ONLY_950,
    ),
    require.listed_tags({"A2": ("NCDHW", "ND")}, "F2", reach=PRE_950),
    *_VOLUME_LISTS,
    require.dilation_one(reach=PRE_950),
    require.dilation_positive(reach=ONLY_950, status=None, page=PageReading("refuses", "E34")),
    require.some_window_fits(status=None, page=PageReading("refuses", "E35")),
    require.empty_exit("self and out have no axis of length 0; with one the call succeeds.", ("self", "out")),
    require.views_inside("self"),
    require.plane_bounded(
        3,
        wording="The product of self's last three axes is at most 2^31 - 1, in signed 64-bit arithmetic.",
        status=ReturnCode.INTERNAL_NULL,
        stage="assembly",
        source="code",
        page=PageReading("silent", "E36"),
    ),
    require.tag_rank_fits(),
    _result_fits("out"),
    _result_fits("indices"),
)


# Clauses of all 2-D APIs, with indices or with a mask.


def _planar_lengths(*lengths: Clause) -> tuple[Clause, ...]:
    """Check the lengths of the lists before all values; the mask APIs check that of kernelSize earlier."""
    return (
        *lengths,
        require.length_in("stride", (0, 1, 2)),
        require.length_in("padding", (1, 2)),
        require.length_in("dilation", (1, 2)),
    )


def _no_zero_length(**fields: Any) -> Clause:
    return Clause(
        "shape.hollow",
        "C, H and W of self are not 0; only N may be.",
        lambda call, product: facts.has_zero_length(call),
        Breach(template={"shape": (2, 0, 6, 7)}),
    ).with_fields(**fields)


def _pool_fits(tensor: str, *alike: str) -> Clause:
    """Require the pooled shape; the breach also changes the tensors ``alike``."""
    return Clause(
        f"shape.{tensor}",
        f"{tensor} has the pooled shape of self; NHWC is read with channels last.",
        lambda call, product: call.tensor(tensor).shape != facts.pooled_shape(call),
        altered("shape", longer, tensor, *alike),
    )


def _computed_plane_bounded(**fields: Any) -> Clause:
    """Bound the plane on A2 and A3, where the 3-D operator that computes 2-D calls refuses a larger one."""
    return require.plane_bounded(
        2,
        decides=lambda call, product: facts.plane(call) > facts.INT32_MAX and not facts.runs_on_blocks(call, product),
        status=ReturnCode.INTERNAL_NULL,
        source="code",
        page=PageReading("silent", "E36"),
    ).with_fields(**fields)


def _result_tag_rank_fits(reach: Reach, **fields: Any) -> Clause:
    """Require the tag's own rank; since 950 only for unbatched results, and blocks have their own clause."""
    exception = "; on 950 only where that is 3" if reach is SINCE_A2 else ""
    return require.tag_rank_fits(
        wording=f"The format tag's own rank is the tensors' rank{exception}.",
        decides=_result_tag_misfits,
        reach=reach,
        breach=Breach(template={"shape": (3, 6, 7), "tag": "NCHW"}),
    ).with_fields(**fields)


def _channels_last_fits(tensor: str, **fields: Any) -> Clause:
    """Check NHWC on A2 and A3, which check sizes with channels last and compute with channels first."""
    return Clause(
        "format.channels-last",
        f"Tensors tagged NHWC, which are computed as NCHW, have a {tensor} that fits self when read so.",
        facts.misreads_channels_last,
        Breach(template={"tag": "NHWC"}),
        reach=PRE_950,
    ).with_fields(**fields)


def _padding_exceeds_effective(call: ContractCall, product: Product) -> bool:
    padding, kernel, dilation = (facts.attribute(call, name) for name in ("padding", "kernelSize", "dilation"))
    axes = zip(padding, kernel, dilation, strict=True)
    return any(2 * pad > wrapped((size - 1) * step + 1) for pad, size, step in axes)


def _result_tag_misfits(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    is_assembled = product.value_in(PRE_950) or tensor.rank == 3
    return is_assembled and not facts.tag_fits(tensor) and not facts.runs_on_blocks(call, product)


# Backward 2-D.


def _backward_planar_formats(listed: Clause) -> tuple[Clause, ...]:
    """Check formats and ranks of the 2-D APIs, with the page's own list of tags."""
    return (
        require.format_same("gradOutput"),
        require.format_same("gradInput"),
        require.not_private("self", "gradOutput", "gradInput"),
        _INDICES_NOT_PRIVATE,
        listed,
        *(require.rank_in((3, 4), name) for name in ("self", "gradInput", "gradOutput", "indices")),
    )


def _backward_planar_values(*dilation: Clause) -> tuple[Clause, ...]:
    """Check values of the 2-D APIs' lists, after all their lengths."""
    return (
        require.KERNEL_POSITIVE,
        require.STRIDE_POSITIVE,
        require.PADDING_NOT_NEGATIVE,
        Clause(  # the weaker bound that the pages print; above it, page and code agree
            "padding.at-most-kernel",
            "Padding is at most the kernel on every axis.",
            require.padding_exceeds(1),
            Breach(template={"padding": last_is(3)}),
        ),
        require.padding_at_most_half(PageReading("allows", "E11")),
        *dilation,
    )


def _backward_planar_shapes(gradients_fit: Clause, *effective: Clause) -> tuple[Clause, ...]:
    """Check self, gradInput and gradOutput before an empty call returns."""
    return (
        require.shape_same("gradInput", "self"),
        _no_zero_length(source="code"),
        *effective,
        require.some_window_fits(source="code"),
        gradients_fit,
        require.empty_exit("N of self is not 0; with N = 0 the call succeeds and computes nothing.", ("self",)),
        require.views_inside("self", "gradOutput", "indices"),
    )


_BACKWARD_PLANAR_TILING = (
    _computed_plane_bounded(stage="tiling", phase=2),
    _channels_last_fits(
        "gradOutput",
        status=ReturnCode.INTERNAL_NULL,
        stage="tiling",
        phase=2,
        source="observed",
        page=PageReading("refuses", "E39"),
    ),
)
"""Clauses of both 2-D APIs that A2 and A3 check only in phase two."""


MAX_POOL_2D_BACKWARD = Contract.of(
    "aclnnMaxPool2dWithIndicesBackward",
    "2d-bwd",
    *_BACKWARD_POINTERS,
    require.dtype_listed("self", {"A2": ("FLOAT",), "950": FLOATS}),
    require.dtype_same("gradOutput"),
    require.dtype_same("gradInput"),
    require.dtype_listed("indices", {"A2": ("INT32", "INT8"), "950": INTEGERS}, source="code"),
    *_backward_planar_formats(require.listed_tags({"A2": ("ND", "NCHW"), "950": ("ND", "NCHW", "NHWC")}, "E39")),
    *_planar_lengths(require.length_in("kernelSize", (1, 2))),
    *_backward_planar_values(require.dilation_positive(reach=ONLY_950), require.dilation_one(reach=PRE_950)),
    *_backward_planar_shapes(
        _pool_fits("gradOutput", "indices"),
        Clause(  # redundant until the effective kernel overflows
            "padding.at-most-half-effective",
            "Padding is at most half the dilated kernel, in signed 64-bit arithmetic.",
            _padding_exceeds_effective,
            altered("values", (2**62, 1), "dilation"),
            reach=ONLY_950,
            source="observed",
        ),
    ),
    require.assembly(
        "rank.indices.equal",
        "indices has self's rank; on 950 only where self has rank 3.",
        lambda call, product: (
            call.tensor("indices").rank != call.tensor("self").rank
            and (product.value_in(PRE_950) or call.tensor("self").rank == 3)
        ),
        lambda product: (
            altered("shape", unbatched, "indices")
            if product.value_in(PRE_950)
            else altered("shape", of_rank(4), "indices", shape=(3, 6, 7), tag="ND")
        ),
        source="observed",
        page=PageReading("refuses", "E17"),
    ),
    _result_tag_rank_fits(SINCE_A2, source="observed", page=PageReading("allows", "C3")),
    require.tiling(
        "dtype.indices.int32",
        "indices is INT32; INT8 passes the argument checks only.",
        lambda call, product: call.tensor("indices").dtype == "INT8",
        Breach(template={"index_dtype": "INT8"}),
        reach=PRE_950,
        page=PageReading("refuses", "E16"),
    ),
    require.tiling(
        "shape.indices",
        "indices has gradOutput's shape.",
        lambda call, product: call.tensor("indices").shape != call.tensor("gradOutput").shape,
        altered("shape", longer, "indices"),
        page=PageReading("refuses", "E17"),
    ),
    *_BACKWARD_PLANAR_TILING,
)


# Forward 2-D.


def _forward_planar_formats(listed: Clause) -> tuple[Clause, ...]:
    return (require.format_same("out"), require.not_private("self", "out"), listed, require.rank_in((3, 4), "self"))


def _forward_planar_values(*dilation: Clause) -> tuple[Clause, ...]:
    """Check values of the 2-D APIs' lists, after all their lengths, and their requirements for self."""
    return (
        require.KERNEL_POSITIVE,
        require.STRIDE_POSITIVE,
        require.PADDING_NOT_NEGATIVE,
        require.padding_at_most_half(),
        *dilation,
        _no_zero_length(),
        require.some_window_fits(),
    )


_FORWARD_PLANAR_EXIT = require.empty_exit(
    "N of self is not 0; with N = 0 the call succeeds and computes nothing.", ("self", "out")
)


def _forward_channels_last_fits(status: ReturnCode) -> Clause:
    return _channels_last_fits("out", status=status, stage="assembly", source="code", page=PageReading("refuses", "F2"))


def _tag_is_not_inferred(call: ContractCall, product: Product) -> bool:
    """Source: ``max_pool_with_argmax_v3_infershape.cpp:87-91``."""
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format not in ("ND", "NCHW", "NHWC")


def _indices_tag_misfits(call: ContractCall, product: Product) -> bool:
    """Source: ``contiguous.cpp:645-652`` of ops-math, and ``aclnn_max_pool2d_with_indices.cpp:769-770`` at rank 3."""
    out, indices = call.tensor("out"), call.tensor("indices")
    if out.rank == 3 and product.value_in(PRE_950):
        return not facts.tag_fits(indices)
    return out.format not in ("ND", indices.format)


MAX_POOL_2D = Contract.of(
    "aclnnMaxPool2dWithIndices",
    "2d-fwd",
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("self"),
    *require.not_null("kernelSize", "stride", "padding", "dilation", page=UNNAMED),
    *require.not_null("out"),
    *require.not_null("indices", page=UNNAMED),
    require.not_supported(BEFORE_A2),
    require.dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    require.dtype_same("out"),
    require.dtype_listed("indices", {"A2": INTEGERS, "950": INTEGERS}),
    *_forward_planar_formats(
        require.listed_tags({"A2": ("NCHW", "ND"), "950": ("NCHW", "ND", "NHWC")}, "F2", breach=_UNLISTED)
    ),
    *_planar_lengths(require.length_in("kernelSize", (1, 2))),
    *_forward_planar_values(require.dilation_positive(reach=ONLY_950), require.dilation_one(reach=PRE_950)),
    _pool_fits("out", "indices"),
    require.shape_same("indices", "out"),
    _FORWARD_PLANAR_EXIT,
    require.views_inside("self"),
    _computed_plane_bounded(stage="assembly"),
    require.assembly(
        "format.inferred",
        "On 950 tensors of rank 4 are tagged ND, NCHW or NHWC.",
        _tag_is_not_inferred,
        Breach(template={"tag": "HWCN"}),
        reach=ONLY_950,
        page=PageReading("allows", "F5"),
    ),
    _result_tag_rank_fits(SINCE_A2, page=PageReading("allows", "C3")),
    _forward_channels_last_fits(ReturnCode.INVALID_PARAMETER),
    require.assembly(
        "format.indices",
        "indices has the tag of a result that is not ND; at rank 3 on A2 and A3 a tag of that rank.",
        _indices_tag_misfits,
        altered("format", "HWCN", "indices"),
        page=PageReading("allows", "F6"),
    ),
)


# With a mask.


def _length_that_kills(call: ContractCall, product: Product) -> bool:
    some_null = None in (call.lists["stride"], call.lists["padding"], call.lists["dilation"])
    return some_null and len(call.attribute("kernelSize")) not in (1, 2)


def _mask_fits(status: ReturnCode | None, page: PageReading | None) -> Clause:
    return Clause(
        "shape.indices",
        "indices has the mask's shape: (N, C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32).",
        lambda call, product: call.tensor("indices").shape != facts.mask_shape(call),
        altered("shape", longer, "indices"),
        status=status,
        page=page,
    )


def _tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format not in ("NCHW", "NHWC") and facts.runs_on_blocks(call, product)


def _blocks_tag_fits(**fields: Any) -> Clause:
    """Require tags that the mask APIs can turn into NC1HWC0."""
    return require.assembly(
        "format.blocks",
        "With a 1x1 kernel, and with every kernel on 910, tensors of rank 4 are NCHW or NHWC.",
        _tag_has_no_blocks,
        Breach(template={"kernel_size": (1, 1), "padding": (0, 0), "tag": "ND"}),
        page=PageReading("allows", "C8"),
    ).with_fields(**fields)


MASK_BACKWARD = Contract.of(
    "aclnnMaxPool2dWithMaskBackward",
    "mask-bwd",
    require.not_supported(ONLY_950, name="product.950", page=PageReading("agrees", "E21")),
    *require.not_null("kernelSize", page=UNNAMED),
    *require.not_null("self"),
    *require.not_null("gradOutput", page=UNNAMED),
    Clause(
        "length.kernelSize.null-lists",
        "Where kernelSize holds neither one nor two values, stride, padding and dilation are not null.",
        _length_that_kills,
        Breach({}, (Change("kernelSize", "values", (1, 1, 1)), Change("stride", "null"))),
        status=ReturnCode.NULL_POINTER,
        source="observed",
        page=PageReading("refuses", "C9"),
        crashes=True,
    ),
    require.length_in(
        "kernelSize", (1, 2), status=ReturnCode.NULL_POINTER, source="code", page=PageReading("refuses", "E20")
    ),
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("indices"),
    *require.not_null("stride", "padding", "dilation", "gradInput", page=UNNAMED),
    require.not_supported(ONLY_310),
    require.dtype_listed("self", {"A2": FLOATS, "910": ("FLOAT", "FLOAT16")}),
    require.dtype_same("gradOutput"),
    require.dtype_same("gradInput"),
    require.dtype_listed("indices", {"A2": ("INT8",), "910": ("INT8",)}),
    *_backward_planar_formats(require.listed_tags({"A2": ("NCHW",), "910": ("NCHW",)}, "E39")),
    Clause(
        "rank.unbatched",
        "self has rank 4.",
        lambda call, product: call.tensor("self").rank == 3,
        Breach(template={"shape": (3, 6, 7), "kernel_size": (1, 1), "padding": (0, 0)}),
        status=None,
        page=PageReading("refuses", "E19"),
    ),
    *_planar_lengths(),
    *_backward_planar_values(require.dilation_one()),
    *_backward_planar_shapes(_pool_fits("gradOutput")),
    _mask_fits(None, PageReading("refuses", "E19")),
    _result_tag_rank_fits(PRE_950, source="observed"),
    _blocks_tag_fits(source="observed"),
    *_BACKWARD_PLANAR_TILING,
)


def _forward_tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    """Source: ``aclnn_max_pool2d_with_indices.cpp:527, 595, 599``."""
    tensor = call.tensor("self")
    fits = tensor.format == "NCHW" if tensor.rank == 4 else facts.tag_fits(tensor)
    return facts.runs_on_blocks(call, product) and not fits


MASK_FORWARD = Contract.of(
    "aclnnMaxPool2dWithMask",
    "mask-fwd",
    *require.not_null("kernelSize", "self", "out"),
    require.length_in("kernelSize", (1, 2)),
    require.not_supported(ONLY_950, name="product.950"),
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("stride", "padding", "dilation"),
    *require.not_null("indices", page=UNNAMED),
    require.not_supported(ONLY_310B),
    require.dtype_listed("self", {"A2": FLOATS, "910": ("FLOAT", "FLOAT16"), "310P": ("FLOAT",)}),
    require.dtype_same("out"),
    require.dtype_listed("indices", dict.fromkeys(("A2", "910", "310P"), ("INT8",))),
    *_forward_planar_formats(
        require.listed_tags(dict.fromkeys(("A2", "910", "310P"), ("NCHW", "ND")), "F2", breach=_UNLISTED)
    ),
    *_planar_lengths(),
    *_forward_planar_values(require.dilation_one()),
    _pool_fits("out"),
    _mask_fits(ReturnCode.INVALID_PARAMETER, None),
    _FORWARD_PLANAR_EXIT,
    require.views_inside("self"),
    _computed_plane_bounded(stage="assembly"),
    _result_tag_rank_fits(PRE_950, page=PageReading("allows", "C1")),
    _blocks_tag_fits(
        wording="With a 1x1 kernel, and always on 910 and 310P: rank 4 is tagged NCHW, rank 3 NCL, ND or NC.",
        decides=_forward_tag_has_no_blocks,
        page=PageReading("allows", "F4"),
    ),
    _forward_channels_last_fits(ReturnCode.INTERNAL_NULL),
)
