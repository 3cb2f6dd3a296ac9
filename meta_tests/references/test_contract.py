"""The contract against what a library was seen to answer, and against itself: order, breaches, tables, descriptions."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from contract_calls import AD2, MASK, MP2, MP3, made, observed_call, observed_rows
from observed_statuses import disagreements
from poolproof.references.contract.call import TensorArgument
from poolproof.references.contract.clause import ERRATA, Clause, always
from poolproof.references.contract.examples import (
    base_template,
    legal_calls,
    supporting_products,
    violating_call,
    violating_pair,
)
from poolproof.references.contract.expectation import Follows, all_clauses, contract_of, expectations, predict
from poolproof.references.contract.vocabulary import SIGNATURES, ReturnCode
from poolproof.references.products import PRODUCTS, Product

A2, A3, ASCEND_950 = PRODUCTS["A2"], PRODUCTS["A3"], PRODUCTS["950"]

# What a library was seen to answer.


def test_predicts_every_observed_status() -> None:
    compared = [each for row in observed_rows() for each in disagreements(row)]
    assert Counter(comparison for comparison, _, _ in compared) == {
        "statuses": 17821,
        "crashes": 38,
        "with tiling": 427,
    }
    assert [sides for _, agrees, sides in compared if not agrees] == []


def test_the_observations_reach_every_cause_and_every_clause_but_one() -> None:
    rows = observed_rows()
    assert {int(cause[:2]) for row in rows if (cause := row.get("cause"))} == {*range(1, 15)}
    met = {expectations(PRODUCTS[row["product"]], observed_call(row)).code.clause for row in rows}
    checked = {clause.id for clause in all_clauses() if clause.status is not None}
    assert checked - met == {"2d-bwd.padding.at-most-half-effective"}


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


def test_shapes_that_follow_from_self() -> None:
    assert made(MASK).tensor("gradOutput").shape == (2, 3, 3, 3)
    assert made(MASK).tensor("indices").shape == (2, 3, 6, 64)
    assert made(MP3).tensor("indices").shape == (2, 3, 3, 3, 3)
    assert made("aclnnAdaptiveMaxPool2d", tag="NHWC").tensor("indicesOut").shape == (2, 4, 3, 7)


def test_strides_of_an_empty_tensor_count_its_empty_axis_as_one() -> None:
    assert TensorArgument.contiguous((2, 0, 3), "FLOAT", "ND").strides == (3, 3, 1)


# The order, where two clauses answer differently, and no observation breaks both.

FIRST_WINS = (
    ("A2", "3d-bwd.null.gradInput", "3d-bwd.dtype.self", 161001),
    ("950", "3d-bwd.length.dilation", "3d-bwd.format.rank", 161002),
    ("A2", "3d-bwd.empty", "3d-bwd.shape.batch", 0),
    ("950", "2d-bwd.null.executor", "2d-bwd.null.self", 161001),
    ("A3", "2d-bwd.shape.gradOutput", "2d-bwd.empty", 161002),
    ("A2", "2d-bwd.dtype.indices", "2d-bwd.format.channels-last", 161002),
    ("A2", "mask-bwd.null.self", "mask-bwd.length.kernelSize", 161001),
    ("A2", "adaptive2d-bwd.plane", "adaptive2d-bwd.shape.batch", 161002),
    ("A3", "adaptive3d-bwd.dtype.indices.int32", "adaptive3d-bwd.empty", 161002),
    ("910", "3d-fwd.null.executor", "3d-fwd.product", 161001),
    ("A2", "3d-fwd.dilation.one", "3d-fwd.plane", 161002),
    ("A2", "3d-fwd.plane", "3d-fwd.shape.out", 561103),
    ("950", "mask-fwd.length.kernelSize", "mask-fwd.product.950", 161002),
)


@pytest.mark.parametrize(("product", "first", "second", "status"), FIRST_WINS)
def test_first_of_two_broken_clauses_answers(product: str, first: str, second: str, status: int) -> None:
    call = violating_pair(PRODUCTS[product], first, second)
    assert call is not None
    code = expectations(PRODUCTS[product], call).code
    assert (code.clause, code.status) == (first, status)


ORDER = ("A2", "A3", "950", "910", "310P", "310B")


@pytest.mark.parametrize(
    ("api", "statuses"),
    [
        (MP3, (161001, 161001, 161001, 161001, 161001, 161001)),
        (MASK, (161001, 161001, 161002, 161001, 161001, 161001)),
        ("aclnnMaxPool3dWithArgmax", (161001, 161001, 161001, 161002, 161002, 161002)),
        ("aclnnMaxPool2dWithMask", (161001, 161001, 161001, 161001, 161001, 161001)),
    ],
)
def test_null_pointers_per_product(api: str, statuses: tuple[int, ...]) -> None:
    everything_null = made(api).with_tensors(dict.fromkeys(SIGNATURES[api].tensors))
    assert tuple(predict(PRODUCTS[name], everything_null) for name in ORDER) == statuses


def test_an_unsupported_product_is_refused_before_null_pointers_where_the_library_looks_there_first() -> None:
    without_self = made("aclnnMaxPool3dWithArgmax").with_tensors({"self": None})
    assert expectations(PRODUCTS["910"], without_self).code.clause == "3d-fwd.product"
    without_outputs = violating_call(A2, "mask-bwd.null.executor")
    assert expectations(ASCEND_950, without_outputs).code.clause == "mask-bwd.product.950"


@pytest.mark.parametrize("api", SIGNATURES)
def test_most_pairs_of_clauses_can_be_broken_together(api: str) -> None:
    product = supporting_products(api)[0]
    ids = [clause.id for clause in all_clauses(api) if product in clause.products and clause.status is not None]
    pairs = list(itertools.combinations(ids, 2))
    calls = [violating_pair(product, *pair) for pair in pairs]
    assert sum(call is not None for call in calls) > 0.75 * len(pairs)
    for (first, second), call in zip(pairs, calls, strict=True):
        assert call not in (violating_call(product, first), violating_call(product, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("adaptive3d-bwd.rank.equal", "adaptive3d-bwd.shape.indices"),  # both change indices' shape
        ("2d-bwd.null.indices", "2d-bwd.dtype.indices"),  # the null hides the dtype
        ("3d-bwd.dtype.indices", "3d-bwd.dilation.one"),  # the second is the page's alone
    ],
)
def test_clauses_that_cannot_be_broken_together(first: str, second: str) -> None:
    assert violating_pair(A2, first, second) is None


# Clauses and their breaches.


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_broken_clause_and_no_other_answers(clause: Any) -> None:
    assert clause.products
    for product in clause.products:
        expected = expectations(product, violating_call(product, clause.id))
        if clause.status is None:
            assert expected.code.status == ReturnCode.SUCCESS
            assert expected.page is not None and expected.page.clause == clause.id
        else:
            phase = None if clause.status == 0 else clause.phase
            assert expected.code.clause == clause.id
            assert (expected.code.status, expected.code.phase) == (clause.status, phase)


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_kept_clause_does_not_answer(clause: Any) -> None:
    for product in set(clause.products) & set(supporting_products(clause.api)):
        assert not clause.decides(base_template(clause.api).call(), product)


UNAVOIDABLE = {
    "2d-fwd.format.private",
    "2d-fwd.format.out",
    "2d-fwd.format.rank",
    "2d-bwd.format.private",
    "adaptive2d-bwd.format.private",
    "2d-bwd.shape.pooled",
    "mask-bwd.shape.pooled",
    "2d-bwd.padding.at-most-kernel",
    "mask-bwd.padding.at-most-kernel",
    "2d-bwd.padding.at-most-half",
    "2d-bwd.padding.at-most-half-effective",
    "adaptive3d-bwd.dtype.indices",
    "adaptive3d-fwd.dtype.self",
    "adaptive3d-fwd.dtype.outputOut.supported",
    "adaptive3d-fwd.shape.leading",
    "adaptive3d-fwd.shape.outputOut",
    "adaptive3d-fwd.shape.indicesOut.first",
    "adaptive2d-fwd.shape.outputOut.general",
    "mask-fwd.format.private",
    "mask-bwd.format.private",
}
"""Clauses that cannot be broken without breaking a later one: it asks more of the same, or the same again."""


def stands_alone(clause: Clause) -> bool:
    """Whether later clauses can be asked about a call that breaks this one: it leaves pointers, ranks and lengths."""
    return bool(clause.status) and not clause.name.startswith(("null", "rank", "length", "stride", "product"))


def test_a_breach_breaks_one_clause_only() -> None:
    shadowed = set()
    for api, product in itertools.product(SIGNATURES, PRODUCTS.values()):
        held = contract_of(api).on(product) if product in supporting_products(api) else ()
        for number, clause in enumerate(held):
            if stands_alone(clause):
                call = violating_call(product, clause.id)
                if any(other.status and other.decides(call, product) for other in held[number + 1 :]):
                    shadowed.add(clause.id)
    assert shadowed == UNAVOIDABLE


@pytest.mark.parametrize("api", SIGNATURES)
def test_the_call_that_everything_starts_from_is_legal_by_code_and_page(api: str) -> None:
    for product in supporting_products(api):
        expected = expectations(product, base_template(api).call())
        assert (expected.code.status, expected.code.clause, expected.page) == (ReturnCode.SUCCESS, None, None)


BEYOND_THE_PAGE = {
    (MP3, "N is 0"): "E14",
    (MP3, "no C"): "E14",
    (MP3, "dilation 2"): "E13",
    (MASK, "tag ND"): "E39",
    (MASK, "unbatched, tag ND"): "E39",
    (MASK, "unbatched, tag NCL"): "E39",
    (AD2, "plane of 2^31 cells"): "E30",
    ("aclnnAdaptiveMaxPool3d", "tag ND"): "F2",
}
"""Legal calls that only the code takes."""


@pytest.mark.parametrize("api", SIGNATURES)
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=str)
def test_legal_calls_are_accepted(api: str, product: Product) -> None:
    calls = legal_calls(product, api)
    assert bool(calls) == (product in supporting_products(api))
    for name, call in calls.items():
        expected = expectations(product, call)
        assert expected.code.status == ReturnCode.SUCCESS, name
        assert expected.erratum == BEYOND_THE_PAGE.get((api, name)), name


def test_legal_calls_visit_the_edges() -> None:
    calls = legal_calls(ASCEND_950, MP2)
    assert calls["kernel is the padded input"].tensor("gradOutput").shape == (2, 3, 1, 1)
    assert calls["ceil mode drops the window that starts in the padding"].tensor("gradOutput").shape == (2, 3, 2, 2)
    assert calls["plane of 2^31 cells"].tensor("self").shape == (1, 1, 1, 2**31)
    assert calls["one batch for all"].tensor("self").strides[0] == 0
    assert calls["one batch for all"].tensor("gradInput").strides[0] != 0
    assert legal_calls(A2, MASK)["three cells into the storage"].tensor("indices").offset == 0


# The tables.


def test_ids_are_unique() -> None:
    ids = [clause.id for clause in all_clauses()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("api", SIGNATURES)
def test_phase_two_comes_after_phase_one(api: str) -> None:
    phases = [clause.phase for clause in all_clauses(api)]
    assert phases == sorted(phases)


@pytest.mark.parametrize("api", SIGNATURES)
def test_every_product_is_supported_or_refused_outright(api: str) -> None:
    refusing = {product for clause in all_clauses(api) if clause.decides is always for product in clause.products}
    assert refusing | set(supporting_products(api)) == set(PRODUCTS.values())
    assert not refusing & set(supporting_products(api))


def test_a2_and_a3_have_the_same_clauses() -> None:
    for clause in all_clauses():
        assert (A2 in clause.products) == (A3 in clause.products), clause.id


def test_a_clause_that_the_code_does_not_check_is_one_that_the_page_promises() -> None:
    for clause in all_clauses():
        if clause.status is None:
            assert clause.page is not None and clause.page.reading == "refuses", clause.id


def test_every_erratum_is_known_and_met() -> None:
    cited = {behind.erratum for clause in all_clauses() for behind in (clause.page, clause.earlier) if behind}
    assert cited == set(ERRATA)


def test_statements_are_sentences() -> None:
    for clause in all_clauses():
        assert clause.statement.endswith(".") and "  " not in clause.statement, clause.id


# Which description is followed.


def test_dropped_comparison_of_indices() -> None:
    expected = expectations(A2, violating_call(A2, "2d-bwd.shape.indices"))
    assert (expected.code.status, expected.code.phase) == (561103, 2)
    assert expected.page is not None and (expected.page.status, expected.page.phase) == (161002, 1)
    assert expected.erratum == "E17" and len(expected.acceptable) == 2
    assert expected.followed(0, 561103) is Follows.CODE
    assert expected.followed(161002) is Follows.PAGE
    assert expected.followed(0, 0) is Follows.NEITHER
    assert expected.followed(161001) is Follows.NEITHER


@pytest.mark.parametrize(
    ("product", "clause", "code", "page", "erratum"),
    [
        ("A2", "2d-bwd.padding.at-most-half", 161002, 0, "E11"),
        ("A2", "3d-bwd.dilation.one", 0, 161002, "E13"),
        ("A2", "3d-bwd.empty", 0, 161002, "E14"),
        ("A2", "mask-bwd.length.kernelSize", 161001, 161002, "E20"),
        ("A2", "adaptive2d-bwd.format.rank", 561103, 0, "C2"),
        ("950", "3d-fwd.dilation.positive", 0, 161002, "E34"),
        ("A3", "adaptive2d-fwd.shape.outputOut.elements", 561103, 161002, "E27"),
    ],
)
def test_page_and_code_disagree(product: str, clause: str, code: int, page: int, erratum: str) -> None:
    expected = expectations(PRODUCTS[product], violating_call(PRODUCTS[product], clause))
    assert expected.page is not None
    assert (expected.code.status, expected.page.status, expected.erratum) == (code, page, erratum)


def test_an_earlier_release_is_neither_wrong_nor_said_to_follow_the_page() -> None:
    expected = expectations(A2, violating_call(A2, "3d-fwd.null.self"))
    assert (expected.code.status, expected.page, expected.erratum) == (161001, None, "F1")
    assert expected.followed(161001) is Follows.BOTH
    assert expected.followed(161002) is Follows.EARLIER
    assert expected.followed(561103) is expected.followed(0, 0) is Follows.NEITHER
    assert [answer.status for answer in expected.acceptable] == [161001, 161002]


@pytest.mark.parametrize("clause", ["3d-bwd.null.gradOutput", "3d-bwd.null.self", "2d-bwd.padding.at-most-kernel"])
def test_only_the_code_answers_where_the_page_is_silent_or_agrees(clause: str) -> None:
    expected = expectations(A2, violating_call(A2, clause))
    assert expected.page is None and expected.acceptable == (expected.code,)
    assert expected.followed(expected.code.status) is Follows.BOTH
    assert expected.followed(expected.code.status, 0) is Follows.BOTH


def test_lists_that_kill_the_process_are_marked() -> None:
    call = made(MASK).with_lists({"kernelSize": (), "padding": None})
    expected = expectations(A3, call)
    assert expected.code.crashes and expected.code.status == ReturnCode.NULL_POINTER
    assert not expectations(A3, made(MASK).with_lists({"kernelSize": ()})).code.crashes
