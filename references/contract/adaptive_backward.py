"""Clauses of the adaptive backward APIs, in the order in which the library checks them.

Pages: aclnnAdaptiveMaxPool2dBackward, aclnnAdaptiveMaxPool3dBackward. Code: the library's
``pooling/adaptive_max_pool3d_grad``. What comes after the argument checks is from running that code.
"""

from __future__ import annotations

from poolproof.references.contract.builders import (
    FLOATS,
    INTEGERS,
    UNNAMED,
    assembly,
    dtype_listed,
    dtype_same,
    empty_exit,
    format_same,
    listed_tags,
    more_batches,
    not_null,
    not_private,
    not_supported,
    null_outputs,
    of_rank,
    plane_bounded,
    shape_same,
    tag_rank_fits,
    tiling,
    unbatched,
    views_inside,
)
from poolproof.references.contract.call import ContractCall
from poolproof.references.contract.facts import divides, tag_fits
from poolproof.references.contract.reach import BEFORE_A2, ONLY_950, PRE_950
from poolproof.references.contract.rules import Breach, ClauseTable, Page, Rule
from poolproof.references.products import Product

_TENSORS = ("gradOutput", "self", "indices", "gradInput")
_ND = {"A2": ("ND",), "950": ("ND",)}


def _pointers_and_dtypes() -> tuple[Rule, ...]:
    return (
        *null_outputs(),
        not_null("gradOutput"),
        not_null("self"),
        not_null("indices"),
        not_null("gradInput", UNNAMED),
        dtype_same("gradOutput"),
        dtype_same("gradInput"),
        not_supported(BEFORE_A2),
        dtype_listed("self", {"A2": FLOATS, "950": FLOATS}),
        dtype_listed("indices", {"A2": INTEGERS, "950": INTEGERS}),
    )


def _agreeing_shapes() -> tuple[Rule, ...]:
    return (
        Rule(
            name="rank.equal",
            statement="All four tensors have the same rank.",
            decides=lambda call, product: len({call.tensor(name).rank for name in _TENSORS}) > 1,
            source="code",
            breach=Breach(tensors={"gradOutput": {"shape": unbatched}, "indices": {"shape": unbatched}}),
        ),
        shape_same("indices", "gradOutput"),
        shape_same("gradInput", "self"),
    )


def _formats_and_rank(ranks: tuple[int, int], unlisted: str) -> tuple[Rule, ...]:
    deeper = {name: {"shape": of_rank(ranks[1] + 1)} for name in _TENSORS}
    return (
        *format_same("gradOutput", "gradInput", "indices"),
        not_private(*_TENSORS),
        listed_tags(_ND, "F2", breach=Breach(template={"tag": unlisted})),
        Rule(
            name="rank",
            statement=f"The tensors have rank {ranks[0]} or {ranks[1]}.",
            decides=lambda call, product: call.tensor("self").rank not in ranks,
            breach=Breach(tensors=deeper),
        ),
    )


def _empty_exit() -> Rule:
    return empty_exit(
        "gradOutput, self and indices have no axis of length 0; with one the call succeeds and writes nothing.",
        ("gradOutput", "self", "indices"),
    )


def _one_window(output_size: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * len(output_size)


def _batch_rules() -> tuple[Rule, Rule]:
    """N and C of gradOutput and self: one clause, noticed in either phase by the operator that gets the work."""
    tensors = {"gradOutput": {"shape": more_batches}, "indices": {"shape": more_batches}}
    immediate = tiling(
        "shape.batch",
        "gradOutput and self agree in N and C (on 950, or where pooled lengths do not divide self's).",
        lambda call, product: _batches_differ(call) and not _takes_windowed_kernel(call, product),
        Breach(tensors=tensors),
        phase=1,
        page=Page("refuses", "C11"),
    )
    late = tiling(
        "shape.batch.divisible",
        "gradOutput and self agree in N and C (where pooled lengths divide self's).",
        lambda call, product: _batches_differ(call) and _takes_windowed_kernel(call, product),
        Breach(template={"output_size": _one_window}, tensors=tensors),
        reach=PRE_950,
        page=Page("refuses", "C11"),
    )
    return immediate, late


def _batches_differ(call: ContractCall) -> bool:
    rank = call.signature.spatial_rank
    return call.tensor("self").shape[:-rank] != call.tensor("gradOutput").shape[:-rank]


def _takes_windowed_kernel(call: ContractCall, product: Product) -> bool:
    return product.value_in(PRE_950) and divides(call)


_SHAPE_BATCH, _SHAPE_BATCH_DIVISIBLE = _batch_rules()

ADAPTIVE_2D_BACKWARD = ClauseTable.of(
    "aclnnAdaptiveMaxPool2dBackward",
    "adaptive2d-bwd",
    *_pointers_and_dtypes(),
    *_agreeing_shapes(),
    *_formats_and_rank((3, 4), "NHWC"),
    plane_bounded(2),
    plane_bounded(2, name="plane.950", status=None, reach=ONLY_950, page=Page("refuses", "E30")),
    _empty_exit(),
    views_inside("self", "gradOutput", "indices"),
    _SHAPE_BATCH,
    assembly(
        "format.rank",
        "Tensors of rank 4 carry a tag of rank 4, ND or NC; tensors of rank 3 are tagged NCL.",
        lambda call, product: (
            not tag_fits(call.tensor("self")) or (call.tensor("self").rank == 3 and call.tensor("self").format != "NCL")
        ),
        Breach(template={"shape": (3, 6, 7), "tag": "ND"}),
        source="observed",
        page=Page("allows", "C2"),
    ),
    _SHAPE_BATCH_DIVISIBLE,
)

ADAPTIVE_3D_BACKWARD = ClauseTable.of(
    "aclnnAdaptiveMaxPool3dBackward",
    "adaptive3d-bwd",
    *_pointers_and_dtypes(),
    *_agreeing_shapes(),
    plane_bounded(3),
    *_formats_and_rank((4, 5), "NDHWC"),
    dtype_listed("indices", {"A2": ("INT32",)}, reach=PRE_950, name="dtype.indices.int32"),
    _empty_exit(),
    views_inside("self", "gradOutput", "indices"),
    _SHAPE_BATCH,
    tag_rank_fits(source="observed"),
    _SHAPE_BATCH_DIVISIBLE,
)
