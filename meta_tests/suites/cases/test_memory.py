"""What is read of memory in one pass is what masks of every byte say of it."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import numpy as np
import pytest

from poolproof.backends.base import Tensor
from poolproof.references.operators import OPERATORS, Operator
from poolproof.score.hunt import HONEST, answers
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.layouts import LAYOUTS
from poolproof.suites.cases.memory import GAP_FILL, POISONS, allocate, guard_and_gap_mask, holds_poison, rebuild_input
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.chunks import anywhere, are_same_bits
from poolproof.suites.judging.comparing import is_written_out_of_bounds, unchanged, untouched
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from scatter import Scatter


def laid_out(layout: str) -> CaseOperands:
    line = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,2,3,4],"kernel_size":[2],"layouts":%s}'
    return make_operands(Case.from_json(line % json.dumps({"grad_input": layout})))


def output(layout: str) -> Tensor:
    tensor = allocate(laid_out(layout), POISONS[0]).tensors["grad_input"]
    tensor.array[...] = 0
    return tensor


OF_OUTPUTS = [
    name for name, layout in LAYOUTS.items() if name != "nhwc" and not layout.shared and "d" not in layout.axes
]
"""Layouts that a 2-D output may have."""


@pytest.mark.parametrize("layout", OF_OUTPUTS)
def test_a_byte_outside_the_elements_is_told_from_one_of_them(layout: str) -> None:
    tensor = output(layout)
    outside = guard_and_gap_mask(tensor)
    assert not is_written_out_of_bounds(tensor)
    for byte in [0, len(outside) - 1, *range(tensor.guard - 2, len(outside) - tensor.guard + 2)]:
        before, tensor.buffer[byte] = tensor.buffer[byte], 0xEE
        assert is_written_out_of_bounds(tensor) == outside[byte]
        tensor.buffer[byte] = before


@pytest.mark.parametrize("layout", OF_OUTPUTS)
def test_poison_is_in_the_elements_and_nowhere_else(layout: str) -> None:
    for poison in POISONS:
        tensor = allocate(laid_out(layout), poison).tensors["grad_input"]
        outside = guard_and_gap_mask(tensor)
        assert (tensor.buffer[outside] == GAP_FILL).all() and (tensor.buffer[~outside] == poison).all()
        assert holds_poison(tensor.array, poison).all()
        tensor.array[0, 1, 2, 3] = 0
        assert holds_poison(tensor.array, poison).sum() == tensor.array.size - 1


def test_an_input_is_laid_out_alike_each_time() -> None:
    windows = {"shape": (1, 2, 5, 5), "kernel_size": (2,), "index_dtype": "int8"}
    layouts = (("grad_output", "expanded_c"), ("self", "sliced+3"))
    operands = make_operands(Case.of("MaxPool2dWithMaskBackward", layouts=layouts, **windows))
    call = allocate(operands, POISONS[0])
    for name in call.operator.inputs:
        np.testing.assert_array_equal(rebuild_input(operands, name, POISONS[0]).buffer, call.tensors[name].buffer)


@pytest.mark.parametrize(
    "layout", ["contiguous", "channels_last", "contiguous+5", "sliced", "expanded_c+3", "expanded_nc+18"]
)
@pytest.mark.parametrize("name", ["self", "grad_output", "indices"])
def test_an_input_of_which_a_byte_was_changed_is_never_seen_to_be_untouched(name: str, layout: str) -> None:
    """`expanded_nc+18`: as many elements in storage as in the tensor, of which most lie before the first."""
    line = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,2,3,4],"kernel_size":[2],"stride":[1],"layouts":%s}'
    operands = make_operands(Case.from_json(line % json.dumps({name: layout})))
    tensor = allocate(operands, POISONS[0]).tensors[name]
    assert untouched(tensor, operands, name) == (layout in ("contiguous", "channels_last"))
    for byte in range(len(tensor.buffer)):
        tensor.buffer[byte] ^= 0x10
        assert not untouched(tensor, operands, name)
        tensor.buffer[byte] ^= 0x10


@pytest.mark.parametrize("shape", [[2, 2, 3, 4], [1, 1, 130, 130]], ids=["kept", "made once more"])
def test_a_byte_of_an_input_that_the_first_run_changed_is_seen(shape: list[int]) -> None:
    line = '{"operator":"MaxPool2dWithIndicesBackward","shape":%s,"kernel_size":[1]}'
    trial = Trial(Case.from_json(line % shape), Scatter())
    for name in trial.case.api.inputs:
        buffer = trial.baseline.call.tensors[name].buffer
        assert (name in trial.baseline.before) == (shape[-1] < 130)
        for byte in (0, len(buffer) // 2, len(buffer) - 1):
            assert unchanged(trial, name)
            buffer[byte] ^= 0x10
            assert not unchanged(trial, name)
            buffer[byte] ^= 0x10


@pytest.mark.parametrize(
    "view",
    [lambda array: array, lambda array: array.T, lambda array: array[:, ::2]],
    ids=["contiguous", "transposed", "with gaps"],
)
def test_the_last_of_many_slabs_is_compared_too(view: Any) -> None:
    first, second = view(np.zeros((700, 900), np.uint16)), view(np.zeros((700, 900), np.uint16)).copy()
    assert first.size > 1 << 17 and not anywhere(np.not_equal, first, second) and are_same_bits(first, second)
    for element in ((0, 0), (first.shape[0] - 1, first.shape[1] - 1), (350, 171)):
        second[element] = 1
        assert anywhere(np.not_equal, first, second) and not are_same_bits(first, second)
        second[element] = 0


def test_zeros_of_both_signs_and_nans_of_two_payloads_are_not_the_same_bits() -> None:
    values = np.array([0.0, np.nan, 1.0, 2.0], np.float32)[::-1]
    for element in (2, 3):
        other = values.copy()
        assert are_same_bits(values, other)
        other.view(np.uint32)[element] ^= 0x80000000
        assert not are_same_bits(values, other)


def test_a_repetition_keeps_no_memory_but_that_of_its_outputs() -> None:
    trial = Trial(laid_out("sliced").case, Scatter())
    assert set(trial.repetition().call.tensors) == {"grad_input"}
    assert set(trial.baseline.call.tensors) == {"self", "grad_output", "indices", "grad_input"}


def test_one_bit_in_a_repetition_is_seen_whatever_was_asked_before() -> None:
    trial = Trial(laid_out("sliced").case, Scatter(), repeats=2)
    assert trial.equals_baseline(trial.repetition(), "grad_input")
    trial.repetition(2).output("grad_input").view(np.uint32)[1, 1, 2, 3] ^= 1
    assert not trial.equals_baseline(trial.repetition(2), "grad_input")
    assert trial.equals_baseline(trial.repetition(), "grad_input")


# Sizes at which counters end: which plan asks them, and a kernel that loses planes behind one is found.


ASPECT = CASE_ASPECTS["huge"]


def asked(operator: Operator, plan: str, dtype: str = "float16") -> list[Case]:
    subject = Subject("any", operator, dtype, operator.indices.dtypes[0])
    return [each.case for block in blocks([subject], [ASPECT], PLANS[plan], 0) for each in block.questions()]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_the_smoke_plan_meets_the_totals_and_the_acceptance_plan_the_planes(operator: Operator) -> None:
    smoke, acceptance, soak = (asked(operator, plan) for plan in ("smoke", "acceptance", "soak"))
    totals = [prod(case.shape) for case in smoke]
    assert any(1 << 20 < total < 1 << 24 for total in totals)
    assert any(1 << 24 < total < 1 << 25 for total in totals)
    assert {65535, 65536, 65537} <= {case.planes for case in acceptance}
    assert max(case.plane_size for case in acceptance) > 1 << 24
    assert max(max(case.shape) for case in acceptance) > 1 << 24
    assert max(prod(case.shape) for case in soak) > 1 << 31
    assert asked(operator, "smoke", "float32") == []
    for case in (*smoke, *acceptance, *soak):
        assert Case.from_json(case.to_json()) == case


def test_some_tensor_of_the_soak_plan_is_past_what_31_bits_of_bytes_address() -> None:
    for dtype in ("float32", "float16"):
        planned = asked(OPERATORS["MaxPool2dWithIndicesBackward"], "soak", dtype)
        assert any(case.memory_bytes() > 2 * (1 << 31) for case in planned)


@pytest.mark.parametrize(("defect", "bits"), [("planes_lost_past_2_20", 20), ("planes_lost_past_2_24", 24)])
def test_planes_that_are_lost_behind_an_offset_are_missed(defect: str, bits: int) -> None:
    """The smallest case past the offset, which the smoke plan has, shows it; the honest emulator conforms there."""
    found = [case for case in asked(OPERATORS["AdaptiveMaxPool2dBackward"], "smoke") if prod(case.shape) > 1 << bits]
    question = CaseQuestion(min(found, key=lambda case: prod(case.shape)), ASPECT)
    (lost,) = answers("A2", defect, [question], 120.0)
    (honest,) = answers("A2", HONEST, [question], 120.0)
    assert lost["checks_violated"][0] == "interval"
    assert honest["verdict"] == "conforms"
