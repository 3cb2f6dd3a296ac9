"""What is wrong is told a part of the tensor at a time, the same whatever the parts are, and read off coded gradients.

Which window went astray is told exactly.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from holding import holding
from poolproof.references.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from poolproof.reports.rows.schema import Row
from poolproof.suites.cases import operands as operands_module
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.judging import cells, chunks, decoder
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.judging.decoder import Fault, decode
from scatter import Scatter
from scatter_backends import FAULTS, lost

WINDOWS = {"shape": (2, 3, 9, 11), "kernel_size": (3,), "stride": (2,), "padding": (1,)}
BACKWARD = Case.of("MaxPool2dWithIndicesBackward", **WINDOWS)
FORWARD = Case.of("MaxPool2dWithIndices", **WINDOWS)
LAYOUTS = (("grad_input", "sliced"), ("grad_output", "channels_last"))
STRIDED = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 3, 9, 11), kernel_size=(2,), layouts=LAYOUTS)


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and slabs of eight elements or more: several of each plane."""
    monkeypatch.setattr(cells, "CHUNK_ELEMENTS", 8)
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


CODES = ("base_four_weights", "colour_ids", "binary_weights")

PLANES, VOLUMES = (partial(Case.of, name) for name in ("MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward"))
GEOMETRIES = (
    PLANES(shape=(2, 9, 11, 13), kernel_size=(3,), stride=(1,), padding=(1,)),
    PLANES(shape=(3, 4, 17, 9), kernel_size=(3, 2), stride=(2, 1), padding=(1,)),
    PLANES(shape=(8, 19, 15), kernel_size=(4, 3), stride=(2, 1), padding=(2, 0), dilation=(2, 3), ceil_mode=True),
    VOLUMES(shape=(2, 14, 5, 8, 7), kernel_size=(2, 3, 2), stride=(1, 2, 1), padding=(1, 1, 0), dilation=(1, 2, 2)),
    VOLUMES(shape=(9, 6, 6, 6), kernel_size=(3,), stride=(2,), ceil_mode=True),
    Case.of("AdaptiveMaxPool2dBackward", shape=(2, 5, 10, 7), output_size=(7, 11)),
    Case.of("AdaptiveMaxPool2dBackward", shape=(6, 40, 33), output_size=(24, 40)),
    Case.of("AdaptiveMaxPool3dBackward", shape=(2, 6, 5, 6, 4), output_size=(4, 9, 3)),
)
INDICES = ("in_window", "crowded", "forward", "tile_borders")


def coded(code: str, draw: int) -> CaseOperands:
    geometry = GEOMETRIES[draw % len(GEOMETRIES)]
    dtype = ("float32", "float16", "bfloat16")[draw // len(GEOMETRIES) % 3]
    return make_operands(replace(geometry, gradient=code, indices=INDICES[draw % len(INDICES)], dtype=dtype, seed=draw))


def sums(operands: CaseOperands) -> np.ndarray:
    return np.bincount(operands.landing.cells, operands.terms, operands.landing.size)


def one_fault(operands: CaseOperands, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, Fault]:
    """An output with one gradient lost, added twice or sent to another cell of its plane, and which one it was."""
    gradient, cells, outputs = operands.terms, operands.landing.cells, sums(operands)
    window = int(rng.choice(np.flatnonzero(gradient)))
    home, weight = int(cells[window]), gradient[window]
    if kind == "duplicated":
        outputs[home] += weight
        return outputs, Fault("duplicated", home, window, home)
    outputs[home] -= weight
    if kind == "lost":
        return outputs, Fault("lost", home, window, home)
    plane = operands.case.plane_size
    cell = home // plane * plane + (home % plane + int(rng.integers(1, plane))) % plane
    outputs[cell] += weight
    return outputs, Fault("misrouted", cell, window, home)


@pytest.mark.parametrize("code", CODES)
def test_one_fault_is_named_exactly_in_every_one_of_thousand(code: str) -> None:
    told = ("lost",) if code == "binary_weights" else ("lost", "duplicated", "misrouted")
    chances = {kind: np.random.default_rng(11) for kind in told}
    for draw in range(1000):
        operands = coded(code, draw)
        assert draw >= 50 or decode(operands, sums(operands)) == []
        for kind, rng in chances.items():
            outputs, injected = one_fault(operands, kind, rng)
            found = decode(operands, outputs)
            assert found == [injected], (kind, operands.case.to_json())


@pytest.mark.parametrize("fmt", (FLOAT32, FLOAT16, BFLOAT16, FLOAT64), ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("code", CODES)
def test_codes_are_exact_in_every_order_and_model_and_reach_every_window(fmt, code: str) -> None:
    """In as many planes as it takes, every window carries a gradient in one of them at least."""
    case = replace(GEOMETRIES[1], shape=(1, 128, 12, 10), dtype=fmt.name, gradient=code)
    operands = make_operands(case)
    assert sums(operands).max() < fmt.largest_exact_integer + (code == "colour_ids")
    assert (operands.terms.reshape(case.planes, -1) != 0).any(axis=0).all()


def test_a_small_multiple_of_the_own_colour_is_a_repetition() -> None:
    assert decoder._colour(6.0, [3.0], ()) == {3.0: 1}
    assert decoder._colour(7.0, [3.0], [{4.0}.__contains__]) == {4.0: 1}
    assert decoder._colour(7.0, [3.0], [{7.0}.__contains__]) == {7.0: 1, 3.0: -1}


def test_colours_of_large_planes_are_told_in_digits() -> None:
    """bfloat16: 300 windows that never meet, 256 integers; the second plane carries the number's higher digit."""
    colours = {"dtype": "bfloat16", "gradient": "colour_ids"}
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 30, 10), kernel_size=(1,), **colours)
    low, high = make_operands(case).terms.reshape(2, 300)
    assert low[[0, 255, 256, 299]].tolist() == [1, 256, 1, 44]
    assert high[[0, 255, 256, 299]].tolist() == [1, 1, 2, 2]


def test_several_faults_are_told_apart() -> None:
    """Every fourth gradient lost, as by a kernel that skips a lane."""
    operands = coded("base_four_weights", 3)
    gradient = operands.terms
    gone = np.flatnonzero(gradient)[::4]
    outputs = sums(operands) - np.bincount(operands.landing.cells[gone], gradient[gone], operands.landing.size)
    found = decode(operands, outputs)
    assert {fault.kind for fault in found} == {"lost"}
    assert {fault.window for fault in found} == set(gone.tolist())


def test_garbage_is_said_to_be_unreadable() -> None:
    operands = coded("base_four_weights", 0)
    for garbage in (np.nan, np.inf, -1.0, 0.5, 3.0 * 4.0**11):
        outputs = sums(operands)
        outputs[7] = garbage
        assert "unreadable" in {fault.kind for fault in decode(operands, outputs)}, garbage


def test_nothing_is_decoded_where_gradients_are_not_told_apart() -> None:
    operands = coded("base_four_weights", 0)
    assert operands.gradient is not None
    equal, zeros = replace(operands, gradient=np.ones_like(operands.gradient)), np.zeros(operands.landing.size)
    assert decode(operands, zeros) != []
    assert decode(equal, zeros) == []
    assert decode(replace(operands, case=replace(operands.case, gradient="uniform")), zeros) == []


@pytest.mark.parametrize("scale", (0, -3, 5))
def test_a_finding_names_the_window_and_the_row_holds_it(scale: int) -> None:
    case = replace(GEOMETRIES[0], gradient="base_four_weights", indices="crowded", scale=scale)
    row = CaseQuestion(case, holding("interval")).judge(lost())
    window = make_operands(case).terms.nonzero()[0][-1]  # type: ignore[union-attr]
    coordinates = list(map(int, np.unravel_index(window, case.pooled_shape)))
    (fault,) = json.loads(row["decoded_faults"])
    assert fault["kind"] == "lost"
    assert fault["window"] == coordinates
    assert f"grad_output{coordinates} did not arrive in grad_input{fault['cell']}" in row["reason"]
