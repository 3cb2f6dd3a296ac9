"""What is wrong is told a part of the tensor at a time, and told the same whatever the parts are."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from holding import holding
from poolproof.references.accumulation import ACC32
from poolproof.references.criterion import admissible
from poolproof.references.formats import FORMATS
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases import operands as operands_module
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging import cells, chunks, decoder
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.cells import REACHED, REJECTED, SINGLE_VALUED, CellChunks
from poolproof.suites.judging.checks import USUAL
from scatter import Scatter
from scatter_backends import FAULTS

WINDOWS = {"shape": (2, 3, 9, 11), "kernel_size": (3,), "stride": (2,), "padding": (1,)}
BACKWARD = Case.of("MaxPool2dWithIndicesBackward", **WINDOWS)
FORWARD = Case.of("MaxPool2dWithIndices", **WINDOWS)
LAYOUTS = (("grad_input", "sliced"), ("grad_output", "channels_last"))
STRIDED = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 3, 9, 11), kernel_size=(2,), layouts=LAYOUTS)
EVERYWHERE = 1 << 40


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and slabs of eight elements or more: several of each plane."""
    monkeypatch.setattr(cells, "_MAX_CELLS", 8)
    for module in (decoder, chunks):
        monkeypatch.setattr(module, "_CHUNK_ELEMENTS", 8)
    for name in ("CHUNK_ELEMENTS", "MAX_WHOLE_PLANE"):
        monkeypatch.setattr(operands_module, name, 8)


class _Astray(Scatter):
    """Many windows' gradients are lost, zeroed or sent to the next cell, in all planes; maxima are too great."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        number = np.arange(len(cells))
        moved = np.where(number % 13 == 5, (cells + 1) % call.tensors["self"].array.size, cells)
        return moved[number % 7 != 2], np.where(number % 11 == 3, 0.0, terms)[number % 7 != 2]

    def store_forward(self, call, maxima, indices):  # type: ignore[no-untyped-def]
        super().store_forward(call, maxima + maxima.dtype.type(1), indices + 1)


TOLD = (
    *("lost", "duplicated", "misrouted", "unwritten", "zero_garbage", "writes_input", "writes_past", "fills_gaps"),
    *("ignores_strides", "absolute_threshold", "last_maximum", "window_local_indices", "other_mode", "tensor_indices"),
)
BACKENDS: dict[str, Callable[[], Scatter]] = {name: FAULTS[name][0] for name in TOLD} | {"astray": _Astray}


def told(case: Case, name: str) -> Row:
    row = CaseQuestion(case, holding(*USUAL, "modes", "round_trip")).judge(BACKENDS[name]())
    return {column: value for column, value in row.items() if column not in ("seconds", "call_seconds", "judged_at")}


CASES = (
    replace(BACKWARD, gradient="base_four_weights"),
    replace(STRIDED, gradient="special"),
    replace(STRIDED, index_dtype="int32", scale=-8),
    replace(FORWARD, values="nan"),
)


@pytest.fixture(scope="module")
def whole() -> dict[tuple[str, str], Row]:
    """What is told of every case and fault in one part."""
    return {(case.id, name): told(case, name) for case in CASES for name in BACKENDS}


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("name", BACKENDS)
def test_the_same_is_told_in_parts_of_any_size(whole: dict[tuple[str, str], Row], name: str) -> None:
    for case in CASES:
        assert told(case, name) == whole[case.id, name], case.to_json()


def test_each_of_these_faults_is_told(whole: dict[tuple[str, str], Row]) -> None:
    assert {name for (_, name), row in whole.items() if row["verdict"] == "violates"} == set(BACKENDS)
    assert any(len(row["decoded_faults"]) > 2 for row in whole.values() if row.get("decoded_faults"))


@pytest.mark.parametrize("most", [8, EVERYWHERE])
@pytest.mark.parametrize("case", [BACKWARD, replace(BACKWARD, gradient="wide", dtype="float16")], ids=str)
def test_flags_are_those_of_the_criterion(monkeypatch: pytest.MonkeyPatch, case: Case, most: int) -> None:
    monkeypatch.setattr(cells, "_MAX_CELLS", most)
    operands = make_operands(case)
    outputs = operands.sums.sum.copy()
    outputs[::5] += 1.0
    owed = admissible(operands.sums, FORMATS[case.dtype], ACC32)
    flags = CellChunks(operands, outputs, ACC32).flags
    assert np.array_equal(flags & REACHED != 0, operands.sums.k > 0)
    assert np.array_equal(flags & REJECTED != 0, ~owed.accepts(outputs))
    assert np.array_equal(flags & SINGLE_VALUED != 0, owed.single_valued)
    assert (flags & REJECTED).any()


@pytest.mark.parametrize("most", [8, EVERYWHERE])
def test_the_worst_cell_is_the_first_of_those_farthest_off(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(cells, "_MAX_CELLS", most)
    operands = make_operands(BACKWARD)
    outputs, wrong = operands.sums.sum.copy(), np.zeros(operands.values.size, bool)
    idle = np.flatnonzero(operands.sums.k == 0)
    for cell, error in ((idle[3], 1.0), (idle[40], 2.0), (idle[70], 2.0)):
        outputs[cell], wrong[cell] = error, True
    assert CellChunks(operands, outputs, ACC32).worst(wrong) == idle[40]
    outputs[idle[90]], wrong[idle[90]] = np.nan, True
    found = CellChunks(operands, outputs, ACC32)
    assert found.worst(wrong) == idle[90]
    assert idle[90] in range(found.around(idle[90]).cells.start, found.around(idle[90]).cells.stop)
