"""Layouts are those that programs make; what is read of memory in one pass is what masks of every byte say of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from holding import holding
from poolproof.backends.base import Call, Outcome, Tensor
from poolproof.references.layouts import LAYOUTS, TAGS, MemoryLayout
from poolproof.references.operators import OPERATORS, Operator
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import GAP_FILL, allocate, guard_and_gap_mask, holds_poison, poisons
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks.memory import inputs_untouched
from poolproof.suites.judging.checks.sums import round_trip
from poolproof.suites.judging.chunks import anywhere, are_same_bits
from poolproof.suites.judging.comparing import is_written_out_of_bounds
from poolproof.suites.judging.trial import Trial
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from scatter import Scatter


def laid_out(layout: str) -> CaseOperands:
    line = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,2,3,4],"kernel_size":[2],"layouts":%s}'
    others = dict.fromkeys(("grad_output", "self", "indices"), "nhwc") if layout in TAGS else {}
    return make_operands(Case.from_json(line % json.dumps(others | {"grad_input": layout})))


def output(layout: str) -> Tensor:
    tensor = allocate(laid_out(layout)).tensors["grad_input"]
    tensor.array[...] = 0
    return tensor


LONG = ("12", "16", "20")
"""Ends of the names of layouts whose gaps are too long to look at each of their bytes."""

OF_OUTPUTS = [
    name for name, layout in LAYOUTS.items() if not layout.shared and "d" not in layout.axes and not name.endswith(LONG)
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
    laid = laid_out(layout)
    for again, poison in enumerate(poisons(laid.case)):
        tensor = allocate(laid, again=bool(again)).tensors["grad_input"]
        outside = guard_and_gap_mask(tensor)
        assert (tensor.buffer[outside] == GAP_FILL).all() and (tensor.buffer[~outside] == poison).all()
        assert holds_poison(tensor.array, poison).all()
        tensor.array[0, 1, 2, 3] = 0
        assert holds_poison(tensor.array, poison).sum() == tensor.array.size - 1


@pytest.mark.parametrize("layout", ["contiguous", "contiguous+5", "sliced", "expanded_c", "expanded_nc+18"])
@pytest.mark.parametrize("name", ["self", "grad_output", "indices"])
def test_a_byte_of_an_input_that_the_first_run_changed_is_seen(name: str, layout: str) -> None:
    line = '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,2,3,4],"kernel_size":[2],"stride":[1],"layouts":%s}'
    trial = Trial(Case.from_json(line % json.dumps({name: layout})), Scatter())
    buffer = trial.baseline.call.tensors[name].buffer
    for byte in range(len(buffer)):
        buffer[byte] ^= 0x10
        assert inputs_untouched(trial) is not None
        buffer[byte] ^= 0x10
    assert inputs_untouched(trial) is None


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


class OwnStrides(Scatter):
    """It says of each output with which strides it came back."""

    def run(self, call: Call, mode: str = "") -> Outcome:
        return replace(super().run(call, mode), strides={"grad_input": call.tensors["grad_input"].strides})


def test_a_repetition_that_came_back_with_strides_is_read_in_its_own_memory() -> None:
    trial = Trial(laid_out("sliced").case, OwnStrides())
    assert trial.equals_baseline(trial.repetition(), "grad_input")
    assert trial.repetition().call is not trial.baseline.call


class FirstCells(Scatter):
    """Every call adds into the cells of the first."""

    cells: np.ndarray | None = None

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.cells = cells if self.cells is None else self.cells
        return self.cells, terms


def test_equal_bits_of_a_round_trip_with_other_indices_are_no_verdict() -> None:
    drawn = {"gradient": "integers", "indices": "in_window"}
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 2, 6, 6), kernel_size=(3,), **drawn)
    trial = Trial(case, FirstCells())
    assert not trial.summary.tally.rejected
    assert round_trip(trial) is not None


SHAPE = (2, 3, 4, 5, 6)

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "channels_last": lambda base: base(2, 4, 5, 6, 3).permute(0, 4, 1, 2, 3),
    "rotated": lambda base: base(2, 6, 3, 4, 5).permute(0, 2, 3, 4, 1),
    "batch_last": lambda base: base(3, 4, 5, 6, 2).permute(4, 0, 1, 2, 3),
    "reversed": lambda base: base(6, 5, 4, 3, 2).permute(4, 3, 2, 1, 0),
    "transposed": lambda base: base(2, 3, 4, 6, 5).transpose(3, 4),
    "transposed_nw": lambda base: base(6, 3, 4, 5, 2).transpose(0, 4),
    "transposed_cd": lambda base: base(2, 4, 3, 5, 6).transpose(1, 2),
    "sliced": lambda base: base(2, 3, 4, 5, 12)[..., ::2],
    "stepped_n2": lambda base: base(4, 3, 4, 5, 6)[::2],
    "stepped_d3": lambda base: base(2, 3, 12, 5, 6)[:, :, ::3],
    "padded_rows": lambda base: base(2, 3, 4, 5, 9)[..., :-3],
    "narrowed_c": lambda base: base(2, 6, 4, 5, 6)[:, 1:-2],
    "narrowed_h": lambda base: base(2, 3, 4, 8, 6)[:, :, :, 1:-2],
    "contiguous_slice": lambda base: base(5, 3, 4, 5, 6)[1:3],
    "channels_last_slice": lambda base: base(5, 4, 5, 6, 3).permute(0, 4, 1, 2, 3)[1:3],
    "expanded_n": lambda base: base(1, 3, 4, 5, 6).expand(2, 3, 4, 5, 6),
    "expanded_h": lambda base: base(2, 3, 4, 1, 6).expand(2, 3, 4, 5, 6),
    "expanded_nc": lambda base: base(4, 5, 6).expand(2, 3, 4, 5, 6),
    "expanded_all": lambda base: base().expand(2, 3, 4, 5, 6),
    "overlapping_n": lambda base: base(4, 4, 5, 6).unfold(0, 3, 1).permute(0, 4, 1, 2, 3),
    "overlapping_d": lambda base: base(2, 3, 8, 6).unfold(2, 5, 1).permute(0, 1, 2, 4, 3),
    "overlapping_h": lambda base: base(2, 3, 4, 10).unfold(3, 6, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_makes_it(name: str) -> None:
    torch = pytest.importorskip("torch")
    view = PROGRAMS[name](lambda *sizes: torch.empty(sizes))
    placed = MemoryLayout(name).place(SHAPE, 3)
    assert tuple(view.shape) == SHAPE
    assert (placed.strides, placed.start) == (view.stride(), view.storage_offset())


@pytest.mark.parametrize("name", [name for name, view in LAYOUTS.items() if view.shared])
@pytest.mark.parametrize("tensor", ["self", "grad_output", "indices"])
def test_elements_that_share_memory_have_the_value_of_the_first_of_them(name: str, tensor: str) -> None:
    windows = {"shape": (2, 3, 7, 7, 8), "kernel_size": (3,), "stride": (2,)}
    case = Case.of("MaxPool3dWithArgmaxBackward", indices="in_window", **windows)
    if not MemoryLayout(name).shares_along(case.sharing(tensor)):
        pytest.skip("windows of a plane share no index")
    drawn = allocate(make_operands(case)).tensors[tensor].array
    held = allocate(make_operands(replace(case, layouts=((tensor, name),)))).tensors[tensor]
    first: dict[int, Any] = {}
    for element in np.ndindex(*held.shape):
        first.setdefault(int(np.dot(element, held.strides)), drawn[element])
    assert held.storage_elements < held.array.size
    assert all(held.array[element] == first[int(np.dot(element, held.strides))] for element in np.ndindex(*held.shape))


def test_indices_of_the_forward_are_not_put_where_indices_share_memory() -> None:
    """Drawn indices of an expanded tensor are alike in all planes; the forward's own need not be."""
    case = (
        '{"operator":"MaxPool2dWithIndicesBackward","shape":[3,2,6,6],"kernel_size":[2],"layouts":'
        '{"indices":"expanded_n+3","grad_output":"expanded_all"}}'
    )
    row = CaseQuestion(Case.from_json(case), holding("interval", "round_trip")).judge(Scatter())
    assert (row["verdict"], row["checks_judged"]) == (Verdict.CONFORMS, ["refusal", "interval", "round_trip"])


# Sizes at which counters end: which plan asks them.


ASPECT = CASE_ASPECTS["huge"]


def asked(operator: Operator, plan: str, dtype: str = "float16") -> list[Case]:
    subject = Subject("any", operator, dtype, operator.indices.dtypes[0])
    return [each.case for block in blocks([subject], [ASPECT], PLANS[plan], 0) for each in block.questions()]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_plans_meet_totals_planes_and_what_31_bits_count(operator: Operator) -> None:
    smoke, acceptance, soak = (asked(operator, plan) for plan in ("smoke", "acceptance", "soak"))
    totals = [prod(case.shape) for case in smoke]
    assert any(1 << 20 < total < 1 << 24 for total in totals)
    assert any(1 << 24 < total < 1 << 25 for total in totals)
    assert {65535, 65536, 65537} <= {case.planes for case in acceptance}
    assert max(case.plane_size for case in acceptance) > 1 << 24
    assert max(max(case.shape) for case in acceptance) > 1 << 24
    assert max(prod(case.shape) for case in soak) > 1 << 31
    assert max(case.memory_bytes() for case in (*soak, *asked(operator, "soak", "float32"))) > 2 * (1 << 31)
    assert asked(operator, "smoke", "float32") == []
    for case in (*smoke, *acceptance, *soak):
        assert Case.from_json(case.to_json()) == case
