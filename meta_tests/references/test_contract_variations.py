"""Every clause in every way: what is enumerated, that it is all, and that whoever misses one way of it is found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from contract_calls import AD2, MASK, MP2, MP3, predict
from poolproof.backends.base import Attempt, Backend, Call, Outcome, Status
from poolproof.references.contract.call import Change, ContractCall, changed
from poolproof.references.contract.changes import (
    BASE,
    INT64_MAX,
    INT64_MIN,
    LENGTHS,
    RANKS,
    differences,
    models,
    nearest,
    pointers,
    sentence,
    variations,
)
from poolproof.references.contract.examples import supporting_products, violating_call
from poolproof.references.contract.expectation import (
    Expectation,
    Follows,
    expectations,
    may_ask,
    may_run,
)
from poolproof.references.contract.facts import leaves_storage
from poolproof.references.contract.vocabulary import DTYPES, SIGNATURES, TAGS
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.suites.cases.calls import CallPart, call_parts, drawn_calls, drawn_part
from poolproof.suites.cases.shrinking import smaller_call
from poolproof.suites.judging.contract import ContractQuestion, contract_question
from poolproof.suites.plan.aspects import CONTRACT

A2, ASCEND_950 = PRODUCTS["A2"], PRODUCTS["950"]


@cache
def calls_of(product: Product, api: str, name: str = BASE) -> list[ContractCall]:
    model = models(product, api)[name]
    return [changed(model, changes) for changes in variations(product, api)[name]]


# What is enumerated: counted from the signature, for every API on every product.

everywhere = pytest.mark.parametrize(
    ("product", "api"),
    [(product, api) for product in PRODUCTS.values() for api in SIGNATURES],
    ids=lambda each: str(each).removeprefix("aclnn"),
)


@pytest.mark.parametrize("api", SIGNATURES)
def test_every_field_of_every_argument_is_changed_alone(api: str) -> None:
    """Dtypes, tags and ranks of tensors, lengths of lists, and too long, too short and extreme on each axis of both."""
    product = supporting_products(api)[0]
    model = models(product, api)[BASE]
    alone = [call for call in calls_of(product, api) if len(differences(call, model)) == 1]
    for name in SIGNATURES[api].tensors:
        tensors = [tensor for call in alone if (tensor := call.tensors[name]) is not None]
        assert {tensor.dtype for tensor in tensors} == set(DTYPES)
        assert {tensor.format for tensor in tensors} == set(TAGS)
        assert {tensor.rank for tensor in tensors} == set(RANKS)
        shape, shapes = model.tensor(name).shape, {tensor.shape for tensor in tensors}
        for axis, length in enumerate(shape):
            for value in (length - 1, length + 1, 0, -1, INT64_MAX, INT64_MIN):
                resized = (*shape[:axis], value, *shape[axis + 1 :])
                call = Change(name, "shape", resized).applied(model)
                assert resized in shapes or not may_ask(call, expectations(product, call))
    for name in SIGNATURES[api].lists:
        lists = {call.lists[name] for call in alone} | {model.lists[name]}
        assert None in lists
        assert {len(values) for values in lists if values is not None} == set(LENGTHS)
        values = model.attribute(name)
        for axis, value in enumerate(values):
            for other in (0, -1, INT64_MAX, INT64_MIN, value + 1):
                assert (*values[:axis], other, *values[axis + 1 :]) in lists


@everywhere
def test_every_pointer_is_null_alone_with_each_other_and_beside_every_breach(product: Product, api: str) -> None:
    made, names = variations(product, api)[BASE], pointers(SIGNATURES[api])
    nulls = [{change.argument for change in changes} for changes in made if {c.field for c in changes} <= {"null"}]
    for size in (1, 2):
        found = {frozenset(each) for each in nulls if len(each) == size}
        assert found == {frozenset(each) for each in combinations(names, size)}
    tensors, lists = SIGNATURES[api].tensors, SIGNATURES[api].lists
    beside = [changes for changes in made if [change.field for change in changes].count("null") == 1]
    for name in names:
        own = 4 * (name in tensors) or 2 * (name in lists)
        with_others = [changes for changes in beside if len(changes) == 2 and Change(name, "null") in changes]
        assert len(with_others) == 4 * len(tensors) + 2 * len(lists) - own


@everywhere
def test_variations_of_one_call_are_different_calls_and_may_be_asked(product: Product, api: str) -> None:
    for name, made in variations(product, api).items():
        called = calls_of(product, api, name)
        assert len(set(called)) == len(made)
        for call in called:
            expected = expectations(product, call)
            assert expected.code.crashes or may_ask(call, expected)


# What may not be asked, or run.


def test_what_is_not_defined_is_not_run_and_what_kills_a_library_not_asked() -> None:
    model = models(A2, MASK)[BASE]
    short = model.with_tensors({"indices": model.tensor("indices").reshaped((1, 1, 1, 1))})
    outside = model.with_tensors({"gradInput": replace(model.tensor("gradInput"), offset=1)})
    refused = model.with_lists({"stride": (0,)})
    runs = [may_run(call, expectations(A2, call)) for call in (model, short, outside, refused)]
    assert runs == [True, False, False, False]
    assert [expectations(A2, call).code.status for call in (model, short, outside)] == [0, 0, 0]
    fatal = violating_call(A2, "mask-bwd.length.kernelSize.null-lists")
    model = models(A2, MP3)[BASE]
    negative = {name: model.tensor(name).reshaped((-1, *model.tensor(name).shape[1:])) for name in model.tensors}
    asked = [may_ask(call, expectations(A2, call)) for call in (model, fatal, model.with_tensors(negative))]
    assert asked == [True, False, False]


# What is drawn.


@everywhere
def test_every_drawn_call_may_be_asked_and_has_an_answer_whatever_its_layout(product: Product, api: str) -> None:
    drawn = drawn_calls(product, api, 40, 7)
    assert len(set(drawn)) == 40
    for call in drawn:
        expected = expectations(product, call)
        assert may_ask(call, expected)
        assert predict(product, call) == expected.code.phase_one
        assert expected.followed(expected.code.phase_one) in (Follows.BOTH, Follows.CODE)
        if expected.code.phase == 2:
            assert expected.followed(0, expected.code.status) in (Follows.BOTH, Follows.CODE)
        assert ContractCall.from_json(call.to_json()) == call
        tensors = {name: tensor for name, tensor in call.tensors.items() if tensor is not None}
        if not any(map(leaves_storage, tensors.values())):  # whose views are refused
            spread = {
                name: replace(tensor, strides=(0,) * tensor.rank, offset=5, storage=(6, 2))
                for name, tensor in tensors.items()
            }
            assert expectations(product, call.with_tensors(spread)) == expected


def test_drawn_calls_follow_from_the_seed_and_are_legal_and_illegal_in_one_field_and_in_several() -> None:
    assert drawn_calls(A2, MP2, 30, 1) == drawn_calls(A2, MP2, 30, 1) != drawn_calls(A2, MP2, 30, 2)
    drawn = drawn_calls(ASCEND_950, MP2, 300, 0)
    statuses = [expectations(ASCEND_950, call).code.status for call in drawn]
    assert 0.05 < statuses.count(0) / len(statuses) < 0.6
    assert {1, 2, 3} <= {len(nearest(call, models(ASCEND_950, MP2))[1]) for call in drawn}


# Whoever misses one way to break a clause is found, by both, and told in one sentence.


@cache
def answered(call: ContractCall) -> Expectation:
    return expectations(ASCEND_950, call)


@cache
def questions(api: str, part: CallPart) -> list[ContractQuestion]:
    return [ContractQuestion(call, ASCEND_950, clause, title, CONTRACT) for clause, title, call in part.make()]


@dataclass
class Modelled(Backend):
    """Answers by the model, but for the calls that ``errs`` picks: those it takes for legal, or refuses."""

    errs: Callable[[ContractCall], bool]

    product = ASCEND_950

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return None

    def run(self, call: Call, mode: str = "") -> Outcome:
        return Outcome(Status.UNAVAILABLE)

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        code = answered(call).code
        status = code.phase_one
        if self.errs(call):
            status = 161002 if status == 0 else 0
        if status:
            return Attempt(status, None, "said why")
        return Attempt(0, code.status if runs and code.phase != 1 else None)


Errs = Callable[[ContractCall], bool]
"""Whether a library gets a call wrong."""


def only(clause: str, argument: str, wrong: Callable[[Any], bool]) -> Errs:
    """Of the calls that this clause decides those in which this tensor or list is like that."""

    def picks(call: ContractCall) -> bool:
        value = call.tensors[argument] if argument in call.tensors else call.lists[argument]
        return value is not None and wrong(value) and answered(call).code.clause == clause

    return picks


FAULTS: dict[str, tuple[str, Errs]] = {
    "self has dtype UINT1": (MP2, only("2d-bwd.dtype.self", "self", lambda one: one.dtype == "UINT1")),
    "indices has dtype UINT64": (
        AD2,
        only("adaptive2d-bwd.dtype.indices", "indices", lambda one: one.dtype == "UINT64"),
    ),
    "gradOutput has shape": (MP3, only("3d-bwd.rank.gradOutput", "gradOutput", lambda one: one.rank == 3)),
    "padding is [1, 0, 1, 0]": (MP2, only("2d-bwd.length.padding", "padding", lambda values: len(values) == 4)),
    "kernelSize is [2, -1, 2]": (
        MP3,
        only("3d-bwd.kernelSize.positive", "kernelSize", lambda values: values[1:2] == (-1,)),
    ),
}
"""The sentence that tells of it: of which API, and what a library gets wrong."""

every_fault = pytest.mark.parametrize(("told", "api", "errs"), [(told, *fault) for told, fault in FAULTS.items()])


def violations(api: str, errs: Errs, asked: Iterable[CallPart]) -> list[tuple[ContractCall, str]]:
    asked_questions = (question for part in asked for question in questions(api, part))
    judged = [(question.call, question.judge(Modelled(errs))) for question in asked_questions]
    return [(call, row["reason"]) for call, row in judged if row["verdict"] == "violates"]


def varied(api: str) -> list[CallPart]:
    return [part for part in call_parts(ASCEND_950, api, 80, 0) if part.id.startswith("variations")]


@every_fault
def test_a_library_that_misses_one_way_is_found_by_the_variations(told: str, api: str, errs: Errs) -> None:
    found = violations(api, errs, varied(api))
    assert any(told in reason for _, reason in found)
    assert all(errs(call) for call, _ in found)


@every_fault
def test_and_by_what_is_drawn_and_shrinks_to_one_sentence(told: str, api: str, errs: Errs) -> None:
    parts = (drawn_part(ASCEND_950, api, number, 500, number) for number in range(20))
    found = next(filter(None, (violations(api, errs, [part]) for part in parts)))
    backend, named = Modelled(errs), models(ASCEND_950, api)

    def still_fails(call: ContractCall) -> bool:
        return contract_question(call, ASCEND_950, CONTRACT).judge(backend)["verdict"] == "violates"

    call = max((call for call, _ in found), key=lambda call: len(nearest(call, named)[1]))
    _, changes = nearest(smaller_call(ASCEND_950, call, still_fails, 20.0), named)
    assert len(changes) == 1 and told.split(" [")[0] in sentence(changes)


def test_who_answers_by_the_model_is_not_accused() -> None:
    for api in (MP2, AD2):
        assert violations(api, lambda call: False, [drawn_part(ASCEND_950, api, 0, 500, 0), *varied(api)]) == []


def test_the_reason_names_clause_field_and_value() -> None:
    call = models(ASCEND_950, AD2)[BASE]
    wrong = call.with_tensors({"gradOutput": replace(call.tensor("gradOutput"), dtype="INT8")})
    row = contract_question(wrong, ASCEND_950, CONTRACT).judge(Modelled(lambda call: call == wrong))
    assert row["reason"].endswith(
        "expected 161002 in phase 1; adaptive2d-bwd.dtype.gradOutput: gradOutput has self's dtype. "
        "Here gradOutput has dtype INT8, all else is as in the legal call 'base'"
    )
