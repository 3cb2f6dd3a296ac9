"""The ways of torch to aclnn on an NPU, held against the contract; and errors as torch_npu words them."""

from dataclasses import replace

import pytest

from poolproof.backends import torch_streams
from poolproof.backends.aclnn.calls import DTYPE_NAMES
from poolproof.backends.base import Status
from poolproof.backends.torch_npu import TorchNpu
from poolproof.references.contract.examples import base_template
from poolproof.references.contract.expectation import expectations
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.references.torch_ways import WAYS
from poolproof.suites.plan.known import _survey_problems
from poolproof.suites.plan.plans import Survey, subjects


def npu(product: str, is_compatible: bool = False) -> TorchNpu:
    """One that is not opened, on a product."""
    made = TorchNpu.__new__(TorchNpu)
    made.device, made.product, made.is_compatible = "npu", PRODUCTS[product], is_compatible
    made.actions = torch_streams.ACTIONS
    return made


def reached(product: str, dtype: str = "float32", is_compatible: bool = False) -> set[str]:
    backend = npu(product, is_compatible)
    return {
        f"{name} {stored}"
        for name, operator in OPERATORS.items()
        for stored in operator.indices.dtypes
        if backend.unsupported(operator, dtype, stored) is None
    }


def test_every_operator_has_a_way_by_its_own_name_in_torch() -> None:
    assert WAYS.keys() == OPERATORS.keys()
    assert all(WAYS[name].aten == operator.aten for name, operator in OPERATORS.items() if operator.aten)


@pytest.mark.parametrize("product", ["A2", "A3", "950"])
def test_aclnn_takes_what_torch_passes_on(product: str) -> None:
    for name, stored in (each.split() for each in reached(product)):
        dtypes = {"dtype": "FLOAT", "index_dtype": DTYPE_NAMES[stored]}
        call = base_template(f"aclnn{name}").changed(dtypes).call()
        assert not expectations(PRODUCTS[product], call).code.status, (name, stored)


def test_each_product_is_reached_in_its_own_way() -> None:
    windowed = {"MaxPool2dWithIndices", "MaxPool2dWithMask"}
    for product, ways in {"A2": 4 + 6 - 2 + 1, "A3": 9, "950": 2 * 8 - 1, "310P": 0}.items():
        assert len(reached(product)) == ways
    assert windowed & {way.split()[0] for way in reached("A2")} == {"MaxPool2dWithMask"}
    assert windowed & {way.split()[0] for way in reached("950")} == {"MaxPool2dWithIndices"}
    assert windowed & {way.split()[0] for way in reached("A2", is_compatible=True)} == {"MaxPool2dWithIndices"}
    assert reached("950", is_compatible=True) == reached("950")
    reason = npu("A2").unsupported(OPERATORS["AdaptiveMaxPool3d"], "float64", "int32")
    assert reason == "torch_npu computes adaptive_max_pool3d of float64 on the CPU"


WHERE = "max_pool3d_with_indices_out:../op-plugin/MaxPool3dWithIndicesKernelNpuOpApi.cpp:154 NPU function error: "
LEVEL = "[ERROR] 2026-11-29-13:17:46 (PID:1, Device:0, RankID:-1) ERR00100 PTA call acl api failed."
ASYNC = "The Inner error is reported as above. The process exits for this inner error, and the current working operator"


@pytest.mark.parametrize(
    ("said", "status", "code", "message", "is_usable"),
    [
        ([], Status.REFUSED, 161002, "E161002: indices may not be INT8", True),
        (["EZ9999: Inner Error!"], Status.REFUSED, 561103, "EZ9999: Inner Error!", True),
        (["E19999: x"], Status.REFUSED, 507015, "E19999: x", False),
        (["EL0004: out of memory"], Status.UNAVAILABLE, 207018, "EL0004: out of memory", True),
    ],
)
def test_code_and_reason_are_those_of_aclnn(
    said: list[str], status: Status, code: int, message: str, is_usable: bool
) -> None:
    lines = [
        f"{WHERE}call aclnnMaxPool3dWithArgmax failed, error code is {code}",
        LEVEL,
        *(said or [message]),
        "",
        "at",
    ]
    backend = npu("A2")
    found = backend.refused(RuntimeError("\n".join(lines)))
    assert (found.status, found.code, found.message) == (status, code, message)
    assert backend.is_usable() is is_usable


def test_after_an_error_in_its_queue_torch_npu_computes_nothing() -> None:
    backend = npu("A2")
    found = backend.refused(RuntimeError(f"{ASYNC} is x.\n{LEVEL}"))
    assert (found.code, found.message, backend.is_usable()) == (None, f"{ASYNC} is x.", False)
    refused = backend.refused(RuntimeError("expected dtype Long but got dtype Int"))
    assert (refused.status, refused.message) == (Status.REFUSED, "expected dtype Long but got dtype Int")
    assert not backend.is_usable()


@pytest.mark.parametrize("is_compatible", [False, True])
@pytest.mark.parametrize("product", ["A2", "950"])
def test_what_a_record_says_of_torch_npu_is_held_against_the_table(product: str, is_compatible: bool) -> None:
    backend = npu(product, is_compatible)
    found = Survey({}, subjects("torch-npu", backend), backend.product)
    assert not list(_survey_problems("torch-npu", found))
    first = next(each for each in found.subjects if each.unsupported is None and each.dtype == "float16")
    less = [replace(each, unsupported="we have no such call") if each is first else each for each in found.subjects]
    (problem,) = _survey_problems("torch-npu", replace(found, subjects=less))
    assert "the run records unsupported as we have no such call" in problem
