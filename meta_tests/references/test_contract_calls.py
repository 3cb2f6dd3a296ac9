"""Low-level calls as JSON, and the contract's answer to any call at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contract_calls import AD2, AD3, CALL_FIELDS, MP2, MP3, WINDOWED_APIS, made, observed_call, observed_rows
from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument
from poolproof.references.contract.examples import (
    Template,
    base_template,
    legal_calls,
    supporting_products,
    violating_call,
    violating_pair,
)
from poolproof.references.contract.expectation import Follows, all_clauses, expectations, predict
from poolproof.references.contract.facts import leaves_storage
from poolproof.references.contract.vocabulary import DTYPES, SIGNATURES, TAGS, ReturnCode
from poolproof.references.geometry import pooled_size
from poolproof.references.products import PRODUCTS, Product
from poolproof.references.windows import Windowed

A2, A3 = PRODUCTS["A2"], PRODUCTS["A3"]

# Reading and writing.


def test_observed_rows_survive_json() -> None:
    for row in observed_rows()[::30]:
        call = observed_call(row)
        assert call.to_record() == {name: row[name] for name in CALL_FIELDS}
        assert ContractCall.from_json(call.to_json()) == call


@pytest.mark.parametrize("api", SIGNATURES)
def test_broken_calls_survive_json(api: str) -> None:
    for clause in all_clauses(api):
        call = violating_call(clause.products[0], clause.id)
        assert ContractCall.from_json(call.to_json()) == call
        assert hash(ContractCall.from_json(call.to_json())) == hash(call)


def test_layout_may_be_left_out() -> None:
    record = made(AD3).to_record()
    for tensor in record["tensors"].values():
        for name in ("strides", "offset", "storage"):
            del tensor[name]
    del record["lists"], record["ceilMode"], record["null_outputs"]
    assert ContractCall.from_record(record) == made(AD3)


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


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_json_is_named(name: str) -> None:
    change, sentence = MALFORMED[name]
    text = change if isinstance(change, str) else json.dumps(spoilt(made(MP2).to_record(), change))
    with pytest.raises(ContractError) as caught:
        ContractCall.from_json(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_adaptive_calls_have_no_ceil_mode_and_no_lists() -> None:
    for change in ({"ceilMode": False}, {"lists": {"kernelSize": [2]}}):
        with pytest.raises(ContractError):
            ContractCall.from_record({**made(AD2).to_record(), **change})


def test_calls_cannot_be_changed() -> None:
    call = made(MP2)
    with pytest.raises(TypeError):
        call.tensors["self"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        call.api = MP3  # type: ignore[misc]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: predict(Product("A5", like=A2), made(MP2)),
        lambda: violating_call(A2, "2d-bwd.nothing"),
        lambda: violating_call(A2, "mask-bwd.product.950"),
        lambda: violating_pair(A2, "2d-bwd.null.self", "2d-bwd.null.gradOutput"),
        lambda: violating_pair(A2, "2d-bwd.null.self", "3d-bwd.plane"),
        lambda: all_clauses("aclnnAvgPool2d"),
    ],
)
def test_impossible_questions_are_refused(ask: Any) -> None:
    with pytest.raises(ContractError):
        ask()


# Any call at all.

LEGAL = {api: tuple(legal_calls(supporting_products(api)[0], api).values()) for api in SIGNATURES}
LENGTHS = st.one_of(st.integers(-1, 5), st.sampled_from((7, 2**31, 2**62)))
SHAPES = st.lists(LENGTHS, max_size=6).map(tuple)
LISTS = st.none() | st.lists(st.integers(-2, 4) | st.just(2**62), max_size=4).map(tuple)
TENSORS = st.none() | st.builds(
    TensorArgument.contiguous,
    SHAPES,
    st.sampled_from(("FLOAT", "FLOAT16", "INT32", "INT64", "INT8")) | st.sampled_from(DTYPES),
    st.sampled_from(("ND", "NCHW", "NHWC", "NCL", "NCDHW")) | st.sampled_from(TAGS),
)


@st.composite
def any_call(draw: st.DrawFn) -> ContractCall:
    """A legal call with up to three arguments replaced by anything."""
    api = draw(st.sampled_from(tuple(SIGNATURES)))
    call = draw(st.sampled_from(LEGAL[api]))
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from((*SIGNATURES[api].tensors, *SIGNATURES[api].lists)))
        if name in call.tensors:
            call = call.with_tensors({name: draw(TENSORS)})
        else:
            call = call.with_lists({name: draw(LISTS)})
    return call


@given(any_call(), st.sampled_from(list(PRODUCTS.values())))
@settings(max_examples=300, deadline=None)
def test_every_call_gets_an_answer(call: ContractCall, product: Product) -> None:
    expected = expectations(product, call)
    assert predict(product, call) == expected.code.phase_one
    assert expected.followed(expected.code.phase_one) in (Follows.BOTH, Follows.CODE)
    if expected.code.phase == 2:
        assert expected.followed(0, expected.code.status) in (Follows.BOTH, Follows.CODE)
    assert (expected.page is expected.earlier is None) == (expected.erratum is None)


@given(any_call())
@settings(max_examples=100, deadline=None)
def test_a2_and_a3_have_one_contract(call: ContractCall) -> None:
    assert expectations(A2, call) == expectations(A3, call)


@given(any_call(), st.sampled_from(list(PRODUCTS.values())), st.integers(0, 9), st.lists(st.integers(1, 9), max_size=2))
@settings(max_examples=100, deadline=None)
def test_layouts_change_nothing(call: ContractCall, product: Product, offset: int, storage: list[int]) -> None:
    """As long as what they reach lies in the storage, which that of negative lengths need not do even if dense."""
    assume(not any(leaves_storage(tensor) for tensor in call.tensors.values() if tensor is not None))
    laid_out = {
        name: TensorArgument(
            shape=tensor.shape,
            dtype=tensor.dtype,
            format=tensor.format,
            strides=(0,) * tensor.rank,
            offset=offset,
            storage=(offset + 1, *storage),
        )
        for name, tensor in call.tensors.items()
        if tensor is not None
    }
    assert expectations(product, call) == expectations(product, call.with_tensors(laid_out))


@given(any_call())
@settings(max_examples=100, deadline=None)
def test_any_call_survives_json(call: ContractCall) -> None:
    assert ContractCall.from_json(call.to_json()) == call


@st.composite
def legal_templates(draw: st.DrawFn) -> Template:
    """Windowed calls that are legal by construction: every axis has room for a window."""
    api = draw(st.sampled_from(WINDOWED_APIS))
    rank = SIGNATURES[api].spatial_rank
    kernel = draw(st.tuples(*(st.integers(1, 5),) * rank))
    padding = tuple(draw(st.integers(0, size // 2)) for size in kernel)
    room = zip(kernel, padding, strict=True)
    spatial = tuple(draw(st.integers(max(1, size - 2 * pad), size + 6)) for size, pad in room)
    return base_template(api).changed(
        {
            "shape": (*draw(st.tuples(st.integers(1, 3), st.integers(1, 3))), *spatial),
            "kernel_size": kernel,
            "stride": draw(st.just(()) | st.tuples(*(st.integers(1, 4),) * rank)),
            "padding": padding,
            "ceil_mode": draw(st.booleans()),
        }
    )


@given(legal_templates())
@settings(max_examples=100, deadline=None)
def test_windowed_calls_that_fit_are_accepted(template: Template) -> None:
    call = template.call()
    rank, given = call.signature.spatial_rank, template.windows
    assert isinstance(given, Windowed)
    kernel = given.kernel_size
    axes = zip(template.shape[2:], kernel, given.stride or kernel, given.padding, strict=True)
    windows = tuple(pooled_size(*axis, 1, given.ceil_mode) for axis in axes)
    assert call.tensor(call.signature.pooled).shape[-rank:] == windows
    for product in supporting_products(template.api):
        if product.name in ("910", "310P") or kernel != (1, 1):
            assert expectations(product, call).code.status == ReturnCode.SUCCESS


@given(legal_templates(), st.data())
@settings(max_examples=100, deadline=None)
def test_padding_above_half_the_kernel_is_refused_on_any_axis(template: Template, data: st.DataObject) -> None:
    assert isinstance(template.windows, Windowed)
    axis = data.draw(st.integers(0, len(template.windows.kernel_size) - 1))
    padding = list(template.windows.padding)
    padding[axis] = template.windows.kernel_size[axis] // 2 + 1
    call = template.changed({"padding": tuple(padding)}).call()
    product = supporting_products(template.api)[0]
    expected = expectations(product, call).code
    assert expected.status == ReturnCode.INVALID_PARAMETER
    assert expected.clause is not None and ".padding.at-most-" in expected.clause
