"""Clauses of the mask APIs, in the order in which the library checks them.

Pages: aclnnMaxPool2dWithMask, aclnnMaxPool2dWithMaskBackward. Code: that of the windowed APIs, and their 2-D clauses.
"""

from __future__ import annotations

from typing import Any

from poolproof.references.contract import builders as require
from poolproof.references.contract import facts
from poolproof.references.contract.builders import FLOATS, UNNAMED, longer
from poolproof.references.contract.call import Change, ContractCall
from poolproof.references.contract.clause import (
    ALWAYS_ON_BLOCKS,
    ONLY_310,
    ONLY_310B,
    ONLY_950,
    PRE_950,
    Breach,
    Clause,
    ClauseTable,
    PageReading,
    Products,
    altered,
)
from poolproof.references.contract.clauses import windowed
from poolproof.references.contract.vocabulary import OUT_POINTERS, ReturnCode
from poolproof.references.products import Product


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


def _blocks_wording(products: Products) -> str:
    always = require.names([product for product in products if product.value_in(ALWAYS_ON_BLOCKS)])
    return f"With a 1x1 kernel, and with every kernel on {always}, tensors of rank 4 are NCHW or NHWC."


def _tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format not in ("NCHW", "NHWC") and facts.runs_on_blocks(call, product)


def _blocks_tag_fits(**fields: Any) -> Clause:
    """Require tags that the mask APIs can turn into NC1HWC0."""
    return require.assembly(
        "format.blocks",
        _blocks_wording,
        _tag_has_no_blocks,
        Breach(template={"kernel_size": (1, 1), "padding": (0, 0), "tag": "ND"}),
        page=PageReading("allows", "C8"),
    ).with_fields(**fields)


MASK_BACKWARD = ClauseTable.of(
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
    *windowed.backward_planar_formats(require.listed_tags({"A2": ("NCHW",), "910": ("NCHW",)}, "E39")),
    Clause(
        "rank.unbatched",
        "self has rank 4.",
        lambda call, product: call.tensor("self").rank == 3,
        Breach(template={"shape": (3, 6, 7), "kernel_size": (1, 1), "padding": (0, 0)}),
        status=None,
        page=PageReading("refuses", "E19"),
    ),
    *windowed.planar_lengths(),
    *windowed.backward_planar_values(require.dilation_one()),
    *windowed.backward_planar_shapes(windowed.pool_fits("gradOutput")),
    _mask_fits(None, PageReading("refuses", "E19")),
    windowed.result_tag_rank_fits(PRE_950, source="observed"),
    _blocks_tag_fits(source="observed"),
    *windowed.BACKWARD_PLANAR_TILING,
)


def _forward_tag_has_no_blocks(call: ContractCall, product: Product) -> bool:
    """Source: ``aclnn_max_pool2d_with_indices.cpp:527, 595, 599``."""
    tensor = call.tensor("self")
    fits = tensor.format == "NCHW" if tensor.rank == 4 else facts.tag_fits(tensor)
    return facts.runs_on_blocks(call, product) and not fits


MASK_FORWARD = ClauseTable.of(
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
    *windowed.forward_planar_formats(
        require.listed_tags(dict.fromkeys(("A2", "910", "310P"), ("NCHW", "ND")), "F2", breach=windowed.UNLISTED)
    ),
    *windowed.planar_lengths(),
    *windowed.forward_planar_values(require.dilation_one()),
    windowed.pool_fits("out"),
    _mask_fits(ReturnCode.INVALID_PARAMETER, None),
    windowed.FORWARD_PLANAR_EXIT,
    require.views_inside("self"),
    windowed.computed_plane_bounded(stage="assembly"),
    windowed.result_tag_rank_fits(PRE_950, page=PageReading("allows", "C1")),
    _blocks_tag_fits(
        wording="With a 1x1 kernel, and always on 910 and 310P: rank 4 is tagged NCHW, rank 3 NCL, ND or NC.",
        decides=_forward_tag_has_no_blocks,
        page=PageReading("allows", "F4"),
    ),
    windowed.forward_channels_last_fits(ReturnCode.INTERNAL_NULL),
)
