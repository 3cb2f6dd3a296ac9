"""Every clause in every way: what is enumerated, that it is all, and that whoever misses one way of it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import pytest

from contract_calls import AD2, MASK, MP2, MP3
from poolproof.backends.base import Attempt, Backend, Call, Outcome, Status
from poolproof.references.contract import (
    SIGNATURES,
    ContractCall,
    Expectation,
    all_clauses,
    expectations,
    may_ask,
    may_run,
    supporting_products,
    violating_call,
)
from poolproof.references.contract.changes import (
    BASE,
    INT64_MAX,
    INT64_MIN,
    LENGTHS,
    RANKS,
    Change,
    changed,
    differences,
    models,
    nearest,
    pointers,
    sentence,
    variations,
)
from poolproof.references.contract.vocabulary import DTYPES, TAGS
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS, Product
from poolproof.suites.cases.calls import CallPart, DrawnCalls, VariedCalls, call_parts, drawn_calls
from poolproof.suites.cases.shrinking import smaller_call
from poolproof.suites.judging.contract import ContractQuestion, contract_question, contract_questions
from poolproof.suites.plan.aspects import CONTRACT

A2, ASCEND_950 = PRODUCTS["A2"], PRODUCTS["950"]


@cache
def calls_of(product: Product, api: str, name: str = BASE) -> list[ContractCall]:
    model = models(product, api)[name]
    return [changed(model, changes) for changes in variations(product, api)[name]]


# What is enumerated: counted from the signature, for every API on every product.

EVERYWHERE = [(product, api) for product in PRODUCTS.values() for api in SIGNATURES]


@pytest.mark.parametrize("api", SIGNATURES)
def test_every_dtype_tag_and_rank_of_every_tensor_stands_alone(api: str) -> None:
    product = supporting_products(api)[0]
    model = models(product, api)[BASE]
    alone = [call for call in calls_of(product, api) if len(differences(call, model)) == 1]
    for name in SIGNATURES[api].tensors:
        tensors = [tensor for call in alone if (tensor := call.tensors[name]) is not None]
        assert {tensor.dtype for tensor in tensors} == set(DTYPES)
        assert {tensor.format for tensor in tensors} == set(TAGS)
        assert {tensor.rank for tensor in tensors} == set(RANKS)


@pytest.mark.parametrize("api", SIGNATURES)
def test_every_axis_of_every_tensor_is_too_long_too_short_and_extreme_by_itself(api: str) -> None:
    product = supporting_products(api)[0]
    model = models(product, api)[BASE]
    alone = [call for call in calls_of(product, api) if len(differences(call, model)) == 1]
    for name in SIGNATURES[api].tensors:
        shape = model.tensor(name).shape
        found = {tensor.shape for call in alone if (tensor := call.tensors[name]) is not None}
        for axis, length in enumerate(shape):
            for value in (length - 1, length + 1, 0, -1, INT64_MAX, INT64_MIN):
                resized = (*shape[:axis], value, *shape[axis + 1 :])
                call = Change(name, "shape", resized).applied(model)
                assert resized in found or not may_ask(call, expectations(product, call))


@pytest.mark.parametrize("api", [api for api in SIGNATURES if SIGNATURES[api].lists])
def test_every_list_has_every_length_and_every_extreme_on_each_axis(api: str) -> None:
    product = supporting_products(api)[0]
    model = models(product, api)[BASE]
    alone = [call for call in calls_of(product, api) if len(differences(call, model)) == 1]
    for name in SIGNATURES[api].lists:
        found = {call.lists[name] for call in alone} | {model.lists[name]}
        assert None in found
        assert {len(values) for values in found if values is not None} == set(LENGTHS)
        values = model.attribute(name)
        for axis, value in enumerate(values):
            for other in (0, -1, INT64_MAX, INT64_MIN, value + 1):
                assert (*values[:axis], other, *values[axis + 1 :]) in found


@pytest.mark.parametrize(("product", "api"), EVERYWHERE, ids=lambda each: str(each).removeprefix("aclnn"))
def test_every_pointer_is_null_alone_with_each_other_and_beside_every_breach(product: Product, api: str) -> None:
    made = variations(product, api)[BASE]
    names = pointers(SIGNATURES[api])
    nulls = [
        frozenset(change.argument for change in changes)
        for changes in made
        if all(change.field == "null" for change in changes)
    ]
    assert {each for each in nulls if len(each) == 1} == {frozenset({name}) for name in names}
    assert {each for each in nulls if len(each) == 2} == {frozenset(pair) for pair in combinations(names, 2)}
    tensors, lists = SIGNATURES[api].tensors, SIGNATURES[api].lists
    beside = [changes for changes in made if sum(change.field == "null" for change in changes) == 1]
    for name in names:
        own = 4 * (name in tensors) or 2 * (name in lists)
        with_others = [changes for changes in beside if len(changes) == 2 and Change(name, "null") in changes]
        assert len(with_others) == 4 * len(tensors) + 2 * len(lists) - own


@pytest.mark.parametrize(("product", "api"), EVERYWHERE, ids=lambda each: str(each).removeprefix("aclnn"))
def test_variations_of_one_call_are_different_calls_and_may_be_asked(product: Product, api: str) -> None:
    for name, made in variations(product, api).items():
        called = calls_of(product, api, name)
        assert len(set(called)) == len(made)
        for call in called:
            expected = expectations(product, call)
            assert expected.code.crashes or may_ask(call, expected)


@pytest.mark.parametrize("api", SIGNATURES)
def test_nearly_every_clause_of_arguments_is_broken_in_several_ways(api: str) -> None:
    """A clause that nothing but its own example breaks is one that a single field cannot break."""
    product = ASCEND_950 if ASCEND_950 in supporting_products(api) else A2
    decided = [
        expectations(product, call).code.clause
        for name in variations(product, api)
        for call in calls_of(product, api, name)
    ]
    asked = [
        clause.id
        for clause in all_clauses(api)
        if product in clause.products and clause.stage == "arguments" and clause.status is not None
    ]
    few = [clause for clause in asked if decided.count(clause) < 2]
    assert len(few) <= 0.15 * len(asked), few


# What may not be asked, or run.


def test_what_is_not_defined_is_not_run() -> None:
    model = models(A2, MASK)[BASE]
    short = model.with_tensors({"indices": model.tensor("indices").reshaped((1, 1, 1, 1))})
    outside = model.with_tensors({"gradInput": replace(model.tensor("gradInput"), offset=1)})
    refused = model.with_lists({"stride": (0,)})
    runs = [may_run(call, expectations(A2, call)) for call in (model, short, outside, refused)]
    assert runs == [True, False, False, False]
    assert [expectations(A2, call).code.status for call in (model, short, outside)] == [0, 0, 0]


def test_what_kills_a_library_and_negative_lengths_that_pass_are_not_asked() -> None:
    fatal = violating_call(A2, "mask-bwd.length.kernelSize.null-lists")
    model = models(A2, MP3)[BASE]
    negative = {name: model.tensor(name).reshaped((-1, *model.tensor(name).shape[1:])) for name in model.tensors}
    for call in (fatal, model.with_tensors(negative)):
        assert not may_ask(call, expectations(A2, call))
    assert may_ask(model, expectations(A2, model))


# What is drawn.


@pytest.mark.parametrize(("product", "api"), EVERYWHERE, ids=lambda each: str(each).removeprefix("aclnn"))
def test_every_drawn_call_has_an_answer_and_may_be_asked(product: Product, api: str) -> None:
    drawn = drawn_calls(product, api, 40, 7)
    assert len(set(drawn)) == 40
    assert all(may_ask(call, expectations(product, call)) for call in drawn)


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    assert drawn_calls(A2, MP2, 30, 1) == drawn_calls(A2, MP2, 30, 1) != drawn_calls(A2, MP2, 30, 2)


def test_drawn_calls_are_legal_and_illegal_in_one_field_and_in_several() -> None:
    product, named = ASCEND_950, models(ASCEND_950, MP2)
    drawn = drawn_calls(product, MP2, 300, 0)
    statuses = [expectations(product, call).code.status for call in drawn]
    assert 0.05 < statuses.count(0) / len(statuses) < 0.6
    assert {1, 2, 3} <= {len(nearest(call, named)[1]) for call in drawn}


# Whoever misses one way to break a clause is found, by both, and told in one sentence.


@cache
def answered(call: ContractCall) -> Expectation:
    return expectations(ASCEND_950, call)


@cache
def questions(api: str, part: CallPart) -> list[ContractQuestion]:
    return contract_questions(ASCEND_950, api, part, CONTRACT, "block")


@dataclass
class Modelled(Backend):
    """Answers by the model, but for the calls that ``errs`` picks: those it takes for legal, or refuses."""

    errs: Callable[[ContractCall], bool]

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


def of_dtype(name: str, dtype: str) -> Callable[[ContractCall], bool]:
    return lambda call: (tensor := call.tensors[name]) is not None and tensor.dtype == dtype


def of_rank(name: str, rank: int) -> Callable[[ContractCall], bool]:
    return lambda call: (tensor := call.tensors[name]) is not None and tensor.rank == rank


def of_length(name: str, length: int) -> Callable[[ContractCall], bool]:
    return lambda call: (values := call.lists[name]) is not None and len(values) == length


def of_value(name: str, axis: int, value: int) -> Callable[[ContractCall], bool]:
    return lambda call: (values := call.lists[name]) is not None and values[axis : axis + 1] == (value,)


def only(clause: str, picks: Callable[[ContractCall], bool]) -> Callable[[ContractCall], bool]:
    """The calls that this clause decides, of those."""
    return lambda call: picks(call) and answered(call).code.clause == clause


FAULTS = {
    "one dtype of self": (MP2, only("2d-bwd.dtype.self", of_dtype("self", "UINT1")), "self has dtype UINT1"),
    "one dtype of indices": (
        AD2,
        only("adaptive2d-bwd.dtype.indices", of_dtype("indices", "UINT64")),
        "indices has dtype UINT64",
    ),
    "one rank": (MP3, only("3d-bwd.rank.gradOutput", of_rank("gradOutput", 3)), "gradOutput has shape"),
    "one length": (MP2, only("2d-bwd.length.padding", of_length("padding", 4)), "padding is [1, 0, 1, 0]"),
    "one value on one axis": (
        MP3,
        only("3d-bwd.kernelSize.positive", of_value("kernelSize", 1, -1)),
        "kernelSize is [2, -1, 2]",
    ),
}
"""What a library gets wrong: of which API, which calls, and the sentence that tells of it."""


def violations(
    api: str, errs: Callable[[ContractCall], bool], asked: Iterable[CallPart]
) -> list[tuple[ContractCall, str]]:
    backend = Modelled(errs)
    return [
        (question.call, row["reason"])
        for part in asked
        for question in questions(api, part)
        if (row := question.judge(backend))["verdict"] == "violates"
    ]


def varied(api: str) -> list[CallPart]:
    return [part for part in call_parts(ASCEND_950, api, 80, 0) if isinstance(part, VariedCalls)]


@pytest.mark.parametrize("name", FAULTS)
def test_a_library_that_misses_one_way_is_found_by_the_variations(name: str) -> None:
    api, errs, told = FAULTS[name]
    found = violations(api, errs, varied(api))
    assert any(told in reason for _, reason in found)
    assert all(errs(call) for call, _ in found)


@pytest.mark.parametrize("name", FAULTS)
def test_and_by_what_is_drawn_and_shrinks_to_one_sentence(name: str) -> None:
    api, errs, told = FAULTS[name]
    found = next(filter(None, (violations(api, errs, [DrawnCalls(number, 500, number)]) for number in range(20))))
    backend = Modelled(errs)

    def still_fails(call: ContractCall) -> bool:
        return contract_question(call, ASCEND_950, CONTRACT).judge(backend)["verdict"] == "violates"

    call = max((call for call, _ in found), key=lambda call: len(nearest(call, models(ASCEND_950, api))[1]))
    smallest = smaller_call(ASCEND_950, call, still_fails, 20.0)
    _, changes = nearest(smallest, models(ASCEND_950, api))
    assert len(changes) == 1 and told.split(" [")[0] in sentence(changes)


def test_who_answers_by_the_model_is_not_accused() -> None:
    for api in (MP2, AD2):
        assert violations(api, lambda call: False, [DrawnCalls(0, 500, 0), *varied(api)]) == []


def test_the_reason_names_clause_field_and_value() -> None:
    call = models(ASCEND_950, AD2)[BASE]
    wrong = call.with_tensors({"gradOutput": replace(call.tensor("gradOutput"), dtype="INT8")})
    row = contract_question(wrong, ASCEND_950, CONTRACT).judge(Modelled(of_dtype("gradOutput", "INT8")))
    assert row["reason"].endswith(
        "expected 161002 in phase 1; adaptive2d-bwd.dtype.gradOutput decides (gradOutput has self's dtype.), "
        "for gradOutput has dtype INT8, else as the legal call 'base'"
    )
