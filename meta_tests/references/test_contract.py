"""The contract against recorded statuses, against itself and for any call at all; calls as JSON."""

import itertools
import json
from collections import Counter
from typing import Any

import pytest

from contract_calls import AD2, AD3, MASK, MP2, MP3, made, observed_rows, predict
from observed_statuses import disagreements, read_call
from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument
from poolproof.references.contract.clause import ERRATA, always
from poolproof.references.contract.examples import (
    base_template,
    legal_calls,
    supporting_products,
    violating_call,
    violating_pair,
)
from poolproof.references.contract.expectation import Follows, all_clauses, expectations
from poolproof.references.contract.vocabulary import SIGNATURES, ReturnCode
from poolproof.references.products import PRODUCTS, Product

A2, A3, ASCEND_950 = PRODUCTS["A2"], PRODUCTS["A3"], PRODUCTS["950"]

# What a library was seen to answer.


def test_predicts_every_observed_status() -> None:
    compared = [each for row in observed_rows() for each in disagreements(row)]
    assert Counter(what for what, _, _ in compared) == {"statuses": 17821, "crashes": 38, "with tiling": 427}
    assert [sides for _, agrees, sides in compared if not agrees] == []


def test_the_observations_reach_every_cause_and_every_clause_but_one() -> None:
    rows = observed_rows()
    assert {int(cause[:2]) for row in rows if (cause := row.get("cause"))} == {*range(1, 15)}
    met = {expectations(PRODUCTS[row["product"]], read_call(row)).code.clause for row in rows}
    checked = {clause.id for clause in all_clauses() if clause.status is not None}
    assert checked - met == {"2d-bwd.padding.at-most-half-effective"}


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


@pytest.mark.parametrize("api", SIGNATURES)
def test_most_pairs_of_clauses_can_be_broken_together(api: str) -> None:
    product = supporting_products(api)[0]
    ids = [clause.id for clause in all_clauses(api) if product in clause.products and clause.status is not None]
    pairs = list(itertools.combinations(ids, 2))
    calls = [violating_pair(product, *pair) for pair in pairs]
    assert sum(call is not None for call in calls) > 0.75 * len(pairs)
    for (first, second), call in zip(pairs, calls, strict=True):
        assert call not in (violating_call(product, first), violating_call(product, second))


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


BEYOND_THE_PAGE = {
    *((MP3, "N is 0"), (MP3, "no C"), (MP3, "dilation 2"), (AD2, "plane of 2^31 cells")),
    *((MASK, "tag ND"), (MASK, "unbatched, tag ND"), (MASK, "unbatched, tag NCL")),
    ("aclnnAdaptiveMaxPool3d", "tag ND"),
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
        assert (expected.page is not None) == ((api, name) in BEYOND_THE_PAGE), name
    if calls:  # and the call that everything starts from by code and page
        expected = expectations(product, base_template(api).call())
        assert (expected.code.status, expected.code.clause, expected.page) == (ReturnCode.SUCCESS, None, None)


def test_legal_calls_visit_the_edges() -> None:
    calls = legal_calls(ASCEND_950, MP2)
    assert calls["kernel is the padded input"].tensor("gradOutput").shape == (2, 3, 1, 1)
    assert calls["ceil mode drops the window that starts in the padding"].tensor("gradOutput").shape == (2, 3, 2, 2)
    assert calls["plane of 2^31 cells"].tensor("self").shape == (1, 1, 1, 2**31)
    assert calls["one batch for all"].tensor("self").strides[0] == 0
    assert calls["one batch for all"].tensor("gradInput").strides[0] != 0
    assert legal_calls(A2, MASK)["three cells into the storage"].tensor("indices").offset == 0


# The tables.


@pytest.mark.parametrize("api", SIGNATURES)
def test_every_product_is_supported_or_refused_outright_and_phase_two_comes_last(api: str) -> None:
    clauses, supporting = all_clauses(api), set(supporting_products(api))
    refusing = {product for clause in clauses if clause.decides is always for product in clause.products}
    assert refusing | supporting == set(PRODUCTS.values()) and not refusing & supporting
    phases = [clause.phase for clause in clauses]
    assert phases == sorted(phases)


def test_the_tables_are_in_order() -> None:
    clauses = all_clauses()
    assert len({clause.id for clause in clauses}) == len(clauses)
    for clause in clauses:
        assert clause.statement.endswith(".") and "  " not in clause.statement, clause.id
        assert (A2 in clause.products) == (A3 in clause.products), clause.id
        assert clause.status is not None or (clause.page and clause.page.reading == "refuses"), clause.id
    assert {behind.erratum for clause in clauses for behind in (clause.page, clause.earlier) if behind} == set(ERRATA)


# Which description is followed.


def broken(product: str, clause: str) -> ContractCall:
    return violating_call(PRODUCTS[product], clause)


DISAGREEMENTS = (
    ("A2", broken("A2", "2d-bwd.shape.indices"), (0, 561103), (161002, None)),
    ("A2", broken("A2", "2d-bwd.padding.at-most-half"), (161002, None), (0, 0)),
    ("A2", broken("A2", "3d-bwd.dilation.one"), (0, 0), (161002, None)),
    ("A2", broken("A2", "3d-bwd.empty"), (0, 0), (161002, None)),
    ("A2", broken("A2", "mask-bwd.length.kernelSize"), (161001, None), (161002, None)),
    ("A2", broken("A2", "adaptive2d-bwd.format.rank"), (561103, None), (0, 0)),
    ("950", broken("950", "3d-fwd.dilation.positive"), (0, 0), (161002, None)),
    ("A3", broken("A3", "adaptive2d-fwd.shape.outputOut.elements"), (561103, None), (161002, None)),
    # Calls that were taken for legal until they were measured.
    ("950", made("aclnnAdaptiveMaxPool2d", tag="NHWC"), (561103, None), (0, 0)),
    ("950", made("aclnnMaxPool2dWithIndices", tag="NC"), (561103, None), (161002, None)),
    ("910", made("aclnnMaxPool2dWithMask", tag="NHWC"), (561103, None), (161002, None)),
    ("310P", made("aclnnMaxPool2dWithMask", tag="NHWC"), (561103, None), (161002, None)),
)


@pytest.mark.parametrize(("product", "call", "code", "page"), DISAGREEMENTS)
def test_a_library_may_follow_the_code_or_the_page_and_nothing_else(
    product: str, call: ContractCall, code: tuple[int, int | None], page: tuple[int, int | None]
) -> None:
    expected = expectations(PRODUCTS[product], call)
    assert len(expected.acceptable) == 2
    assert (expected.followed(*code), expected.followed(*page)) == (Follows.CODE, Follows.PAGE)
    assert expected.followed(561000) is expected.followed(0, 561000) is Follows.NEITHER


def test_an_earlier_release_is_neither_wrong_nor_said_to_follow_the_page() -> None:
    expected = expectations(A2, violating_call(A2, "3d-fwd.null.self"))
    assert (expected.code.status, expected.page) == (161001, None)
    assert expected.followed(161001) is Follows.BOTH
    assert expected.followed(161002) is Follows.EARLIER
    assert expected.followed(561103) is expected.followed(0, 0) is Follows.NEITHER
    assert [answer.status for answer in expected.acceptable] == [161001, 161002]


def test_lists_that_kill_the_process_are_marked() -> None:
    expected = expectations(A3, made(MASK).with_lists({"kernelSize": (), "padding": None}))
    assert expected.code.crashes and expected.code.status == ReturnCode.NULL_POINTER
    assert not expectations(A3, made(MASK).with_lists({"kernelSize": ()})).code.crashes


# Calls as JSON.


def test_calls_survive_json_and_layouts_may_be_left_out() -> None:
    for row in observed_rows()[::30]:
        call = read_call(row)
        assert row.items() >= call.to_record().items()
        assert ContractCall.from_json(call.to_json()) == call
        assert hash(ContractCall.from_json(call.to_json())) == hash(call)
    record = made(AD3).to_record()
    for tensor in record["tensors"].values():
        for name in ("strides", "offset", "storage"):
            del tensor[name]
    del record["lists"], record["ceilMode"], record["null_outputs"]
    assert ContractCall.from_record(record) == made(AD3)
    assert TensorArgument.contiguous((2, 0, 3), "FLOAT", "ND").strides == (3, 3, 1), "an empty axis counts as one"


MALFORMED: dict[str, tuple[Any, str]] = {
    "nothing": ("{", "this is not JSON"),
    "no object": ("[]", "a call must be a JSON object"),
    "unknown api": ({"api": "aclnnAvgPool2d"}, "api 'aclnnAvgPool2d' is not one of"),
    "unhashable api": ({"api": []}, "api [] is not one of"),
    "extra field": ({"status": 0}, "a call has no field 'status'"),
    "missing tensor": ({"tensors": {}}, "tensors needs the field 'gradOutput'"),
    "missing lists": ({"lists": None}, "lists needs the field 'kernelSize'"),
    "list of words": ({"lists": {"kernelSize": ["2"]}}, "kernelSize must be a list of integers"),
    "list of truths": ({"lists": {"stride": [True]}}, "stride must be a list of integers"),
    "ceil mode of a number": ({"ceilMode": 1}, "ceilMode must be true or false"),
    "no ceil mode": ({"ceilMode": None}, "ceilMode must be true or false"),
    "out-pointer": ({"null_outputs": {"stream": True}}, "null_outputs has no field 'stream'"),
    "out-pointer of a number": ({"null_outputs": {"executor": 1}}, "null_outputs.executor must be true or false"),
    "dtype": ({"tensors": {"self": {"dtype": "float32"}}}, "self.dtype 'float32' is not one of"),
    "format": ({"tensors": {"self": {"format": "NCW"}}}, "self.format 'NCW' is not one of"),
    "strides": ({"tensors": {"self": {"strides": [1]}}}, "self.strides has 1 values for 4 axes"),
    "offset": ({"tensors": {"self": {"offset": None}}}, "self.offset must be a list of integers"),
}


def spoilt(record: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The record with fields replaced, inside nested objects too; an empty object replaces."""
    fields = {
        name: spoilt(record[name], value) if isinstance(value, dict) and value else value
        for name, value in change.items()
    }
    return {**record, **fields}


@pytest.mark.parametrize(("change", "sentence"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_is_named(change: Any, sentence: str) -> None:
    text = change if isinstance(change, str) else json.dumps(spoilt(made(MP2).to_record(), change))
    with pytest.raises(ContractError) as caught:
        ContractCall.from_json(text)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: predict(Product("A5", like=A2), made(MP2)),
        lambda: violating_call(A2, "2d-bwd.nothing"),
        lambda: violating_call(A2, "mask-bwd.product.950"),
        lambda: violating_pair(A2, "2d-bwd.null.self", "2d-bwd.null.gradOutput"),
        lambda: violating_pair(A2, "2d-bwd.null.self", "3d-bwd.plane"),
        lambda: all_clauses("aclnnAvgPool2d"),
        lambda: ContractCall.from_record(made(AD2).to_record() | {"ceilMode": False}),
        lambda: ContractCall.from_record(made(AD2).to_record() | {"lists": {"kernelSize": [2]}}),
    ],
)
def test_what_is_impossible_is_refused(ask: Any) -> None:
    with pytest.raises(ContractError):
        ask()
