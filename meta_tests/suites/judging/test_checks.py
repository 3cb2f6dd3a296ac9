"""Every check notices a fault that breaks its claim, and accuses no correct implementation."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dying_backends import environment
from holding import holding
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.arrow import SCHEMA, to_table
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion, judge
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.judging.findings import mismatch
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.plans import PLANS, blocks, subjects
from scatter import Scatter
from scatter_backends import FAULTS, lost, wrong_result
from switchable_backend import Switchable, Switches

DTYPES = ("float32", "float16", "bfloat16")
CASES = 12


@cache
def questions() -> list[CaseQuestion]:
    """A small plan over everything the numpy backend supports."""
    known = subjects("scatter", Scatter())
    chosen = [replace(subject, on_streams=True) for subject in known if subject.dtype in DTYPES]
    plan = PLANS["smoke"].__class__("meta", CASES, "")
    chosen_aspects = [aspect for aspect in CASE_ASPECTS.values() if aspect.id != "scale" and not aspect.costly]
    aspects = [replace(aspect, standards=False) for aspect in chosen_aspects]
    return [question for block in blocks(chosen, aspects, plan, seed=2) for question in block.questions()]


def sample(every: int) -> list[CaseQuestion]:
    return questions()[::every]


def repeated_twice(question: CaseQuestion) -> CaseQuestion:
    """At other addresses and at the same: who draws no lots does nothing else in thousands of repetitions."""
    asked = question.aspect.repeats if question.repeats is None else question.repeats
    return replace(question, repeats=min(asked, 2))


def test_an_honest_implementation_is_never_accused() -> None:
    rows = [judge(repeated_twice(question), Scatter()) for question in questions()]
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS, Verdict.REFUSED}, next(
        row["reason"] for row in rows if row["verdict"] == Verdict.VIOLATES
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_the_check_it_breaks(fault: str) -> None:
    backend, check = FAULTS[fault]
    violated: set[str] = set()
    judged = backend()
    for question in sorted(questions(), key=lambda question: question.id):
        violated.update(judge(question, judged)["checks_violated"])
        if check in violated:
            break
    assert check in violated


def test_every_check_has_a_fault_that_it_alone_is_held_to() -> None:
    claimed = {check for _, check in FAULTS.values()}
    assert set(CHECKS) - claimed == {"plane_sum"}, "plane_sum is held to below"


def test_plane_sum_needs_no_oracle_of_cells() -> None:
    backend, _ = FAULTS["lost"]
    assert any("plane_sum" in judge(question, backend())["checks_violated"] for question in sample(5))


def row_of(fault: str, case: str, check: str = "interval") -> Row:
    return judge(CaseQuestion(Case.from_json(case), holding(check)), FAULTS[fault][0]())


def test_the_message_names_cell_windows_interval_and_value() -> None:
    row = row_of(
        "lost",
        '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,3,3],"kernel_size":[2,2],"stride":[1],"indices":"shared","index_dtype":"int32"}',
    )
    (finding,) = json.loads(row["findings"])
    assert finding["element"][:2] == [0, 0]
    assert finding["wrong"] == 1
    assert [0, 0, 1, 1] in finding["windows"]
    for part in (
        f"grad_input{finding['element']}",
        finding["got"],
        f"expected {finding['owed']}",
        "grad_output[0, 0, 1, 1]",
        "were lost",
    ):
        assert part in row["reason"]


def test_the_message_guesses_what_happened() -> None:
    case = (
        '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,4,4],"kernel_size":[2,2],'
        '"indices":"in_window","index_dtype":"int32","seed":3}'
    )
    assert "were added twice" in row_of("duplicated", case)["reason"]
    assert (
        "were lost" in row_of("misrouted", case)["reason"] or "sent here instead" in row_of("misrouted", case)["reason"]
    )


def test_a_wrong_shape_is_all_that_is_said() -> None:
    case = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,2,4,4],"kernel_size":[2]}'
    aspect = holding("interval", "repeat", "results", "unreached")
    row = CaseQuestion(Case.from_json(case), aspect).judge(WrongAltogether())
    assert row["checks_violated"] == ["results"]
    assert row["checks_judged"] == ["refusal", "results"]


class WrongAltogether(lost, wrong_result):
    """The last window's gradient does not arrive, and grad_input comes back without its batch axis."""


def test_an_interval_is_printed_when_bits_are_not_owed() -> None:
    case = (
        '{"operator":"AdaptiveMaxPool2dBackward","shape":[1,1,1],"output_size":[8,8],'
        '"gradient":"uniform","index_dtype":"int32"}'
    )
    row = row_of("half_accumulator", case)
    assert row["verdict"] == Verdict.VIOLATES
    assert "expected [" in row["reason"]
    assert "in steps of 2**" in row["reason"]


def test_a_faulty_environment_is_neither_failure_nor_success() -> None:
    row = judge(sample(50)[0], environment())
    assert row["verdict"] == Verdict.NOT_RUN
    assert row["reason"] == "the kernel package is not installed"


def test_rows_fit_the_schema_and_describe_themselves() -> None:
    rows = [judge(question, Scatter()) for question in sample(40)]
    table = to_table(rows)
    assert table.schema.names == SCHEMA.names
    for row in rows:
        assert Case.from_json(row["case"]).id == row["case_id"]
        assert row["operator"] in OPERATORS
        assert row["verdict"] in list(Verdict)
        assert set(row["checks_violated"]) <= set(row["checks_judged"])


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="no column 'colour'"):
        to_table([{"colour": "red"}])


# Every message of a mismatch reads alike, whichever check it is from.


WRONG = np.array([[False, True], [True, False]])

BACKWARD = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
FORWARD = '{"operator":"MaxPool2dWithIndices","shape":[1,2,4,4],"kernel_size":[2,2],"index_dtype":"int32"'
TOLD = {
    "lost": ("interval", BACKWARD),
    "unwritten": ("written", BACKWARD),
    "writes_input": ("inputs_untouched", BACKWARD),
    "writes_past": ("memory_untouched", BACKWARD),
    "absolute_threshold": ("scale_equivariance", BACKWARD + ',"gradient":"uniform","scale":-8'),
    "wrong_result": ("results", BACKWARD),
    "other_mode": ("modes", BACKWARD),
    "wrong_variant": ("variants", BACKWARD),
    "disturbed": ("streams", BACKWARD),
    "zero_padded": ("maximum", FORWARD),
    "last_maximum": ("index_rule", FORWARD + ',"values":"constant"'),
    "window_local_indices": ("index_points", FORWARD),
    "tensor_indices": ("round_trip", BACKWARD),
}
"""Fault -> (check, the beginning of a case that trips it)."""


def test_a_message_names_what_came_what_was_expected_and_how_many() -> None:
    found = mismatch("out[1, 0]", np.float32(0.5), 2, "as before", wrong=WRONG, element=(1, 0), guess="as if lost")
    assert found.message == (
        "out[1, 0]: got 0.5, expected 2, as before; 2 of 4 elements are wrong, the first at [0, 1]; as if lost"
    )
    assert (found.wrong, found.judged, found.element, found.expected, found.got) == (2, 4, (1, 0), "2", "0.5")


def test_the_first_is_not_named_twice() -> None:
    assert mismatch("out[0, 1]", 1, 2, wrong=WRONG, judged=3, noun="cells", element=(0, 1)).message == (
        "out[0, 1]: got 1, expected 2; 2 of 3 cells are wrong"
    )


def test_large_indices_keep_all_their_digits() -> None:
    assert mismatch("indices[0]", np.int64(2**62 + 1), 0).got == str(2**62 + 1)


@pytest.mark.parametrize("fault", TOLD)
def test_checks_that_say_what_was_expected_say_it_alike(fault: str) -> None:
    check, case = TOLD[fault]
    row = judge(CaseQuestion(Case.from_json(case + "}"), holding(check)), FAULTS[fault][0]())
    assert row["verdict"] == Verdict.VIOLATES
    (finding,) = json.loads(row["findings"])
    assert finding["check"] == check
    assert re.search(r": got (.+), expected (.+)", row["reason"])
    assert f": got {finding['got']}, expected {finding['owed']}" in row["reason"]
    if finding["wrong"]:
        assert re.search(
            rf"; {finding['wrong']} of {finding['judged']} (elements|cells|planes|bytes) are wrong", row["reason"]
        )


def test_the_registry_names_the_checks() -> None:
    assert all(check.id == name == check.find.__name__ for name, check in CHECKS.items())


@pytest.mark.parametrize(
    ("adds", "gradient", "said"),
    [
        (NATIVE, "uniform", "declared acc32; all of it would be right as native"),
        (AccumulationModel("native", flushes_subnormals=True), "subnormal", "all of it would be right as native+ftz"),
        (AccumulationModel("acc32", saturates=True), "near_overflow", "all of it would be right as acc32+saturate"),
    ],
    ids=str,
)
def test_a_model_that_was_not_declared_is_named_where_it_explains_all(
    adds: AccumulationModel, gradient: str, said: str
) -> None:
    case = Case.of(
        "MaxPool2dWithIndicesBackward",
        shape=(2, 8, 8),
        kernel_size=(3,),
        dtype="float16",
        gradient=gradient,
        stride=(1,),
        indices="crowded",
    )
    asked = CaseQuestion(case, CASE_ASPECTS["precision"])
    assert said in judge(asked, Switchable(Switches(adds), declared=ACC32))["reason"]


def test_no_model_is_named_where_a_gradient_is_lost() -> None:
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(2, 8, 8), kernel_size=(3,), gradient="uniform")
    row = judge(CaseQuestion(case, CASE_ASPECTS["precision"]), lost())
    assert row["verdict"] == Verdict.VIOLATES
    assert "right as" not in row["reason"]
