"""Clauses of the adaptive forward APIs, in the order in which the library checks them.

Pages: aclnnAdaptiveMaxPool2d, aclnnAdaptiveMaxPool3d. Code: the library's ``pooling/adaptive_max_pool2d`` and
``pooling/adaptive_max_pool3d``, read; unlike the backward APIs these have not been run.
"""

from __future__ import annotations

from math import prod

from poolproof.references.contract.builders import (
    FLOATS,
    INTEGERS,
    assembly,
    dtype_listed,
    dtype_same,
    empty_exit,
    format_same,
    last_is,
    length_in,
    listed_tags,
    longer,
    more_batches,
    not_null,
    not_supported,
    null_outputs,
    plane_bounded,
    rank_in,
    shape_same,
    views_inside,
    without_batches,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import (
    INT32_MAX,
    adaptive_shape,
    divides,
    plane,
    same_or_single,
    tag_fits,
)
from poolproof.references.contract.reach import BEFORE_A2, ONLY_310, ONLY_950, SINCE_A2
from poolproof.references.contract.rules import Breach, ClauseTable, Page, Rule
from poolproof.references.products import Product

_OUTPUTS = ("outputOut", "indicesOut")
_POINTERS = (*null_outputs(), *map(not_null, ("self", "outputSize", "outputOut", "indicesOut")))
_OUTPUT_MISFITS = {"outputOut": {"shape": longer}, "indicesOut": {"shape": longer}}


def _hollow() -> Rule:
    return Rule(
        name="shape.hollow",
        statement="No axis of self but the first has length 0.",
        decides=lambda call, product: min(call.tensor("self").shape[1:]) < 1,
        breach=Breach(template={"shape": lambda shape: (shape[0], 0, *shape[2:])}),
    )


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """As many elements, other lengths."""
    return (*shape[:-2], shape[-1], shape[-2])


def _size_positive(page: Page | None = None) -> Rule:
    return Rule(
        name="outputSize.positive",
        statement="Every value of outputSize is at least 1.",
        decides=lambda call, product: min(call.attribute("outputSize"), default=1) < 1,
        page=page,
        breach=Breach(template={"output_size": last_is(0)}),
    )


def _exit() -> Rule:
    return empty_exit("The first axis of self has not length 0; with it the call succeeds.", ("self",))


# 2-D.

_WITH_BF16 = ("FLOAT", "FLOAT16", "BF16", "DOUBLE")
_WITHOUT_BF16 = ("FLOAT", "FLOAT16", "DOUBLE")
_DTYPES_2D = {
    "A2": _WITH_BF16,
    "950": _WITH_BF16,
    "910": _WITHOUT_BF16,
    "310P": _WITHOUT_BF16,
    "310B": _WITHOUT_BF16,
}


def _takes_general_path(call: ContractCall, product: Product) -> bool:
    """Whether the call is left to the oldest implementation, the only one that checks tags and output shapes."""
    return not product.value_in(SINCE_A2) or call.tensor("self").dtype == "DOUBLE"


def _unsupported_by_general_path(call: ContractCall, product: Product) -> bool:
    tensor = call.tensor("self")
    return _takes_general_path(call, product) and tensor.rank == 4 and tensor.format not in ("NCHW", "NHWC")


def _outputs_retagged(call: ContractCall, product: Product) -> bool:
    """Whether results are given the outputs' tags, which fails where a tag's rank is another."""
    if _takes_general_path(call, product):
        return call.tensor("self").rank == 3
    return divides(call)


def _general_shape_differs(call: ContractCall, product: Product) -> bool:
    expected = adaptive_shape(call)
    return _takes_general_path(call, product) and not same_or_single(call.tensor("outputOut").shape, expected)


def _elements_differ(call: ContractCall, product: Product) -> bool:
    return prod(call.tensor("outputOut").shape) != prod(adaptive_shape(call))


ADAPTIVE_2D = ClauseTable.of(
    "aclnnAdaptiveMaxPool2d",
    "adaptive2d-fwd",
    *_POINTERS,
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
    _hollow(),
    length_in("outputSize", (2,)),
    _size_positive(Page("agrees", "E26")),
    Rule(
        name="shape.outputOut",
        statement="outputOut has self's leading axes and outputSize.",
        decides=lambda call, product: call.tensor("outputOut").shape != adaptive_shape(call),
        status=None,
        reach=SINCE_A2,
        page=Page("refuses", "E27"),
        breach=Breach(tensors={name: {"shape": _swapped} for name in _OUTPUTS}),
    ),
    _exit(),
    views_inside("self"),
    assembly(
        "format.general",
        "On 910, and with DOUBLE data, tensors of rank 4 are tagged NCHW or NHWC.",
        _unsupported_by_general_path,
        Breach(template={"tag": "HWCN", "dtype": "DOUBLE"}),
        page=Page("refuses", "E29"),
    ),
    assembly(
        "format.rank",
        "The outputs' tags have the outputs' rank (at rank 3 on 910 and with DOUBLE data, elsewhere where outputSize"
        " divides self's lengths).",
        lambda call, product: (
            _outputs_retagged(call, product) and not all(tag_fits(call.tensor(name)) for name in _OUTPUTS)
        ),
        Breach(template={"shape": (3, 6, 7), "output_size": (3, 7), "tag": "NCHW"}),
        page=Page("allows", "C1"),
    ),
    assembly(
        "shape.outputOut.general",
        "On 910, and with DOUBLE data, outputOut has self's leading axes and outputSize.",
        _general_shape_differs,
        Breach(template={"dtype": "DOUBLE"}, tensors=_OUTPUT_MISFITS),
        page=Page("refuses", "E27"),
    ),
    assembly(
        "shape.outputOut.elements",
        "outputOut has as many elements as self's leading axes and outputSize ask for.",
        _elements_differ,
        Breach(tensors=_OUTPUT_MISFITS),
        reach=SINCE_A2,
        page=Page("refuses", "E27"),
    ),
)


# 3-D.

_TAGS_3D = {"A2": ("NCDHW", "NCHW"), "950": ("NCDHW", "NCHW", "ND")}
_LENGTHS = {"A2": (3,), "950": (0, 1, 3)}


def _leading_axes(call: ContractCall) -> int:
    """How many axes of outputOut come before the spatial ones."""
    return call.tensor("outputOut").rank - 3


def _leading_differ(call: ContractCall, product: Product) -> bool:
    count = _leading_axes(call)
    return call.tensor("self").shape[:count] != call.tensor("outputOut").shape[:count]


def _spatial_differs(call: ContractCall, product: Product) -> bool:
    return call.tensor("outputOut").shape[_leading_axes(call) :] != adaptive_shape(call)[-3:]


def _first_axes_differ(call: ContractCall, product: Product) -> bool:
    count = len(call.attribute("outputSize"))
    return call.tensor("indicesOut").shape[:count] != call.tensor("outputOut").shape[:count]


def _plane_exceeds_indices(call: ContractCall, product: Product) -> bool:
    return call.tensor("indicesOut").dtype == "INT32" and plane(call) > INT32_MAX


def _retagged_wrongly(call: ContractCall, product: Product) -> bool:
    """Results are given the outputs' tags unless a rank-5 call needs no windowed kernel."""
    retagged = call.tensor("self").rank == 4 or divides(call)
    return retagged and not all(tag_fits(call.tensor(name)) for name in _OUTPUTS)


def _results_differ(call: ContractCall, product: Product) -> bool:
    expected = adaptive_shape(call)
    return not all(same_or_single(call.tensor(name).shape, expected) for name in _OUTPUTS)


ADAPTIVE_3D = ClauseTable.of(
    "aclnnAdaptiveMaxPool3d",
    "adaptive3d-fwd",
    *_POINTERS,
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
        breach=Breach(tensors={name: {"shape": more_batches} for name in _OUTPUTS}),
    ),
    Rule(
        name="shape.outputOut",
        statement="outputOut has outputSize as its spatial axes.",
        decides=_spatial_differs,
        breach=Breach(tensors=_OUTPUT_MISFITS),
    ),
    Rule(
        name="shape.indicesOut.first",
        statement="indicesOut has outputOut's lengths along as many axes as outputSize has values.",
        decides=_first_axes_differ,
        breach=Breach(tensors={"indicesOut": {"shape": more_batches}}),
    ),
    dtype_same("outputOut", name="dtype.outputOut.same"),
    _hollow(),
    plane_bounded(
        3,
        statement="D * H * W of self is at most 2^31 - 1 where indicesOut is INT32, in signed 64-bit arithmetic.",
        decides=_plane_exceeds_indices,
        reach=SINCE_A2,
    ),
    _size_positive(),
    Rule(
        name="shape.indicesOut",
        statement="indicesOut has outputOut's shape.",
        decides=lambda call, product: call.tensor("indicesOut").shape != call.tensor("outputOut").shape,
        status=None,
        page=Page("refuses", "E37"),
        breach=Breach(template={"shape": without_batches}, tensors={"indicesOut": {"shape": longer}}),
    ),
    _exit(),
    views_inside("self"),
    assembly(
        "format.rank",
        "The outputs' tags have the outputs' rank (at rank 4, or where outputSize divides self's lengths).",
        _retagged_wrongly,
        Breach(template={"shape": (3, 5, 6, 7), "tag": "NCDHW"}),
        page=Page("allows", "C1"),
    ),
    Rule(
        name="shape.result",
        statement="outputOut and indicesOut have self's leading axes and outputSize.",
        decides=_results_differ,
        source="code",
        stage="assembly",
        breach=Breach(tensors={"indicesOut": {"shape": longer}}),
    ),
)
