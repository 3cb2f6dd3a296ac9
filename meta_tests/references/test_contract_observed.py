"""The contract against what a library was seen to answer, and against examples that were worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract_calls import (
    AD2,
    AD3,
    BACKWARD_APIS,
    LATER_DATA,
    MASK,
    MP2,
    MP3,
    made,
    observed_call,
    observed_rows,
)
from observed_statuses import disagreements
from poolproof.references.contract import (
    SIGNATURES,
    Follows,
    TensorArgument,
    all_clauses,
    expectations,
    predict,
    violating_call,
)
from poolproof.references.products import PRODUCTS

A2, A3, ASCEND_950 = PRODUCTS["A2"], PRODUCTS["A3"], PRODUCTS["950"]

# What a library was seen to answer.


@pytest.mark.parametrize("api", BACKWARD_APIS)
def test_predicts_every_observed_status(api: str) -> None:
    rows = [row for row in observed_rows() if row["api"] == api]
    assert len(rows) >= 120
    wrong = [
        (row, code)
        for row in rows
        if (code := expectations(PRODUCTS[row["product"]], observed_call(row)).code).crashes
        != str(row["status"]).startswith("crash")
        or (not code.crashes and predict(PRODUCTS[row["product"]], observed_call(row), tiling=False) != row["status"])
    ]
    assert wrong == []


def test_predicts_every_status_of_the_later_sample() -> None:
    rows = observed_rows(LATER_DATA)
    assert [sides for row in rows for _, agrees, sides in disagreements(row) if not agrees] == []


def test_the_later_sample_has_every_cause_product_and_forward_clause() -> None:
    rows = observed_rows(LATER_DATA)
    assert {row["cause"] for row in rows} == {None, *range(1, 15)}
    assert {row["api"] for row in rows} == set(SIGNATURES) and {row["product"] for row in rows} == set(PRODUCTS)
    met = {expectations(PRODUCTS[row["product"]], observed_call(row)).code.clause for row in rows}
    checked = {
        clause.id
        for clause in all_clauses()
        if clause.status is not None and (not SIGNATURES[clause.api].operator.is_backward or "storage" in clause.id)
    }
    assert checked - met == set()


def test_observed_rows_reach_nearly_every_backward_clause() -> None:
    met = {expectations(PRODUCTS[row["product"]], observed_call(row)).code.clause for row in observed_rows()}
    checked = {
        clause.id
        for clause in all_clauses()
        if SIGNATURES[clause.api].operator.is_backward and clause.status is not None and clause.stage != "tiling"
    }
    unmet = {f"{prefix}.storage" for prefix in ("2d-bwd", "3d-bwd", "mask-bwd", "adaptive2d-bwd", "adaptive3d-bwd")}
    assert checked - met == {"2d-bwd.padding.at-most-half-effective", "mask-bwd.rank.gradOutput", *unmet}


# Worked examples; shapes and answers are those of runs of the library's host code.

WORKED = {
    "a 4-D tensor under a 5-D tag": ("A3", made(MP3, shape=(6, 3, 3, 3), tag="NCDHW"), 561103),
    "a 4-D tensor under a 4-D tag": ("A3", made(MP3, shape=(6, 3, 3, 3), tag="NCHW"), 0),
    "CHW under NCHW on A2": ("A2", made(MP2, shape=(5, 10, 4), tag="NCHW"), 561103),
    "HWC under NHWC on 950": ("950", made(MP2, shape=(10, 4, 2), tag="NHWC"), 561103),
    "NCHW under NCL on 950": ("950", made(MP2, tag="NCL"), 0),
    "adaptive CHW under ND": ("A3", made(AD2, shape=(4, 3, 6), tag="ND", output_size=(11, 3)), 561103),
    "adaptive CHW under NCL": ("A3", made(AD2, shape=(4, 3, 6), tag="NCL", output_size=(11, 3)), 0),
    "plane of 2^31 - 1": ("A2", made(AD2, shape=(1, 1, 1, 2**31 - 1)), 0),
    "plane of 46340 * 46341": ("A3", made(AD2, shape=(1, 1, 46340, 46341)), 0),
    "plane of 2^31": ("A2", made(AD2, shape=(1, 1, 2, 2**30)), 161002),
    "plane of 2^31 on 950": ("950", made(AD2, shape=(1, 1, 2, 2**30)), 0),
    "plane of 2^64, which wraps to 0": ("A2", made(AD3, shape=(1, 1, 2**22, 2**21, 2**21)), 0),
    "stride of 2^63 - 1 in ceil mode, which wraps": (
        "A2",
        made(MP2, ceil_mode=True).with_lists({"stride": (2**63 - 1, 2)}),
        161002,
    ),
    "N = 0 under a tag of another rank": ("A2", made(AD2, shape=(0, 3, 6, 7), tag="NCL"), 0),
    "N = 0 with a wrong dtype": ("A2", made(AD2, shape=(0, 3, 6, 7), dtype="DOUBLE"), 161002),
    "C = 0 in 2-D": ("A2", made(MP2, shape=(2, 0, 6, 7)), 161002),
    "C = 0 in 3-D": ("A2", made(MP3, shape=(2, 0, 5, 6, 7)), 0),
    "dilation 3 in 3-D": ("A2", made(MP3, dilation=(3, 1, 1), padding=(0, 0, 0)), 0),
    "dilation 2 in 2-D on A3": ("A3", made(MP2, dilation=(1, 2)), 161002),
    "dilation 2 in 2-D on 950": ("950", made(MP2, dilation=(1, 2)), 0),
    "INT8 indices": ("A2", made(MP2, index_dtype="INT8"), 0),
    "INT64 indices on A3": ("A3", made(MP2, index_dtype="INT64"), 161002),
    "INT64 indices on 950": ("950", made(MP2, index_dtype="INT64"), 0),
    "half precision in 2-D on A2": ("A2", made(MP2, dtype="FLOAT16"), 161002),
    "mask of a 1x1 kernel under ND": ("A2", made(MASK, kernel_size=(1,), padding=(0,), tag="ND"), 561103),
    "mask of one byte": (
        "A2",
        made(MASK).with_tensors({"indices": TensorArgument.contiguous((1, 1, 1, 1), "INT8", "NCHW")}),
        0,
    ),
    "mask on 950": ("950", made(MASK), 161002),
    "NHWC on A2": ("A2", made(MP2, shape=(2, 11, 5, 1), tag="NHWC"), 0),
    "one element under another rank": (
        "A2",
        made("aclnnMaxPool3dWithArgmax", shape=(1, 1, 1, 1, 1), kernel_size=(1,), padding=(0,)).with_tensors(
            {"out": TensorArgument.contiguous((1, 1, 1, 1), "FLOAT", "ND")}
        ),
        0,
    ),
    "forward mask under ND on A2": ("A2", made("aclnnMaxPool2dWithMask", tag="ND"), 0),
    "forward mask under ND on 910": ("910", made("aclnnMaxPool2dWithMask", tag="ND"), 561103),
    "forward mask under ND on 310P": ("310P", made("aclnnMaxPool2dWithMask", tag="ND"), 561103),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_example(name: str) -> None:
    product, call, status = WORKED[name]
    assert predict(PRODUCTS[product], call) == status


OFF_THE_PAGE = {
    "adaptive NHWC on 950": ("950", made("aclnnAdaptiveMaxPool2d", tag="NHWC"), 561103, 0),
    "NC on 950": ("950", made("aclnnMaxPool2dWithIndices", tag="NC"), 561103, 161002),
    "mask NHWC on 910": ("910", made("aclnnMaxPool2dWithMask", tag="NHWC"), 561103, 161002),
    "mask NHWC on 310P": ("310P", made("aclnnMaxPool2dWithMask", tag="NHWC"), 561103, 161002),
}
"""Calls that were taken for legal until they were measured: product, call, what the code answers, and the page."""


@pytest.mark.parametrize("name", OFF_THE_PAGE)
def test_a_library_that_answers_as_measured_is_not_accused(name: str) -> None:
    product, call, status, page = OFF_THE_PAGE[name]
    expected = expectations(PRODUCTS[product], call)
    assert expected.followed(status) is Follows.CODE
    assert expected.followed(page) is Follows.PAGE
    assert expected.followed(161001) is Follows.NEITHER


def test_a_product_of_output_sizes_that_wraps_to_nothing_ends_a_call_on_950() -> None:
    call = made("aclnnAdaptiveMaxPool3d", output_size=(2**32, 2**32, 1))
    wrong = call.with_tensors({"indicesOut": replace(call.tensor("indicesOut"), format="NDHWC")})
    assert (predict(ASCEND_950, wrong), predict(A2, wrong)) == (0, 561103)


def test_unbatched_nhwc_kills_a_950_and_is_refused_by_an_a2() -> None:
    call = made("aclnnAdaptiveMaxPool2d", shape=(3, 6, 7), tag="NHWC")
    assert expectations(ASCEND_950, call).code.crashes and not expectations(A2, call).code.crashes
    assert expectations(ASCEND_950, call).code.status == expectations(A2, call).code.status == 561103
    double = made("aclnnAdaptiveMaxPool2d", shape=(3, 6, 7), tag="NHWC", dtype="DOUBLE")
    assert expectations(ASCEND_950, double).code.status == 561103, "the outputs are tagged NHWC at rank 3"
    outputs = {
        name: TensorArgument.contiguous((3, 4, 3), dtype, "NCL")
        for name, dtype in (("outputOut", "DOUBLE"), ("indicesOut", "INT64"))
    }
    assert predict(ASCEND_950, double.with_tensors(outputs)) == 0


STRIDED = {
    "every other cell, within": ((1, 1, 2, 2), (8, 8, 4, 2), 0, (8,), "ND", 0),
    "every other cell, one short": ((1, 1, 2, 2), (8, 8, 4, 2), 0, (6,), "ND", 561103),
    "backwards from the end": ((1, 1, 2, 2), (4, 4, -2, -1), 3, (4,), "ND", 0),
    "backwards beyond the start": ((1, 1, 2, 2), (4, 4, -2, -1), 2, (4,), "ND", 561103),
    "both ways, beyond the end": ((1, 1, 2, 2), (4, 4, 4, -1), 0, (8,), "ND", 561103),
    "one element behind the storage": ((1, 1, 1, 1), (7, 7, 7, 7), 9, (1,), "ND", 0),
    "a storage whose size overflows": ((1, 1, 2, 2), (8, 8, 4, 2), 0, (2**62, 4), "ND", 561103),
}


@pytest.mark.parametrize("name", STRIDED)
def test_views_and_their_storage(name: str) -> None:
    shape, strides, offset, storage, tag, status = STRIDED[name]
    call = made("aclnnAdaptiveMaxPool2d", shape=shape, output_size=(1, 1), tag=tag)
    view = TensorArgument(shape=shape, dtype="FLOAT", format=tag, strides=strides, offset=offset, storage=storage)
    assert predict(A2, call.with_tensors({"self": view})) == status


def test_shapes_that_follow_from_self() -> None:
    assert made(MASK).tensor("gradOutput").shape == (2, 3, 3, 3)
    assert made(MASK).tensor("indices").shape == (2, 3, 6, 64)
    assert made(MP3).tensor("indices").shape == (2, 3, 3, 3, 3)
    assert made("aclnnAdaptiveMaxPool2d", tag="NHWC").tensor("indicesOut").shape == (2, 4, 3, 7)


def test_strides_of_an_empty_tensor_count_its_empty_axis_as_one() -> None:
    assert TensorArgument.contiguous((2, 0, 3), "FLOAT", "ND").strides == (3, 3, 1)


def test_batches_that_differ_are_refused_by_tiling_in_the_phase_of_the_operator_that_gets_the_work() -> None:
    uneven = violating_call(A2, "adaptive3d-bwd.shape.batch")
    assert (predict(A2, uneven, tiling=False), predict(A2, uneven)) == (0, 561103)
    even = violating_call(A2, "adaptive3d-bwd.shape.batch.divisible")
    assert (predict(A2, even), expectations(A2, even).code.phase) == (0, 2)
    assert predict(ASCEND_950, even) == 561103
