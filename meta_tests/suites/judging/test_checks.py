"""Every check notices a fault that breaks its claim, and accuses no correct implementation."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from dying_backends import environment
from holding import holding
from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.arrow import SCHEMA, to_table
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion, judge
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter import Scatter
from scatter_backends import FAULTS, lost, wrong_result

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
    elsewhere = {"plane_sum", "process_untouched"}
    assert set(CHECKS) - claimed == elsewhere, "the one is held to below, the other in test_process_untouched"


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
