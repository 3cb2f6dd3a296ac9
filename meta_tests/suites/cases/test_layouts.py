"""Layouts are those that programs make, and what shares memory has one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from holding import holding
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.layouts import DRAWN, LAYOUTS, MemoryLayout, suitable
from poolproof.suites.cases.memory import POISONS, allocate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from scatter import Scatter

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


def test_the_gradient_of_a_sum_is_expanded_over_all_axes() -> None:
    torch = pytest.importorskip("torch")
    seen = []
    pooled = torch.zeros(SHAPE, requires_grad=True)
    pooled.register_hook(lambda gradient: seen.append(gradient.stride()))
    pooled.sum().backward()
    assert seen == [MemoryLayout("expanded_all").place(SHAPE, 3).strides]


@pytest.mark.parametrize("name", [name for name, view in LAYOUTS.items() if view.shared])
@pytest.mark.parametrize("tensor", ["self", "grad_output", "indices"])
def test_elements_that_share_memory_have_one_value(name: str, tensor: str) -> None:
    layout = MemoryLayout(name)
    windows = {"shape": (2, 3, 7, 7, 8), "kernel_size": (3,), "stride": (2,)}
    case = Case.of("MaxPool3dWithArgmaxBackward", indices="in_window", **windows)
    if not layout.shares_along(case.sharing(tensor)):
        pytest.skip("windows of a plane share no index")
    case = replace(case, layouts=((tensor, str(layout)),))
    operands = make_operands(case)
    meant = {"self": operands.values, "grad_output": operands.gradient, "indices": operands.indices}[tensor]
    held = allocate(operands, POISONS[0]).tensors[tensor]
    assert held.storage_elements < held.array.size
    assert np.array_equal(held.array, meant.reshape(held.shape))
    assert len(np.unique(held.array)) > 1 or name == "expanded_all"


def test_indices_of_the_forward_are_not_put_where_indices_share_memory() -> None:
    """Drawn indices of an expanded tensor are alike in all planes; the forward's own need not be."""
    case = (
        '{"operator":"MaxPool2dWithIndicesBackward","shape":[3,2,6,6],"kernel_size":[2],"layouts":'
        '{"indices":"expanded_n+3","grad_output":"expanded_all"}}'
    )
    row = CaseQuestion(Case.from_json(case), holding("interval", "round_trip")).judge(Scatter())
    assert (row["verdict"], row["checks_judged"]) == (Verdict.CONFORMS, ["refusal", "interval", "round_trip"])


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (1, 5, 1, 1, 1), (3, 1, 1, 1, 4), (0, 5, 2, 3, 4), (5, 4, 4, 4)])
def test_what_suits_differs_from_contiguous_where_there_are_elements(shape: tuple[int, ...]) -> None:
    """`suitable` looks at which axes are longer than 1, and at no lengths: the lengths agree with it."""
    dense = MemoryLayout("contiguous").place(shape, 3)
    marked = {name for name, view in LAYOUTS.items() if view.marked}
    suiting = set(suitable(DRAWN, shape, 3, "ncdhw")) - marked
    assert suiting == {name for name in DRAWN if MemoryLayout(name).suits(shape, 3)} - marked
    for name in suiting:
        strides = zip(MemoryLayout(name).place(shape, 3).strides, dense.strides, shape, strict=True)
        assert any(own != usual and size > 1 for own, usual, size in strides)
