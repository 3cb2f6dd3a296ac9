"""What a case is as a question: the columns that describe it, its time limit, and the calls that judging it makes."""

import pytest

from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.varying import auxiliary_cases, producers
from poolproof.suites.judging.budget import needed_memory
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS
from scatter import Scatter

LINE = (
    '{"operator":"MaxPool2dWithIndicesBackward","shape":[3,6,5],"dtype":"float16","kernel_size":[3,2],"stride":[1,2],'
    '"padding":[1,0],"dilation":[1,2],"ceil_mode":true,"gradient":"uniform","indices":"crowded","values":"ties",'
    '"layouts":{"grad_output":"expanded_c","self":"sliced"},"deterministic":true,"seed":5}'
)
PLAIN = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 4, 64, 64), kernel_size=(2,))


def test_a_row_describes_its_case() -> None:
    question = CaseQuestion(Case.from_json(LINE), CASE_ASPECTS["values"], "a block")
    numbers = {"planes": 3, "elements": 90, "windows": 36, "kernel_size": "3x2", "seed": 5}
    told = {"batched": False, "overlapping": True, "dilated": True, "padded": True, "ceil_mode": True}
    recipes = {"gradient": "uniform", "indices": "crowded", "values": "ties"}
    layouts = {"layouts": "grad_output:expanded_c self:sliced", "deterministic": True}
    classes = ["padding", "dilation", "ceil_mode", "stride", "unbatched", "layouts", "deterministic"]
    named = {"case_id": question.case.id, "case": LINE, "block": "a block", "aspect": "values", "shape": "3x6x5"}
    kind = {"operator": "MaxPool2dWithIndicesBackward", "dtype": "float16", "index_dtype": "int64"}
    assert question.describe() == named | kind | numbers | told | recipes | layouts | {"classes": classes}


@pytest.mark.parametrize(
    ("case", "aspect", "times"),
    [
        (PLAIN, "values", 1.0),
        (PLAIN, "endurance", 11.0),  # which calls a thousand times
        (Case.of("MaxPool2dWithIndicesBackward", shape=(1, 4, 1024, 1024), kernel_size=(2,)), "values", 5.0),
    ],
)
def test_what_takes_longer_has_more_time(case: Case, aspect: str, times: float) -> None:
    assert CaseQuestion(case, CASE_ASPECTS[aspect]).timeout_scale == times


def test_the_calls_that_judging_makes_besides_are_told() -> None:
    """What was called before, where that is asked; the forward, where the case needs what it makes."""
    told = {aspect: CaseQuestion(PLAIN, CASE_ASPECTS[aspect]).auxiliary_calls() for aspect in ("values", "state")}
    assert [call.case for call in told["state"]] == auxiliary_cases(PLAIN)  # type: ignore[attr-defined]
    assert (told["values"], len(told["state"])) == ((), 5)
    empty = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 1, 1), kernel_size=(2,), dilation=(2,), padding=(1,))
    calls = CaseQuestion(empty, CASE_ASPECTS["values"]).auxiliary_calls()
    assert [call.case for call in calls] == producers(empty)  # type: ignore[attr-defined]
    assert calls[0].case.operator == "MaxPool2dWithIndices"  # type: ignore[attr-defined]


def test_memory_that_judging_takes_is_what_its_parts_add_up_to() -> None:
    """By hand, of float32 gradients for 16,384 cells of four planes from 4,096 windows, with int64 indices."""
    gradient, cells, indices = 4 * 4096, 4 * 16384, 8 * 4096
    plane = 61 * 4096 + 16 * 1024  # each cell's exact sum and bounds, each window's cell and term
    tensors = gradient + 2 * cells + indices  # self, too
    drawn = gradient + cells + 8 * 4096
    assert needed_memory(PLAIN, 1, ()) == drawn + tensors + cells + tensors + plane
    assert needed_memory(PLAIN, 3, ()) - needed_memory(PLAIN, 1, ()) == 2 * cells


def test_what_the_suite_raises_is_told_with_its_notes() -> None:
    def fails() -> None:
        error = ValueError("no such cell")
        error.add_note("while it was looked for")
        raise error

    row = answer(CaseQuestion(PLAIN, CASE_ASPECTS["values"]), Scatter(), fails)  # type: ignore[arg-type]
    assert row["verdict"] == Verdict.SUITE_ERROR
    assert row["checks_judged"] == row["checks_violated"] == []
    assert row["reason"].startswith("the suite itself raised ValueError: no such cell; while it was looked for (test_q")
