"""Clauses of the adaptive 3-D forward API, in the order in which the library checks them.

Page: aclnnAdaptiveMaxPool3d. Code: the library's ``pooling/adaptive_max_pool3d``, and statuses measured on its host
code.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from poolproof.references.contract.adaptive_forward import (
    OUTPUT_MISFITS,
    OUTPUTS,
    POINTERS,
    no_batches_exit,
    no_hollow_axis,
    size_positive,
)
from poolproof.references.contract.builders import (
    FLOATS,
    INTEGERS,
    assembly,
    dtype_listed,
    dtype_same,
    format_same,
    listed_tags,
    longer,
    more_batches,
    not_supported,
    plane_bounded,
    rank_in,
    views_inside,
    without_batches,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import (
    INT32_MAX,
    Shape,
    adaptive_shape,
    divides,
    plane,
    same_or_single,
    tag_fits,
    wrapped,
)
from poolproof.references.contract.reach import BEFORE_A2, ONLY_950, SINCE_A2
from poolproof.references.contract.rules import Breach, ClauseTable, Decides, Page, Rule
from poolproof.references.geometry import expand
from poolproof.references.products import Product

_TAGS_3D = {"A2": ("NCDHW", "NCHW"), "950": ("NCDHW", "NCHW", "ND")}
_LENGTHS = {"A2": (3,), "950": (0, 1, 3)}


def _leading_axes(call: ContractCall) -> int:
    """How many axes of outputOut come before the spatial ones."""
    return call.tensor("outputOut").rank - 3


def _leading_differ(call: ContractCall, product: Product) -> bool:
    count = _leading_axes(call)
    return call.tensor("self").shape[:count] != call.tensor("outputOut").shape[:count]


def _spatial_differs(call: ContractCall, product: Product) -> bool:
    """An empty outputSize keeps self's lengths, counted from the front (``aclnn_adaptive_max_pool3d.cpp:155-160``)."""
    count = _leading_axes(call)
    expected = expand(call.attribute("outputSize"), 3, call.tensor("self").shape[count : count + 3])
    return call.tensor("outputOut").shape[count:] != expected


def _first_axes_differ(call: ContractCall, product: Product) -> bool:
    count = len(call.attribute("outputSize"))
    return call.tensor("indicesOut").shape[:count] != call.tensor("outputOut").shape[:count]


def _plane_exceeds_indices(call: ContractCall, product: Product) -> bool:
    return call.tensor("indicesOut").dtype == "INT32" and plane(call) > INT32_MAX


def _has_nothing_to_do(call: ContractCall, product: Product) -> bool:
    size = call.attribute("outputSize")
    return call.tensor("self").is_empty or (product.value_in(ONLY_950) and len(size) == 3 and wrapped(prod(size)) == 0)


def _is_retagged(call: ContractCall) -> bool:
    """Whether results are given the outputs' tags: all but those of a batched call whose windows are not alike."""
    return call.tensor("self").rank == 4 or divides(call)


def _retagged_wrongly(tensor: str) -> Decides:
    """A result has self's rank, whatever that of the output."""

    def decides(call: ContractCall, product: Product) -> bool:
        result = replace(call.tensor("self"), format=call.tensor(tensor).format)
        return _is_retagged(call) and not tag_fits(result)

    return decides


def _result_differs(tensor: str) -> Decides:
    return lambda call, product: not same_or_single(call.tensor(tensor).shape, adaptive_shape(call))


def _indices_tag_differs(call: ContractCall, product: Product) -> bool:
    """``contiguous.cpp:645-652`` of ops-math."""
    tag = call.tensor("self").format
    return not _is_retagged(call) and tag not in ("ND", call.tensor("indicesOut").format)


def _fitting_tag(tensor: str, name: str, breach: Breach) -> Rule:
    return assembly(
        name,
        f"{tensor}'s tag has self's rank (at rank 4, or where outputSize divides self's lengths).",
        _retagged_wrongly(tensor),
        breach,
        page=Page("allows", "C1"),
    )


def _fitting_shape(tensor: str, name: str, breach: Breach) -> Rule:
    return Rule(
        name=name,
        statement=f"{tensor} has self's leading axes and outputSize.",
        decides=_result_differs(tensor),
        source="code",
        stage="assembly",
        breach=breach,
    )


def _without_channels(shape: Shape) -> Shape:
    return (shape[0], *shape[2:])


ADAPTIVE_3D = ClauseTable.of(
    "aclnnAdaptiveMaxPool3d",
    "adaptive3d-fwd",
    *POINTERS,
    rank_in("self", (4, 5)),
    rank_in("outputOut", (4, 5)),
    rank_in("indicesOut", (4, 5)),
    not_supported(BEFORE_A2),
    dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
    Rule(
        name="dtype.outputOut.supported",
        statement="outputOut is FLOAT, FLOAT16 or BF16.",
        decides=lambda call, product: call.tensor("outputOut").dtype not in FLOATS,
        breach=Breach(tensors={"outputOut": {"dtype": "DOUBLE"}}),
    ),
    dtype_listed("indicesOut", {"A2": ("INT32",), "950": INTEGERS}),
    Rule(
        name="format.supported",
        statement="self is tagged NCDHW or NCHW; on 950 also ND.",
        decides=lambda call, product: call.tensor("self").format not in product.value_in(_TAGS_3D),
        tables=(_TAGS_3D,),
        breach=Breach(template={"tag": "NDHWC"}),
    ),
    listed_tags({"950": ("NCDHW", "NCHW")}, "F2", reach=ONLY_950, breach=Breach(template={"tag": "ND"})),
    *format_same("outputOut"),
    Rule(
        name="length.outputSize",
        statement="outputSize holds three values; on 950 also none or one.",
        decides=lambda call, product: len(call.attribute("outputSize")) not in product.value_in(_LENGTHS),
        tables=(_LENGTHS,),
        source="code",
        breach=Breach(lists={"outputSize": (1, 1, 1, 1)}),
    ),
    Rule(
        name="shape.leading",
        statement="outputOut has self's leading axes.",
        decides=_leading_differ,
        breach=Breach(tensors={name: {"shape": more_batches} for name in OUTPUTS}),
    ),
    Rule(
        name="shape.outputOut",
        statement="outputOut has outputSize as its spatial axes.",
        decides=_spatial_differs,
        breach=Breach(tensors=OUTPUT_MISFITS),
    ),
    Rule(
        name="shape.indicesOut.first",
        statement="indicesOut has outputOut's lengths along as many axes as outputSize has values.",
        decides=_first_axes_differ,
        breach=Breach(tensors={"indicesOut": {"shape": more_batches}}),
    ),
    dtype_same("outputOut", name="dtype.outputOut.same"),
    no_hollow_axis(),
    plane_bounded(
        3,
        statement="D * H * W of self is at most 2^31 - 1 where indicesOut is INT32, in signed 64-bit arithmetic.",
        decides=_plane_exceeds_indices,
        reach=SINCE_A2,
    ),
    size_positive(),
    Rule(
        name="shape.indicesOut",
        statement="indicesOut has outputOut's shape.",
        decides=lambda call, product: call.tensor("indicesOut").shape != call.tensor("outputOut").shape,
        status=None,
        page=Page("refuses", "E37"),
        breach=Breach(template={"shape": without_batches}, tensors={"indicesOut": {"shape": longer}}),
    ),
    replace(
        no_batches_exit(),
        statement="The first axis of self has not length 0, nor on 950 the product of outputSize in signed 64-bit"
        " arithmetic; with it the call succeeds.",
        decides=_has_nothing_to_do,
    ),
    views_inside("self"),
    _fitting_tag(
        "outputOut",
        "format.rank",
        Breach(template={"shape": (3, 5, 6, 7), "tag": "NCDHW"}, tensors={"indicesOut": {"format": "NCHW"}}),
    ),
    _fitting_shape(
        "outputOut",
        "shape.result.outputOut",
        Breach(template={"output_size": (3, 3, 3)}, tensors={"outputOut": {"shape": _without_channels}}),
    ),
    _fitting_tag(
        "indicesOut",
        "format.rank.indicesOut",
        Breach(template={"output_size": (1, 1, 1)}, tensors={"indicesOut": {"format": "NCHW"}}),
    ),
    _fitting_shape("indicesOut", "shape.result", Breach(tensors={"indicesOut": {"shape": longer}})),
    assembly(
        "format.indicesOut",
        "Where self has rank 5, not tagged ND, and outputSize does not divide its lengths, indicesOut has its tag.",
        _indices_tag_differs,
        Breach(tensors={"indicesOut": {"format": "NDHWC"}}),
        page=Page("allows", "F6"),
    ),
)
