"""Every check notices a fault that breaks its claim, accuses no correct implementation, and is worded as all are."""

import json
import re
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from holding import holding
from poolproof.backends.abilities import Abilities
from poolproof.backends.base import Call, MemoryInUse
from poolproof.references.accumulation import ACC32, AccumulationModel
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing
from poolproof.references.operators import OPERATORS, Operator
from poolproof.references.windows import Windowed
from poolproof.reports.rows.arrow import SCHEMA, to_table
from poolproof.reports.rows.rejudge import number
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.judging.findings import mismatch
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import Plan, blocks, subjects
from scatter import Scatter
from scatter_backends import FAULTS, Picking, lost, stores, wrong_result
from switchable_backend import Switchable, Switches

BACKWARD = "MaxPool2dWithIndicesBackward"


@cache
def questions() -> list[CaseQuestion]:
    """A small plan over everything the numpy backend supports."""
    known = subjects("scatter", Scatter())
    chosen = [replace(subject, actions=("hold_up",)) for subject in known if subject.dtype != "float64"]
    plan = Plan("meta", 12, "")
    chosen_aspects = [aspect for aspect in CASE_ASPECTS.values() if aspect.id != "scale" and not aspect.costly]
    aspects = [replace(aspect, standards=False) for aspect in chosen_aspects]
    return [question for block in blocks(chosen, aspects, plan, seed=2) for question in block.questions()]


def repeated_twice(question: CaseQuestion) -> CaseQuestion:
    """At other addresses and at the same: who draws no lots does nothing else in thousands of repetitions."""
    asked = question.aspect.repeats if question.repeats is None else question.repeats
    return replace(question, repeats=min(asked, 2))


def test_an_honest_implementation_is_never_accused_and_its_rows_describe_themselves() -> None:
    asked = [each for _, block in groupby(questions(), lambda each: each.block) for each in [*block][::2]]
    rows = [repeated_twice(question).judge(Scatter()) for question in asked]
    accused = [row["reason"] for row in rows if row["verdict"] == Verdict.VIOLATES]
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS, Verdict.REFUSED}, accused[:1]
    assert to_table(rows[::20]).schema.names == SCHEMA.names
    for row in rows:
        assert Case.from_json(row["case"]).id == row["case_id"]
        assert row["operator"] in OPERATORS
        assert set(row["checks_violated"]) <= set(row.get("checks_judged", ()))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_the_check_it_breaks(fault: str) -> None:
    backend, check = FAULTS[fault]
    violated: set[str] = set()
    judged = backend()
    for question in sorted(questions(), key=lambda question: question.id):
        violated.update(question.judge(judged)["checks_violated"])
        if check in violated:
            break
    assert check in violated


def test_every_check_has_a_fault_that_it_alone_is_held_to() -> None:
    claimed = {check for _, check in FAULTS.values()}
    elsewhere = {"plane_sum", "process_untouched"}
    assert set(CHECKS) - claimed == elsewhere, "test_isolation holds both to faults"


class Growing(Scatter):
    """Each call leaves so many bytes of its process behind, up to the ``most``, as a cache would."""

    def __init__(self, left: int, most: int) -> None:
        super().__init__()
        self.left, self.most, self.calls = left, most, 0

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        self.calls += count
        return MemoryInUse(host=min(self.left * self.calls, self.most))


@pytest.mark.parametrize(
    ("left", "most", "violated"), [(24, 1 << 20, True), (23, 1 << 20, False), (32, 1 << 16, False)]
)
def test_memory_of_the_process_may_grow_until_caches_are_full(left: int, most: int, violated: bool) -> None:
    case = Case.of(BACKWARD, index_dtype="int32", shape=(1, 1, 2, 2), kernel_size=(2,))
    row = CaseQuestion(case, CASE_ASPECTS["endurance"]).judge(Growing(left, most))
    assert (row["checks_violated"] == ["memory_kept"]) is violated, row["reason"]
    assert (" identical calls, in each " in (row["reason"] or "")) is violated


class GrowingWithShapes(Scatter):
    """Leaves 16 bytes behind for each call that is of another shape than the one before."""

    in_use, shape = 0, ()

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        shape = call.tensors["self"].shape
        self.in_use, self.shape = self.in_use + 16 * (shape != self.shape), shape
        return MemoryInUse(device=self.in_use)


def test_memory_is_watched_over_small_calls_of_many_shapes() -> None:
    case = Case.of(BACKWARD, index_dtype="int32", shape=(1, 1, 2, 2), kernel_size=(2,))
    small, large = (
        CaseQuestion(replace(case, shape=(1, 1, *size)), CASE_ASPECTS["memory"]).judge(GrowingWithShapes())
        for size in ((256, 256), (256, 257))
    )
    assert small["reason"].startswith("the growth of device memory over 64 different calls: got 1024 bytes, expected")
    assert large["checks_violated"] == []
    assert "memory_kept" in large["checks_judged"]


class ForgetsCeiling(Scatter):
    """Takes a call for one before that differs in ceil_mode alone; ``layouts`` are those that reach it uncopied."""

    def __init__(self, layouts: tuple[str, ...] | None) -> None:
        self.layouts, self.seen = layouts, dict[Any, Any]()

    def abilities(self, operator: Operator) -> Abilities:
        return Abilities(layouts=self.layouts)

    def forward(self, call: Call) -> None:
        super().forward(call)
        tensor, ceiling = call.tensors["self"], call.attributes.rounds_up
        key = replace(call.attributes, ceil_mode=False), tensor.shape, tensor.dtype, tensor.strides, tensor.offset
        if self.seen.setdefault((*key, call.index_dtype), ceiling) != ceiling:
            call.tensors["out"].array[..., :1] = 3.0


@pytest.mark.parametrize("layouts", [None, ()], ids=["strides", "copies"])
def test_a_pair_of_calls_is_asked_of_who_takes_strides_and_of_whose_adapter_copies(
    layouts: tuple[str, ...] | None,
) -> None:
    windows = {"shape": (1, 2, 9, 8), "kernel_size": (3,), "stride": (2,), "padding": (1,)}
    case = Case.of("MaxPool2dWithIndices", index_dtype="int32", **windows)
    row = CaseQuestion(case, holding("maximum", "state")).judge(ForgetsCeiling(layouts))
    assert row["checks_violated"] == ["state"], row["reason"]
    assert ("contiguous+" in row["reason"]) is (layouts is None)


def row_of(fault: str, operator: str = BACKWARD, **fields: Any) -> Row:
    case = Case.of(operator, index_dtype="int32", **fields)
    return CaseQuestion(case, holding("interval")).judge(FAULTS[fault][0]())


def test_the_message_names_cell_windows_interval_and_value_and_guesses_what_happened() -> None:
    row = row_of("lost", shape=(1, 1, 3, 3), kernel_size=(2, 2), stride=(1,), indices="shared")
    (finding,) = json.loads(row["findings"])
    assert finding["element"][:2] == [0, 0]
    assert finding["wrong"] == 1
    assert [0, 0, 1, 1] in finding["windows"]
    told = (f"grad_input{finding['element']}", finding["got"], f"expected {finding['expected']}")
    for part in (*told, "grad_output[0, 0, 1, 1]", "were lost"):
        assert part in row["reason"]
    apart = {"shape": (1, 1, 4, 4), "kernel_size": (2, 2), "indices": "in_window", "seed": 3}
    assert "were added twice" in row_of("duplicated", **apart)["reason"]
    assert "had gone to grad_input[0, 0, 0, 0]" in row_of("misrouted", **apart)["reason"]


def test_a_wrong_shape_is_all_that_is_said() -> None:
    case = Case.of(BACKWARD, shape=(1, 2, 4, 4), kernel_size=(2,))
    row = CaseQuestion(case, holding("interval", "repeat", "results", "unreached")).judge(
        type("Both", (lost, wrong_result), {})()
    )
    assert (row["checks_violated"], row["checks_judged"]) == (["results"], ["refusal", "results"])


def test_an_interval_is_printed_when_bits_are_not_owed() -> None:
    adaptive = {"shape": (1, 1, 1), "output_size": (8, 8), "gradient": "uniform"}
    row = row_of("half_accumulator", "AdaptiveMaxPool2dBackward", **adaptive)
    assert row["verdict"] == Verdict.VIOLATES
    assert "expected [" in row["reason"]
    assert "in steps of 2**" in row["reason"]


WRONG = np.array([[False, True], [True, False]])

ON_BACKWARD = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
ON_FORWARD = '{"operator":"MaxPool2dWithIndices","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
TOLD = {
    **dict.fromkeys(("lost", "unwritten", "writes_input", "writes_past", "wrong_result"), ON_BACKWARD),
    **dict.fromkeys(("other_mode", "wrong_variant", "disturbed", "tensor_indices"), ON_BACKWARD),
    **dict.fromkeys(("zero_padded", "window_local_indices"), ON_FORWARD),
    "absolute_threshold": ON_BACKWARD + ',"gradient":"uniform","scale":-8',
    "last_maximum": ON_FORWARD + ',"values":"constant"',
}
"""Fault -> the beginning of a case that trips its check."""


def test_a_message_names_what_came_what_was_expected_and_how_many() -> None:
    """The first that is wrong is not named twice, and large indices keep all their digits."""
    found = mismatch("out[1, 0]", np.float32(0.5), 2, "as before", wrong=WRONG, element=(1, 0), guess="as if lost")
    assert found.message == (
        "out[1, 0]: got 0.5, expected 2, as before; 2 of 4 elements are wrong, the first at [0, 1]; as if lost"
    )
    assert (found.wrong, found.judged, found.element, found.expected, found.got) == (2, 4, (1, 0), "2", "0.5")
    first = mismatch("out[0, 1]", 1, 2, wrong=WRONG, judged=3, noun="cells", element=(0, 1))
    assert first.message == "out[0, 1]: got 1, expected 2; 2 of 3 cells are wrong"
    assert mismatch("indices[0]", np.int64(2**62 + 1), 0).got == str(2**62 + 1)


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ([(0, 0, 0, 3, 1), (0, 1, 0, 3, 2)], ", all in the first slice and the last row"),
        ([(0, 0, 1, 3, 1), (0, 1, 2, 3, 2)], ", all in the last row"),
        ([(0, 0, 0, 0, 0), (0, 0, 2, 3, 0)], ", all in the first plane and the first column"),
        ([(0, 1, 0, 1, 1), (0, 1, 2, 2, 2)], ", all in the last plane"),
        ([(0, 0, 0, 2, 1), (0, 1, 1, 2, 2)], ""),
        ([(0, 0, 0, 3, 1)], ""),
    ],
)
def test_wrong_cells_at_one_end_of_an_axis_are_named_by_it(cells: list[tuple[int, ...]], place: str) -> None:
    class Wrong(Scatter):
        def store(self, call: Call, values: np.ndarray) -> None:
            values[tuple(np.transpose(cells))] += 1
            super().store(call, values)

    case = Case.of("MaxPool3dWithArgmaxBackward", shape=(1, 2, 4, 4, 4), kernel_size=(1,))
    reason = CaseQuestion(case, holding("interval")).judge(Wrong())["reason"]
    assert re.search(r"of 128 cells are wrong(, all in .*?)?($|;|, the first at)", reason)[1] == (place or None)  # type: ignore[index]


@pytest.mark.parametrize("fault", TOLD)
def test_checks_that_say_what_was_expected_say_it_alike(fault: str) -> None:
    backend, check = FAULTS[fault]
    row = CaseQuestion(Case.from_json(TOLD[fault] + "}"), holding(check)).judge(backend())
    assert row["verdict"] == Verdict.VIOLATES
    (finding,) = json.loads(row["findings"])
    assert finding["check"] == check
    assert re.search(r": got (.+), expected (.+)", row["reason"])
    assert f": got {finding['got']}, expected {finding['expected']}" in row["reason"]
    if finding["wrong"]:
        assert re.search(
            rf"; {finding['wrong']} of {finding['judged']} (elements|cells|planes|bytes) are wrong", row["reason"]
        )


@pytest.mark.parametrize(
    ("index_dtype", "said"), [("int32", "the call with int32 indices"), ("int64", "that with int32")]
)
def test_of_two_calls_that_differ_the_wrong_one_is_told(index_dtype: str, said: str) -> None:
    """A defect of one dtype of indices was told as one of the other."""
    case = Case.of(BACKWARD, shape=(1, 1, 20, 20), kernel_size=(2, 2), index_dtype=index_dtype)
    row = CaseQuestion(case, holding("index_dtype_invariance")).judge(FAULTS["narrows_indices"][0]())
    told = {each["check"]: each["message"] for each in json.loads(row["findings"])}
    assert told["index_dtype_invariance"].endswith(f"; by the criterion {said} is wrong")


def test_a_write_outside_is_said_before_what_is_wrong_besides() -> None:
    both = type("Both", (FAULTS["writes_past"][0], FAULTS["lost"][0]), {})
    row = CaseQuestion(Case.from_json(ON_BACKWARD + "}"), CASE_ASPECTS["values"]).judge(both())
    assert row["checks_violated"][:2] == ["memory_untouched", "interval"]
    assert row["reason"].startswith("a write at bytes 0 to 7 past the storage of grad_input: got 0, expected")


def test_an_index_that_points_nowhere_is_not_what_was_expected() -> None:
    rule = ForwardRule(nans=Nans.IGNORED, nothing=Nothing.LOWEST)
    backend = type("Lowest", (Picking,), {"variants": ("other",)})(rule, rule)
    row = CaseQuestion(Case.from_json(ON_FORWARD + ',"values":"all_nan"}'), holding("variants")).judge(backend)
    assert "made with other: got -1, expected a cell of its window that holds -3.4" in row["reason"]


def adding(kind: str, **switches: bool) -> Switchable:
    """Adds by a model, and declares another."""
    return Switchable(Switches(AccumulationModel(kind, **switches)), declared=ACC32)


@pytest.mark.parametrize(
    ("backend", "data", "said"),
    [
        (adding("native"), {"gradient": "uniform"}, "declared acc32; all of it would be right as native"),
        (adding("native", flushes_subnormals=True), {"gradient": "subnormal"}, "be right as native+ftz"),
        (adding("acc32", saturates=True), {"gradient": "near_overflow"}, "be right as acc32+saturate"),
        (stores(), {"gradient": "uniform"}, "be right if gradients were to be stored in place of added"),
        (lost(), {"gradient": "uniform"}, ""),
    ],
)
def test_another_way_to_add_is_named_where_it_explains_all(backend: Scatter, data: dict[str, str], said: str) -> None:
    windows = {"shape": (2, 8, 8), "kernel_size": (3,), "stride": (1,), "indices": "crowded", "dtype": "float16"}
    row = CaseQuestion(Case.of(BACKWARD, **windows, **data), CASE_ASPECTS["precision"]).judge(backend)
    assert row["verdict"] == Verdict.VIOLATES
    assert said in row["reason"]
    assert ("all of it would be right" in row["reason"]) is bool(said)


@pytest.mark.parametrize(
    ("picks", "values", "said"),
    [
        ("last", "ties", "declared first; all of it would be right as last"),
        ("no-nan", "nan", "declared first; all of it would be right as no-nan"),
        ("first", "ties", ""),
    ],
)
def test_the_rule_that_a_forward_follows_is_named_where_it_explains_all(picks: str, values: str, said: str) -> None:
    case = Case.of("MaxPool2dWithIndices", shape=(2, 8, 8), kernel_size=(3,), stride=(1,), values=values)
    row = CaseQuestion(case, CASE_ASPECTS["values"]).judge(Picking(ForwardRule.parse(picks)))
    assert (row["verdict"] == Verdict.VIOLATES) is bool(said)
    assert said in (row.get("reason") or "")
    one_wrong = CaseQuestion(case, CASE_ASPECTS["values"]).judge(FAULTS["window_local_indices"][0]())
    assert one_wrong["verdict"] == Verdict.VIOLATES and "would be right" not in one_wrong["reason"]


def test_the_values_of_a_small_window_are_shown() -> None:
    case = Case.of("MaxPool2dWithIndices", shape=(1, 2, 2), kernel_size=(2,), values="constant")
    value = float(make_operands(case).values.flat[0])
    row = CaseQuestion(case, CASE_ASPECTS["values"]).judge(FAULTS["last_maximum"][0]())
    shown = ", ".join([number(value)] * 4)
    assert f"expected 0, its window visits coordinates [0, 1] x [0, 1] and holds [{shown}]" in row["reason"]
    large = replace(case, shape=(1, 4, 4), attributes=Windowed((4, 4), (4, 4)))
    row = CaseQuestion(large, CASE_ASPECTS["values"]).judge(FAULTS["last_maximum"][0]())
    assert "its window visits" in row["reason"] and "holds" not in row["reason"]


class ReadsOn(Scatter):
    """A gather that reads on into the next plane, for its first cell that a window reaches."""

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.append(cells, cells[:1]), np.append(terms, terms[len(terms) // 2])


def test_a_gradient_of_another_plane_that_is_added_as_well_is_named() -> None:
    case = Case.of(BACKWARD, shape=(2, 2, 1), kernel_size=(2, 1), stride=(1,), indices="last")
    row = CaseQuestion(case, CASE_ASPECTS["values"]).judge(ReadsOn())
    gradient = number(float(make_operands(case).gradient.flat[1]))
    assert row["reason"].endswith(f"; as if grad_output[1, 0, 0] = {gradient} had been added as well")


@pytest.mark.parametrize("aspect", ["memory", "endurance", "streams", "huge"])
def test_a_wrong_shape_is_told_as_one_whatever_else_an_aspect_claims(aspect: str) -> None:
    """Its elements are no results, so nothing is said of their values."""
    assert CASE_ASPECTS[aspect].checks[0] == "results"
    case = Case.of(BACKWARD, shape=(1, 2, 4, 4), kernel_size=(2,))
    row = CaseQuestion(case, CASE_ASPECTS[aspect]).judge(wrong_result())
    assert row["checks_violated"] == ["results"] and "as it came back: got " in row["reason"]
