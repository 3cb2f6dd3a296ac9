"""Clauses of the adaptive APIs, in the order in which the library checks them.

Pages: aclnnAdaptiveMaxPool2d, aclnnAdaptiveMaxPool3d, and both with Backward. Code: the library's
``pooling/adaptive_max_pool2d``, ``pooling/adaptive_max_pool3d`` and ``pooling/adaptive_max_pool3d_grad``, and statuses
measured on its host code.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
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
    without_batches,
)
from poolproof.references.contract.call import ContractCall, wrapped
from poolproof.references.contract.clause import (
    BEFORE_A2,
    ONLY_310,
    ONLY_950,
    PRE_950,
    SINCE_A2,
    Breach,
    Clause,
    Contract,
    PageReading,
    altered,
)
from poolproof.references.contract.facts import Shape
from poolproof.references.contract.vocabulary import OUT_POINTERS
from poolproof.references.geometry import expand
from poolproof.references.products import Product

# Backward.

_TENSORS = ("gradOutput", "self", "indices", "gradInput")

_POINTERS_AND_DTYPES = (
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("gradOutput", "self", "indices"),
    *require.not_null("gradInput", page=UNNAMED),
    require.dtype_same("gradOutput"),
    require.dtype_same("gradInput"),
    require.not_supported(BEFORE_A2),
    require.dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    require.dtype_listed("indices", {"A2": INTEGERS, "950": INTEGERS}),
)

_AGREEING_SHAPES = (
    Clause(
        "rank.equal",
        "All four tensors have the same rank.",
        lambda call, product: len({call.tensor(name).rank for name in _TENSORS}) > 1,
        altered("shape", unbatched, "gradOutput", "indices"),
        source="code",
    ),
    require.shape_same("indices", "gradOutput"),
    require.shape_same("gradInput", "self"),
)


def _formats_and_rank(ranks: tuple[int, int], unlisted: str) -> tuple[Clause, ...]:
    return (
        require.format_same("gradOutput"),
        require.format_same("gradInput"),
        require.format_same("indices"),
        require.not_private(*_TENSORS),
        require.listed_tags({"A2": ("ND",), "950": ("ND",)}, "F2", breach=Breach(template={"tag": unlisted})),
        Clause(
            "rank",
            f"The tensors have rank {ranks[0]} or {ranks[1]}.",
            lambda call, product: call.tensor("self").rank not in ranks,
            altered("shape", of_rank(ranks[1] + 1), *_TENSORS),
        ),
    )


_EMPTY_EXIT = require.empty_exit(
    "gradOutput, self and indices have no axis of length 0; with one the call succeeds and writes nothing.",
    ("gradOutput", "self", "indices"),
)


def _batches_differ(call: ContractCall) -> bool:
    rank = call.signature.spatial_rank
    return call.tensor("self").shape[:-rank] != call.tensor("gradOutput").shape[:-rank]


def _takes_windowed_kernel(call: ContractCall, product: Product) -> bool:
    return product.value_in(PRE_950) and facts.divides(call)


# The operator that gets the work checks N and C, in either phase.

_SHAPE_BATCH = require.tiling(
    "shape.batch",
    "gradOutput and self agree in N and C (on 950, or where pooled lengths do not divide self's).",
    lambda call, product: _batches_differ(call) and not _takes_windowed_kernel(call, product),
    altered("shape", more_batches, "gradOutput", "indices"),
    phase=1,
    page=PageReading("refuses", "C11"),
)

_SHAPE_BATCH_DIVISIBLE = require.tiling(
    "shape.batch.divisible",
    "gradOutput and self agree in N and C (where pooled lengths divide self's).",
    lambda call, product: _batches_differ(call) and _takes_windowed_kernel(call, product),
    altered("shape", more_batches, "gradOutput", "indices", output_size=lambda sizes: (1,) * len(sizes)),
    reach=PRE_950,
    page=PageReading("refuses", "C11"),
)

ADAPTIVE_2D_BACKWARD = Contract.of(
    "aclnnAdaptiveMaxPool2dBackward",
    "adaptive2d-bwd",
    *_POINTERS_AND_DTYPES,
    *_AGREEING_SHAPES,
    *_formats_and_rank((3, 4), "NHWC"),
    require.plane_bounded(2),
    require.plane_bounded(2, name="plane.950", status=None, reach=ONLY_950, page=PageReading("refuses", "E30")),
    _EMPTY_EXIT,
    require.views_inside("self", "gradOutput", "indices"),
    _SHAPE_BATCH,
    require.assembly(
        "format.rank",
        "Tensors of rank 4 carry a tag of rank 4, ND or NC; tensors of rank 3 are tagged NCL.",
        lambda call, product: (
            not facts.tag_fits(call.tensor("self"))
            or (call.tensor("self").rank == 3 and call.tensor("self").format != "NCL")
        ),
        Breach(template={"shape": (3, 6, 7), "tag": "ND"}),
        source="observed",
        page=PageReading("allows", "C2"),
    ),
    _SHAPE_BATCH_DIVISIBLE,
)


ADAPTIVE_3D_BACKWARD = Contract.of(
    "aclnnAdaptiveMaxPool3dBackward",
    "adaptive3d-bwd",
    *_POINTERS_AND_DTYPES,
    *_AGREEING_SHAPES,
    require.plane_bounded(3),
    *_formats_and_rank((4, 5), "NDHWC"),
    require.dtype_listed("indices", {"A2": ("INT32",)}, reach=PRE_950, name="dtype.indices.int32"),
    _EMPTY_EXIT,
    require.views_inside("self", "gradOutput", "indices"),
    _SHAPE_BATCH,
    require.tag_rank_fits(source="observed"),
    _SHAPE_BATCH_DIVISIBLE,
)


# Forward, 2-D and 3-D.

_OUTPUTS = ("outputOut", "indicesOut")
_POINTERS = (
    *require.not_null(*OUT_POINTERS, page=UNNAMED),
    *require.not_null("self", "outputSize", "outputOut", "indicesOut"),
)

_NO_ZERO_LENGTH = Clause(
    "shape.hollow",
    "No axis of self but the first has length 0.",
    lambda call, product: min(call.tensor("self").shape[1:]) < 1,
    Breach(template={"shape": lambda shape: (shape[0], 0, *shape[2:])}),
)


_size_positive = partial(require.at_least, 1, "outputSize", Breach(template={"output_size": last_is(0)}))


_NO_BATCHES_EXIT = require.empty_exit("The first axis of self has not length 0; with it the call succeeds.", ("self",))


# Forward 2-D.

_DTYPES_2D = dict.fromkeys(("A2", "950"), (*FLOATS, "DOUBLE")) | dict.fromkeys(
    ("910", "310P", "310B"), ("FLOAT", "FLOAT16", "DOUBLE")
)


def _takes_general_path(call: ContractCall, product: Product) -> bool:
    """Check whether the oldest implementation gets the call. It alone checks tags and output shapes."""
    return not product.value_in(SINCE_A2) or call.tensor("self").dtype == "DOUBLE"


def _takes_own_operator(call: ContractCall, product: Product) -> bool:
    """Check whether the 950's own operator gets the call: only if windows differ in size, and never for DOUBLE."""
    return product.value_in(ONLY_950) and not _takes_general_path(call, product) and not facts.divides(call)


def _permutes_three_axes(call: ContractCall, product: Product) -> bool:
    """Source: ``aclnn_adaptive_max_pool2d.cpp:282-291, 317-325``: a list of four axes turns NHWC into NCHW."""
    tensor = call.tensor("self")
    return tensor.rank == 3 and tensor.format == "NHWC" and not _takes_general_path(call, product)


def _unbatched_nhwc(name: str, **fields: Any) -> Clause:
    return require.assembly(
        name,
        "Tensors of rank 3 are not tagged NHWC, but for DOUBLE data.",
        _permutes_three_axes,
        Breach(template={"shape": (3, 6, 7), "tag": "NHWC"}),
        page=PageReading("allows", "F8"),
    ).with_fields(**fields)


def _plane_exceeds_windowed_kernel(call: ContractCall, product: Product) -> bool:
    """Source: ``aclnn_adaptive_max_pool2d.cpp:380-386`` and ``max_pool3d_with_argmax_v2.cpp:66-71``."""
    *_, height, width = _as_nchw(call)
    is_windowed = facts.divides(call) and not _takes_general_path(call, product)
    return is_windowed and wrapped(height * width) > facts.INT32_MAX


def _as_nchw(call: ContractCall) -> Shape:
    """Return self's shape after NHWC was turned into NCHW."""
    tensor = call.tensor("self")
    if tensor.rank == 3 or tensor.format != "NHWC":
        return tensor.shape
    batch, height, width, channels = tensor.shape
    return (batch, channels, height, width)


def _is_misread(call: ContractCall, product: Product) -> bool:
    """Check whether the 950's own operator pools other axes than the last two (``adaptive_max_pool2d.cpp:72-79``)."""
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format != "NCHW" and _takes_own_operator(call, product)


def _misread_elements_differ(call: ContractCall, product: Product) -> bool:
    if not _is_misread(call, product):
        return False
    batch, _, _, last = _as_nchw(call)
    return not _same_count(call, (batch, *call.attribute("outputSize"), last))


def _same_count(call: ContractCall, shape: Shape) -> bool:
    return facts.element_count(call.tensor("outputOut").shape) == facts.element_count(shape)


def _outputs_retagged(call: ContractCall, product: Product) -> bool:
    """Check whether results get the outputs' tags, which fails for a tag of another rank."""
    if _takes_general_path(call, product):
        return call.tensor("self").rank == 3
    return facts.divides(call)


def _result_fits(call: ContractCall, tensor: str) -> bool:
    return facts.same_or_single(call.tensor(tensor).shape, facts.adaptive_shape(call))


def _result_tag(call: ContractCall, product: Product) -> str:
    """Return the tag of the results that are copied into the outputs; ND, which always fits, if made to fit them."""
    tensor = call.tensor("self")
    if _takes_general_path(call, product):
        return tensor.format if tensor.rank == 4 else "ND"
    if call.tensor("outputOut").rank != 4 or not _takes_own_operator(call, product):
        return "ND"
    return tensor.format if tensor.rank == 4 else "NCHW"


def _tags_differ_from_result(call: ContractCall, product: Product) -> bool:
    """Source: ``contiguous.cpp:645-652`` of ops-math."""
    tag = _result_tag(call, product)
    return tag != "ND" and any(call.tensor(name).format != tag for name in _OUTPUTS)


ADAPTIVE_2D = Contract.of(
    "aclnnAdaptiveMaxPool2d",
    "adaptive2d-fwd",
    *_POINTERS,
    require.not_supported(ONLY_310, status=None, page=PageReading("refuses", "F3")),
    require.dtype_listed("self", _DTYPES_2D),
    require.dtype_same("outputOut"),
    require.dtype_listed("indicesOut", dict.fromkeys(_DTYPES_2D, ("INT64",))),
    require.rank_in((3, 4), "self"),
    require.listed_tags(
        dict.fromkeys(("A2", "950", "910"), ("NCHW", "NCL", "NHWC")),
        "E29",
        reach={"A2": True, "950": True, "910": True, "310P": False, "310B": False},
        breach=Breach(template={"shape": (3, 6, 7), "tag": "ND"}),
    ),
    require.shape_same("indicesOut", "outputOut"),
    _NO_ZERO_LENGTH,
    require.length_in("outputSize", (2,)),
    _size_positive(page=PageReading("agrees", "E26")),
    Clause(
        "shape.outputOut",
        "outputOut has self's leading axes and outputSize.",
        lambda call, product: call.tensor("outputOut").shape != facts.adaptive_shape(call),
        altered("shape", lambda shape: (*shape[:-2], shape[-1], shape[-2]), *_OUTPUTS),
        status=None,
        reach=SINCE_A2,
        page=PageReading("refuses", "E27"),
    ),
    _NO_BATCHES_EXIT,
    require.views_inside("self"),
    _unbatched_nhwc("format.unbatched", reach=PRE_950),
    _unbatched_nhwc("format.unbatched.950", reach=ONLY_950, crashes=True),
    require.assembly(
        "format.general",
        "On 910, and with DOUBLE data, tensors of rank 4 are tagged NCHW or NHWC.",
        lambda call, product: (
            _takes_general_path(call, product)
            and call.tensor("self").rank == 4
            and call.tensor("self").format not in ("NCHW", "NHWC")
        ),
        Breach(template={"tag": "HWCN", "dtype": "DOUBLE"}),
        page=PageReading("refuses", "E29"),
    ),
    require.assembly(
        "plane",
        "Where outputSize divides self's lengths, H * W of self is at most 2^31 - 1, in signed 64-bit arithmetic, but"
        " for DOUBLE data.",
        _plane_exceeds_windowed_kernel,
        Breach(template={"shape": (1, 1, 65536, 32768), "output_size": (1, 1)}),
        reach=PRE_950,
        page=PageReading("allows", "F9"),
    ),
    require.assembly(
        "format.pooled-axes",
        "Where outputSize does not divide self's lengths, tensors of rank 4 are tagged NCHW; under other tags outputOut"
        " has to hold what pooling their second and third axes (NHWC read as NCHW) gives, but for DOUBLE data.",
        _misread_elements_differ,
        Breach(template={"tag": "NHWC"}),
        reach=ONLY_950,
        page=PageReading("allows", "F7"),
    ),
    require.assembly(
        "format.rank",
        "The outputs' tags have the outputs' rank (at rank 3 on 910 and with DOUBLE data, elsewhere where outputSize"
        " divides self's lengths).",
        lambda call, product: (
            _outputs_retagged(call, product) and not all(facts.tag_fits(call.tensor(name)) for name in _OUTPUTS)
        ),
        Breach(template={"shape": (3, 6, 7), "output_size": (3, 7), "tag": "NCHW"}),
        page=PageReading("allows", "C1"),
    ),
    require.assembly(
        "shape.outputOut.general",
        "On 910, and with DOUBLE data, outputOut has self's leading axes and outputSize.",
        lambda call, product: _takes_general_path(call, product) and not _result_fits(call, "outputOut"),
        altered("shape", longer, *_OUTPUTS, dtype="DOUBLE"),
        page=PageReading("refuses", "E27"),
    ),
    require.assembly(
        "shape.outputOut.elements",
        "outputOut has as many elements as self's leading axes and outputSize ask for.",
        lambda call, product: not _is_misread(call, product) and not _same_count(call, facts.adaptive_shape(call)),
        altered("shape", longer, *_OUTPUTS),
        reach=SINCE_A2,
        page=PageReading("refuses", "E27"),
    ),
    require.assembly(
        "format.outputs",
        "The outputs have the tag of a result of rank 4 that is not ND: self's on 910 and with DOUBLE data; and on 950,"
        " where outputSize does not divide self's lengths, self's or, at rank 3, NCHW.",
        _tags_differ_from_result,
        altered("format", "HWCN", "indicesOut", dtype="DOUBLE"),
        page=PageReading("allows", "F6"),
    ),
)


# Forward 3-D.

_TAGS_3D = {"A2": ("NCDHW", "NCHW"), "950": ("NCDHW", "NCHW", "ND")}
_LENGTHS = {"A2": (3,), "950": (0, 1, 3)}


def _spatial_differs(call: ContractCall, product: Product) -> bool:
    """Expand outputSize; an empty one keeps self's first lengths (``aclnn_adaptive_max_pool3d.cpp:155-160``)."""
    count = call.tensor("outputOut").rank - 3
    expected = expand(call.attribute("outputSize"), 3, call.tensor("self").shape[count : count + 3])
    return call.tensor("outputOut").shape[count:] != expected


def _prefix_differs(call: ContractCall, tensor: str, count: int) -> bool:
    return call.tensor(tensor).shape[:count] != call.tensor("outputOut").shape[:count]


def _has_nothing_to_do(call: ContractCall, product: Product) -> bool:
    size = call.attribute("outputSize")
    return call.tensor("self").is_empty or (product.value_in(ONLY_950) and len(size) == 3 and wrapped(prod(size)) == 0)


def _is_retagged(call: ContractCall) -> bool:
    """Check whether results get the outputs' tags: always, except in a batched call with windows of different sizes."""
    return call.tensor("self").rank == 4 or facts.divides(call)


def _indices_tag_differs(call: ContractCall, product: Product) -> bool:
    """Source: ``contiguous.cpp:645-652`` of ops-math."""
    tag = call.tensor("self").format
    return not _is_retagged(call) and tag not in ("ND", call.tensor("indicesOut").format)


def _fitting_tag(tensor: str, name: str, breach: Breach) -> Clause:
    def decides(call: ContractCall, product: Product) -> bool:
        result = replace(call.tensor("self"), format=call.tensor(tensor).format)  # for any rank of the output
        return _is_retagged(call) and not facts.tag_fits(result)

    return require.assembly(
        name,
        f"{tensor}'s tag has self's rank (at rank 4, or where outputSize divides self's lengths).",
        decides,
        breach,
        page=PageReading("allows", "C1"),
    )


def _fitting_shape(tensor: str, name: str, breach: Breach) -> Clause:
    return Clause(
        name,
        f"{tensor} has self's leading axes and outputSize.",
        lambda call, product: not _result_fits(call, tensor),
        breach,
        source="code",
        stage="assembly",
    )


ADAPTIVE_3D = Contract.of(
    "aclnnAdaptiveMaxPool3d",
    "adaptive3d-fwd",
    *_POINTERS,
    *(require.rank_in((4, 5), name) for name in ("self", "outputOut", "indicesOut")),
    require.not_supported(BEFORE_A2),
    require.dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    Clause(
        "dtype.outputOut.supported",
        "outputOut is FLOAT, FLOAT16 or BF16.",
        lambda call, product: call.tensor("outputOut").dtype not in FLOATS,
        altered("dtype", "DOUBLE", "outputOut"),
    ),
    require.dtype_listed("indicesOut", {"A2": ("INT32",), "950": INTEGERS}),
    Clause(
        "format.supported",
        "self is tagged NCDHW or NCHW; on 950 also ND.",
        lambda call, product: call.tensor("self").format not in product.value_in(_TAGS_3D),
        Breach(template={"tag": "NDHWC"}),
        tables=(_TAGS_3D,),
    ),
    require.listed_tags({"950": ("NCDHW", "NCHW")}, "F2", reach=ONLY_950, breach=Breach(template={"tag": "ND"})),
    require.format_same("outputOut"),
    Clause(
        "length.outputSize",
        "outputSize holds three values; on 950 also none or one.",
        lambda call, product: len(call.attribute("outputSize")) not in product.value_in(_LENGTHS),
        altered("values", (1, 1, 1, 1), "outputSize"),
        tables=(_LENGTHS,),
        source="code",
    ),
    Clause(
        "shape.leading",
        "outputOut has self's leading axes.",
        lambda call, product: _prefix_differs(call, "self", call.tensor("outputOut").rank - 3),
        altered("shape", more_batches, *_OUTPUTS),
    ),
    Clause(
        "shape.outputOut",
        "outputOut has outputSize as its spatial axes.",
        _spatial_differs,
        altered("shape", longer, *_OUTPUTS),
    ),
    Clause(
        "shape.indicesOut.first",
        "indicesOut has outputOut's lengths along as many axes as outputSize has values.",
        lambda call, product: _prefix_differs(call, "indicesOut", len(call.attribute("outputSize"))),
        altered("shape", more_batches, "indicesOut"),
    ),
    require.dtype_same("outputOut", name="dtype.outputOut.same"),
    _NO_ZERO_LENGTH,
    require.plane_bounded(
        3,
        wording="D * H * W of self is at most 2^31 - 1 where indicesOut is INT32, in signed 64-bit arithmetic.",
        decides=lambda call, product: (
            call.tensor("indicesOut").dtype == "INT32" and facts.plane(call) > facts.INT32_MAX
        ),
        reach=SINCE_A2,
    ),
    _size_positive(),
    require.shape_same(
        "indicesOut",
        "outputOut",
        breach=altered("shape", longer, "indicesOut", shape=without_batches),
        status=None,
        page=PageReading("refuses", "E37"),
    ),
    replace(
        _NO_BATCHES_EXIT,
        wording="The first axis of self has not length 0, nor on 950 the product of outputSize in signed 64-bit"
        " arithmetic; with it the call succeeds.",
        decides=_has_nothing_to_do,
    ),
    require.views_inside("self"),
    _fitting_tag("outputOut", "format.rank", altered("format", "NCHW", "indicesOut", shape=(3, 5, 6, 7), tag="NCDHW")),
    _fitting_shape(
        "outputOut",
        "shape.result.outputOut",
        altered("shape", lambda shape: (shape[0], *shape[2:]), "outputOut", output_size=(3, 3, 3)),
    ),
    _fitting_tag(
        "indicesOut", "format.rank.indicesOut", altered("format", "NCHW", "indicesOut", output_size=(1, 1, 1))
    ),
    _fitting_shape("indicesOut", "shape.result", altered("shape", longer, "indicesOut")),
    require.assembly(
        "format.indicesOut",
        "Where self has rank 5, not tagged ND, and outputSize does not divide its lengths, indicesOut has its tag.",
        _indices_tag_differs,
        altered("format", "NDHWC", "indicesOut"),
        page=PageReading("allows", "F6"),
    ),
)
