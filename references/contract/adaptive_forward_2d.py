"""Clauses of the adaptive 2-D forward API, in the order in which the library checks them.

Page: aclnnAdaptiveMaxPool2d. Code: the library's ``pooling/adaptive_max_pool2d``, and statuses measured on its host
code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolproof.references.contract.adaptive_forward import (
    OUTPUT_MISFITS,
    OUTPUTS,
    POINTERS,
    no_batches_exit,
    no_hollow_axis,
    size_positive,
)
from poolproof.references.contract.builders import (
    assembly,
    dtype_listed,
    dtype_same,
    length_in,
    listed_tags,
    not_supported,
    rank_in,
    shape_same,
    views_inside,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import (
    INT32_MAX,
    Shape,
    adaptive_shape,
    divides,
    element_count,
    same_or_single,
    tag_fits,
    wrapped,
)
from poolproof.references.contract.reach import ONLY_310, ONLY_950, PRE_950, SINCE_A2
from poolproof.references.contract.rules import Breach, ClauseTable, Page, Rule
from poolproof.references.products import Product

_WITH_BF16 = ("FLOAT", "FLOAT16", "BF16", "DOUBLE")
_WITHOUT_BF16 = ("FLOAT", "FLOAT16", "DOUBLE")
_DTYPES_2D = {
    "A2": _WITH_BF16,
    "950": _WITH_BF16,
    "910": _WITHOUT_BF16,
    "310P": _WITHOUT_BF16,
    "310B": _WITHOUT_BF16,
}


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """As many elements, other lengths."""
    return (*shape[:-2], shape[-1], shape[-2])


def _takes_general_path(call: ContractCall, product: Product) -> bool:
    """Whether the call is left to the oldest implementation, the only one that checks tags and output shapes."""
    return not product.value_in(SINCE_A2) or call.tensor("self").dtype == "DOUBLE"


def _takes_own_operator(call: ContractCall, product: Product) -> bool:
    """Whether the 950's own operator gets the work, which it does unless all windows are alike."""
    return product.value_in(ONLY_950) and not _takes_general_path(call, product) and not divides(call)


def _unsupported_by_general_path(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    return _takes_general_path(call, product) and tensor.rank == 4 and tensor.format not in ("NCHW", "NHWC")


def _permutes_three_axes(call: ContractCall, product: Product) -> bool:
    """``aclnn_adaptive_max_pool2d.cpp:282-291, 317-325``: NHWC is turned into NCHW by a list of four axes."""
    tensor = call.tensor("self")
    return tensor.rank == 3 and tensor.format == "NHWC" and not _takes_general_path(call, product)


def _unbatched_nhwc(name: str, **fields: Any) -> Rule:
    rule = assembly(
        name,
        "Tensors of rank 3 are not tagged NHWC, but for DOUBLE data.",
        _permutes_three_axes,
        Breach(template={"shape": (3, 6, 7), "tag": "NHWC"}),
        page=Page("allows", "F8"),
    )
    return replace(rule, **fields)


def _plane_exceeds_windowed_kernel(call: ContractCall, product: Product) -> bool:
    """``aclnn_adaptive_max_pool2d.cpp:380-386`` and ``max_pool3d_with_argmax_v2.cpp:66-71``."""
    *_, height, width = _as_nchw(call)
    is_windowed = divides(call) and not _takes_general_path(call, product)
    return is_windowed and wrapped(height * width) > INT32_MAX


def _as_nchw(call: ContractCall) -> Shape:
    """Self's shape once NHWC has been turned into NCHW."""
    tensor = call.tensor("self")
    if tensor.rank == 3 or tensor.format != "NHWC":
        return tensor.shape
    batch, height, width, channels = tensor.shape
    return (batch, channels, height, width)


def _is_misread(call: ContractCall, product: Product) -> bool:
    """Whether the 950's own operator pools other axes than the last two (``adaptive_max_pool2d.cpp:72-79``)."""
    tensor = call.tensor("self")
    return tensor.rank == 4 and tensor.format != "NCHW" and _takes_own_operator(call, product)


def _misread_elements_differ(call: ContractCall, product: Product) -> bool:
    return _is_misread(call, product) and _count_of_output(call) != _misread_count(call)


def _misread_count(call: ContractCall) -> int:
    """Elements of a result that was pooled along its second and third axes."""
    read = _as_nchw(call)
    return element_count((read[0], *call.attribute("outputSize"), read[3]))


def _count_of_output(call: ContractCall) -> int:
    return element_count(call.tensor("outputOut").shape)


def _outputs_retagged(call: ContractCall, product: Product) -> bool:
    """Whether results are given the outputs' tags, which fails where a tag's rank is another."""
    if _takes_general_path(call, product):
        return call.tensor("self").rank == 3
    return divides(call)


def _general_shape_differs(call: ContractCall, product: Product) -> bool:
    expected = adaptive_shape(call)
    return _takes_general_path(call, product) and not same_or_single(call.tensor("outputOut").shape, expected)


def _elements_differ(call: ContractCall, product: Product) -> bool:
    return not _is_misread(call, product) and _count_of_output(call) != element_count(adaptive_shape(call))


def _result_tag(call: ContractCall, product: Product) -> str:
    """The tag of what is copied into the outputs; ND, which is never compared, wherever it was made to fit them."""
    tensor = call.tensor("self")
    if _takes_general_path(call, product):
        return tensor.format if tensor.rank == 4 else "ND"
    if call.tensor("outputOut").rank != 4 or not _takes_own_operator(call, product):
        return "ND"
    return tensor.format if tensor.rank == 4 else "NCHW"


def _tags_differ_from_result(call: ContractCall, product: Product) -> bool:
    """``contiguous.cpp:645-652`` of ops-math."""
    tag = _result_tag(call, product)
    return tag != "ND" and any(call.tensor(name).format != tag for name in OUTPUTS)


ADAPTIVE_2D = ClauseTable.of(
    "aclnnAdaptiveMaxPool2d",
    "adaptive2d-fwd",
    *POINTERS,
    not_supported(ONLY_310, status=None, page=Page("refuses", "F3")),
    dtype_listed("self", _DTYPES_2D),
    dtype_same("outputOut"),
    dtype_listed("indicesOut", dict.fromkeys(_DTYPES_2D, ("INT64",))),
    rank_in("self", (3, 4)),
    listed_tags(
        dict.fromkeys(("A2", "950", "910"), ("NCHW", "NCL", "NHWC")),
        "E29",
        reach={"A2": True, "950": True, "910": True, "310P": False, "310B": False},
        breach=Breach(template={"shape": (3, 6, 7), "tag": "ND"}),
    ),
    shape_same("indicesOut", "outputOut"),
    no_hollow_axis(),
    length_in("outputSize", (2,)),
    size_positive(Page("agrees", "E26")),
    Rule(
        name="shape.outputOut",
        statement="outputOut has self's leading axes and outputSize.",
        decides=lambda call, product: call.tensor("outputOut").shape != adaptive_shape(call),
        status=None,
        reach=SINCE_A2,
        page=Page("refuses", "E27"),
        breach=Breach(tensors={name: {"shape": _swapped} for name in OUTPUTS}),
    ),
    no_batches_exit(),
    views_inside("self"),
    _unbatched_nhwc("format.unbatched", reach=PRE_950),
    _unbatched_nhwc("format.unbatched.950", reach=ONLY_950, crashes=True),
    assembly(
        "format.general",
        "On 910, and with DOUBLE data, tensors of rank 4 are tagged NCHW or NHWC.",
        _unsupported_by_general_path,
        Breach(template={"tag": "HWCN", "dtype": "DOUBLE"}),
        page=Page("refuses", "E29"),
    ),
    assembly(
        "plane",
        "Where outputSize divides self's lengths, H * W of self is at most 2^31 - 1, in signed 64-bit arithmetic, but"
        " for DOUBLE data.",
        _plane_exceeds_windowed_kernel,
        Breach(template={"shape": (1, 1, 65536, 32768), "output_size": (1, 1)}),
        reach=PRE_950,
        page=Page("allows", "F9"),
    ),
    assembly(
        "format.pooled-axes",
        "Where outputSize does not divide self's lengths, tensors of rank 4 are tagged NCHW; under other tags outputOut"
        " has to hold what pooling their second and third axes (NHWC read as NCHW) gives, but for DOUBLE data.",
        _misread_elements_differ,
        Breach(template={"tag": "NHWC"}),
        reach=ONLY_950,
        page=Page("allows", "F7"),
    ),
    assembly(
        "format.rank",
        "The outputs' tags have the outputs' rank (at rank 3 on 910 and with DOUBLE data, elsewhere where outputSize"
        " divides self's lengths).",
        lambda call, product: (
            _outputs_retagged(call, product) and not all(tag_fits(call.tensor(name)) for name in OUTPUTS)
        ),
        Breach(template={"shape": (3, 6, 7), "output_size": (3, 7), "tag": "NCHW"}),
        page=Page("allows", "C1"),
    ),
    assembly(
        "shape.outputOut.general",
        "On 910, and with DOUBLE data, outputOut has self's leading axes and outputSize.",
        _general_shape_differs,
        Breach(template={"dtype": "DOUBLE"}, tensors=OUTPUT_MISFITS),
        page=Page("refuses", "E27"),
    ),
    assembly(
        "shape.outputOut.elements",
        "outputOut has as many elements as self's leading axes and outputSize ask for.",
        _elements_differ,
        Breach(tensors=OUTPUT_MISFITS),
        reach=SINCE_A2,
        page=Page("refuses", "E27"),
    ),
    assembly(
        "format.outputs",
        "The outputs have the tag of a result of rank 4 that is not ND: self's on 910 and with DOUBLE data; and on 950,"
        " where outputSize does not divide self's lengths, self's or, at rank 3, NCHW.",
        _tags_differ_from_result,
        Breach(template={"dtype": "DOUBLE"}, tensors={"indicesOut": {"format": "HWCN"}}),
        page=Page("allows", "F6"),
    ),
)
