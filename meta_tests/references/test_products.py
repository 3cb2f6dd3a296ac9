"""Products: which chip is which, what a new one inherits, and that nothing is forgotten for it in silence."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from poolproof.backends import emulator, registry
from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator.backend import KNOWN_PRODUCTS, Emulated
from poolproof.references import products
from poolproof.references.accumulation import ACC32, NATIVE
from poolproof.references.contract import expectation as answers
from poolproof.references.contract.builders import dtype_listed, not_supported
from poolproof.references.contract.call import ContractError
from poolproof.references.contract.clause import BEFORE_A2, Contract
from poolproof.references.contract.examples import legal_calls, violating_call, violating_pair
from poolproof.references.contract.expectation import all_clauses, expectations
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.products import PRODUCTS, Product, product_of

ASCEND_950 = PRODUCTS["950"]
NEW = Product("1000", like=ASCEND_950, soc_prefixes=("Ascend1000",))
UNLIKE_ANY = Product("1000", tags=(), adds_natively=(), seen_by_kernels=None)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("soc_name", "name"),
    [
        *(("Ascend910B1", "A2"), ("Ascend910_9382", "A3"), ("Ascend950PR_9591", "950"), ("Ascend910A", "910")),
        *(("Ascend310P3", "310P"), ("Ascend310B1", "310B"), ("Ascend1000", None), ("", None)),
    ],
)
def test_a_chip_belongs_to_the_product_with_the_longest_prefix_whatever_the_order_of_rows(
    monkeypatch: pytest.MonkeyPatch, soc_name: str, name: str | None, backwards: bool
) -> None:
    if backwards:
        monkeypatch.setattr(products, "PRODUCTS", dict(reversed(PRODUCTS.items())))
    assert product_of(soc_name) == (PRODUCTS[name] if name else None)


def test_a_product_has_what_it_does_not_say_from_the_one_that_it_is_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRODUCTS, "1000", UNLIKE_ANY)
    newer = Product("970", like=NEW, tags=())
    assert (NEW.tags, newer.tags) == (("NHWC",), ())
    assert newer.lineage == (newer, NEW, ASCEND_950)
    assert (newer.value_in({"950": 1, "A2": 2}), newer.value_in({"950": 1, "1000": 3})) == (1, 3)
    assert newer.accumulation("AdaptiveMaxPool3dBackward", "float16") == NATIVE
    assert newer.accumulation("AdaptiveMaxPool3dBackward", "float32") == ACC32
    assert newer.accumulation("MaxPool3dWithArgmaxBackward", "float16") == ACC32
    with pytest.raises(ValueError, match="product '1000' has no adds_natively: give it some, or name a product"):
        Product("1000", tags=())
    with pytest.raises(KeyError, match="product '1000' has no value"):
        UNLIKE_ANY.value_in({"A2": 1})
    with pytest.raises(ContractError, match=r"product '1000' has no value in table product of aclnn\w+: give it one"):
        answers.contracts_of((*PRODUCTS.values(), UNLIKE_ANY))
    with pytest.raises(BackendUnavailable, match="the emulator has neither 1000 nor a relative of it, only A2, A3"):
        Emulated("1000")


def test_a_product_like_another_has_its_clauses_and_changes_no_one_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_clauses()
    monkeypatch.setattr(answers, "CONTRACTS", answers.contracts_of((*PRODUCTS.values(), NEW)))
    for old, clause in zip(before, all_clauses(), strict=True):
        assert replace(clause, products=(), wording="") == replace(old, products=(), wording="")
        assert [product for product in clause.products if product != NEW] == list(old.products)
        assert (NEW in clause.products) == (ASCEND_950 in old.products), clause.id
        assert clause.statement == old.statement or "1000" in clause.statement
    assert any(clause.statement.endswith(" and 1000.") for clause in all_clauses())


@pytest.mark.parametrize("api", SIGNATURES)
def test_a_product_like_another_is_asked_and_owed_the_same(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CONTRACTS", answers.contracts_of((*PRODUCTS.values(), NEW)))
    assert legal_calls(NEW, api) == legal_calls(ASCEND_950, api)
    held = [clause.id for clause in all_clauses(api) if NEW in clause.products]
    for clause in held:
        call = violating_call(NEW, clause)
        assert call == violating_call(ASCEND_950, clause)
        assert expectations(NEW, call) == expectations(ASCEND_950, call)
    for first, second in pairwise(held):
        assert violating_pair(NEW, first, second) == violating_pair(ASCEND_950, first, second)


def test_a_table_names_the_product_that_it_forgets_and_a_value_that_is_no_products() -> None:
    def table(*values: str) -> Contract:
        listed = dtype_listed("self", dict.fromkeys(values, ("FLOAT",)))
        return Contract.of("aclnnSome", "some", not_supported(BEFORE_A2), listed)

    with pytest.raises(ContractError) as caught:
        table("A2").placed(PRODUCTS.values())
    assert str(caught.value) == (
        "product '950' has no value in table dtype.self of aclnnSome: give it one, or name a product that it is like"
    )
    table("A2", "950").placed(PRODUCTS.values())
    with pytest.raises(ContractError, match=r"dtype\.self of aclnnSome has a value for '95O', which is no product"):
        table("A2", "950", "95O").placed(PRODUCTS.values())
    own = dtype_listed("self", {**dict.fromkeys(PRODUCTS, ("FLOAT",)), "1000": ("FLOAT", "BF16")})
    (placed,) = Contract.of("aclnnSome", "some", own).placed((*PRODUCTS.values(), NEW)).clauses
    assert placed.statement.endswith("; FLOAT or BF16 on 1000.")


def test_there_is_an_emulated_backend_for_every_product_and_known_what_it_can_be() -> None:
    assert {f"emulator-{name.lower()}" for name in PRODUCTS} <= set(registry.names())
    source = (Path(emulator.__file__).parent / "ascendcl" / "product.cpp").read_text()
    assert tuple(re.findall(r'\{Product::k\w+, "(\w+)"', source)) == KNOWN_PRODUCTS
