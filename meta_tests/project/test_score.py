"""The score: how defects are hunted, what counts as found, and the gate that keeps the suite as sharp as it was."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest
from click.testing import CliRunner

from holding import holding
from poolproof.backends.emulator.defects import defects
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Overall
from poolproof.score.command import score, table_of
from poolproof.score.hunt import HONEST, Hunts, OwnFault, Result, answers, backend_name, in_processes
from poolproof.score.questions import Round, rounds
from poolproof.score.report import needs, summarise, write_score
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.aspects import ALL_CHECKS, CONTRACT
from poolproof.suites.plan.plans import PLANS, Plan, Survey, blocks
from seeded_finds import FOUND_AMONG, LATE, OF_VARIED_CALLS, RACING
from shares import a_share

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.mark.parametrize("part", a_share(range(8), 8))
def test_the_first_round_finds_what_it_found_before(part: int) -> None:
    """The gate: a fixed seed, one attempt, no defect lost; who is not found where it was before is asked everything."""
    left_out = LATE.union(RACING, *OF_VARIED_CALLS.values())
    held = [defect for defect in defects().values() if defect.id not in left_out][part::8]
    results = [Result(defect.id, defect.products[0]) for defect in held]
    surveys = {product: surveyed(backend_name(product)) for product in dict.fromkeys(each.product for each in results)}
    first = next(rounds(surveys, PLANS["smoke"], 0, workers=2))
    hunts = Hunts(2, 10.0, 0.0, lambda _: None, replays=False)
    for (aspect, operator), late in FOUND_AMONG.items():
        among = {product: asked_of(aspect, operator, questions) for product, questions in first.questions.items()}
        there = [result for result in results if result.defect in late]
        hunts.run(there, Round(among, first.blocks))
    hunts.run(results, first)
    assert [result.defect for result in results if not result.is_found] == []


def asked_of(aspect: str, operator: str, questions: Sequence[Question]) -> list[Question]:
    return [each for each in questions if each.aspect.id == aspect and f"-{operator}-" in each.block]


def test_what_is_found_among_few_questions_is_seeded() -> None:
    assert set().union(*FOUND_AMONG.values()) <= {*defects()} - LATE.union(RACING, *OF_VARIED_CALLS.values())


surveyed = cache(survey)
"""What a backend says of itself, asked once in a process."""


@pytest.mark.parametrize("operator", OF_VARIED_CALLS)
def test_the_contract_of_one_api_finds_what_one_check_misjudges(operator: str) -> None:
    """The gate of what is asked after the first round; who is not found where it was before is asked block by block."""
    found_by = OF_VARIED_CALLS[operator]
    for product in {defects()[defect].products[0] for defect in found_by}:
        results = [Result(defect, product) for defect in found_by if defects()[defect].products[0] == product]
        subjects = [each for each in surveyed(backend_name(product)).subjects if each.operator.name == operator]
        planned = {block.part.id: block for block in blocks(subjects, [CONTRACT], PLANS["smoke"], 0)}
        hunts = Hunts(2, 10.0, 0.0, lambda _: None, replays=False)
        before = {part: planned[part].questions() for part in {found_by[result.defect][0] for result in results}}
        for result in results:
            part, clause = found_by[result.defect]
            hunts.run([result], Round({product: [each for each in before[part] if each.clause == clause]}, {}))
        asked = iter(planned.values())
        while not all(result.is_found for result in results) and (block := next(asked, None)):
            hunts.run(results, Round({product: block.questions()}, {}))
        assert [result.defect for result in results if not result.is_found] == []


@pytest.fixture(scope="module")
def a2() -> Survey:
    return surveyed("emulator-a2")


def question(**fields: object) -> CaseQuestion:
    given = {"operator": "MaxPool2dWithIndicesBackward", "index_dtype": "int32", **fields}
    case = Case.of(**given)  # type: ignore[arg-type]
    return CaseQuestion(case, holding(*CHECKS))


PLAIN = question(shape=(1, 1, 6, 8), kernel_size=(2,))
WITH_NAN = question(shape=(1, 1, 32, 32), kernel_size=(2,), gradient="special")
MANY_PLANES = question(shape=(1, 49, 6, 8), kernel_size=(2,))


def hunt(defect: str, *asked: CaseQuestion) -> Result:
    result = Result(defect, "A2")
    Hunts(2, 10.0, 0.0, lambda _: None).run([result], Round({"A2": list(asked)}, {}))
    return result


def test_a_hunt_ends_with_the_first_violation(a2: Survey) -> None:
    result = hunt("nan_dropped", PLAIN, PLAIN, WITH_NAN, PLAIN)
    assert (result.is_found, result.cases, result.replays) == (True, 3, True)
    assert result.row is not None and result.row["checks_violated"][0] == "interval"
    assert result.seconds > 0
    at_large = hunt("nan_dropped", PLAIN, PLAIN)
    assert (at_large.is_found, at_large.cases) == (False, 2)
    dead = hunt("crash_on_uneven_cores", PLAIN, MANY_PLANES)
    assert dead.row is not None and (dead.row["checks_violated"], dead.cases) == (["survival"], 2)


def test_gradients_apart_that_are_copied_before_the_stream_comes_to_the_call_are_found(a2: Survey) -> None:
    """The first round is too small to find it."""
    windows = {"kernel_size": (1, 3, 3), "stride": (1, 2, 2), "layouts": (("grad_output", "sliced"),)}
    case = Case.of("MaxPool3dWithArgmaxBackward", index_dtype="int32", shape=(1, 2, 16, 9, 9), **windows)
    assert hunt("strided_inputs_copied_at_once", CaseQuestion(case, holding("streams"))).is_found


@pytest.mark.parametrize("lacks", ["ceil_mode", "padding", "dtype", "channels"])
def test_tiling_of_a_call_that_differs_in_one_parameter_is_found(a2: Survey, lacks: str) -> None:
    """The first round may be too small to find it; whether the parameter matters depends on the windows.

    Of two calls with different planes the smaller one has to come first.
    """
    windows = {"kernel_size": (3,), "stride": (2,), "padding": (1,)}
    shape = {"shape": (1, 2, 9, 8), "dtype": "float16", "deterministic": True}
    case = Case.of(
        "MaxPool3dWithArgmaxBackward" if lacks == "dtype" else "MaxPool2dWithIndices",
        index_dtype="int32",
        seed=int(lacks == "channels"),
        **shape,
        **windows,
    )
    assert hunt(f"tiling_key_lacks_{lacks}", CaseQuestion(case, holding("maximum", "interval", "state"))).is_found


def test_a_question_without_an_answer_is_given_up(a2: Survey) -> None:
    windows = {"shape": (1, 1, 4, 4), "kernel_size": (1, 2, 2), "stride": (1,), "dilation": (2,)}
    case = Case.of("MaxPool3dWithArgmaxBackward", dtype="float16", index_dtype="int32", **windows)
    result, asked = Result("hang_on_idle_core", "A2"), [PLAIN, CaseQuestion(case, holding(*CHECKS))]
    Hunts(2, 2.0, 0.0, lambda _: None, replays=False).run([result], Round({"A2": asked}, {}))
    assert result.row is not None and "no answer within 2 s" in result.row["reason"]


def test_what_the_honest_emulator_shows_as_well_is_no_find(a2: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    """With half precision rounded wrongly everywhere, a rounding that is questionable proves nothing."""
    monkeypatch.setenv("POOLPROOF_EMULATOR_NANS", "ignore")
    windows = {"shape": (1, 1, 8, 8), "kernel_size": (2,)}
    forward = Case.of("MaxPool2dWithIndices", index_dtype="int32", values="nan", **windows)
    result = hunt("nan_loses", CaseQuestion(forward, holding("maximum")), PLAIN)
    assert (result.is_found, result.disputed, result.cases) == (False, 1, 2)


def test_the_honest_emulator_is_asked_a_question_once_and_a_find_again_only_where_that_is_wanted(
    a2: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(product: str, defect: str, *others: Any) -> Iterator[Row]:
        asked.append(defect)
        return answers(product, defect, *others)

    monkeypatch.setattr("poolproof.score.hunt.answers", counted)
    results = [Result(defect, "A2") for defect in ("nan_dropped", "nan_spreads")]
    Hunts(2, 10.0, 0.0, lambda _: None, replays=False).run(results, Round({"A2": [WITH_NAN]}, {}))
    assert [(each.is_found, each.replays, each.shrunk) for each in results] == [(True, False, "")] * 2
    assert asked == [HONEST]


def test_answers_come_from_a_process_of_their_own(a2: Survey) -> None:
    honest = list(answers("A2", HONEST, [PLAIN, WITH_NAN, MANY_PLANES], 10.0))
    assert [row["verdict"] for row in honest] == ["conforms"] * 3
    dying = list(answers("A2", "crash_on_uneven_cores", [PLAIN, MANY_PLANES, PLAIN], 10.0))
    assert [row["verdict"] for row in dying] == ["conforms", "crashed", "conforms"]
    tasks = [("A2", HONEST, lambda backend: str(backend.product)), ("A2", "crash_on_uneven_cores", MANY_PLANES.judge)]
    assert dict(in_processes(tasks, 2, 10.0)) == {0: "A2", 1: None}


def test_a_fault_of_the_suite_itself_is_no_find(a2: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(question: CaseQuestion, backend: object) -> None:
        raise ZeroDivisionError("in a check")

    monkeypatch.setattr(CaseQuestion, "judge", judge)
    for ask in (
        lambda: hunt("nan_dropped", PLAIN),
        lambda: list(answers("A2", HONEST, [PLAIN], 10.0)),
        lambda: list(in_processes([("A2", HONEST, PLAIN.judge)], 2, 10.0)),
    ):
        with pytest.raises(OwnFault, match="in a check"):
            ask()


def test_rounds_ask_everything_once_and_know_the_block_of_each_question(a2: Survey) -> None:
    """Whatever is found is made smaller by its block, a low-level call included."""
    plan, both = Plan("tiny", 3, ""), ("AdaptiveMaxPool2d", "MaxPool3dWithArgmaxBackward")
    a2 = replace(a2, subjects=[each for each in a2.subjects if each.operator.name in both])
    asked = list(rounds({"A2": a2}, plan, 0, 2))
    first, *others = (part.questions["A2"] for part in asked)
    again = next(rounds({"A2": a2}, plan, 0, 1)).questions["A2"]
    cases = [each for each in first if isinstance(each, CaseQuestion)]
    assert [each.id for each in first] == [each.id for each in again]
    assert len({(each.block, each.id) for each in cases}) > 0.9 * len(cases)
    assert {each.aspect.id for each in first} >= {"values", "layouts", "state", "contract"}
    halves = len(first) // 2
    often = {aspect for aspect, number in Counter(each.aspect.id for each in first).items() if number > 8}
    for half in (first[:halves], first[halves:]):
        assert often <= {each.aspect.id for each in half}
    contract = [each.block for part in (first, *others) for each in part if each.aspect.id == CONTRACT.id]
    assert Counter(contract) == {block.id: block.count for block in blocks(a2.subjects, [CONTRACT], plan, 0)}
    assert {each.block for each in first} <= set(asked[0].blocks)
    call = next(each for each in first if each.aspect.id == CONTRACT.id)
    smaller = asked[0].blocks[call.block].smaller(call, lambda _: True, 1.0)
    assert smaller is None or smaller.describe()["clause"] == call.describe()["clause"]


def made_up() -> pd.DataFrame:
    found = Result("nan_dropped", "A2", {"checks_violated": ["interval", "written"], "reason": "<b>"}, 10, 1.0)
    alone = Result("leak_per_call", "A2", {"checks_violated": ["memory_kept"]}, 30, 3.0)
    return table_of([found, alone, Result("offset_ignored", "A2", cases=99)])


def test_the_table_says_what_each_check_is_good_for() -> None:
    frame = made_up()
    assert needs(frame, ("interval", "memory_kept", "status")) == {
        "interval": "shared",
        "memory_kept": "alone",
        "status": "none",
    }
    assert summarise(frame).text() == "2 of 3 defects found (66.7 %), half of them within 20 cases and 2.0 s"


def test_the_page_shows_every_defect(tmp_path: Path) -> None:
    page = write_score(made_up(), ALL_CHECKS, tmp_path, {"plan": "smoke"}).read_text()
    assert all(name in page for name in ("nan dropped", "leak per call", "offset ignored", "missed"))
    assert "&lt;b&gt;" in page
    assert len(pd.read_parquet(tmp_path / "score.parquet")) == 3


def test_the_command_hunts_writes_and_resumes(tmp_path: Path) -> None:
    arguments = ["--defect", "leak_per_call", "--cases", "2", "--report", str(tmp_path), "--shrink", "0"]
    first = CliRunner().invoke(score, arguments)
    assert first.exit_code == 0, first.output
    assert "1 of 1 defects found" in first.output
    before = pd.read_parquet(tmp_path / "score.parquet")
    again = CliRunner().invoke(score, [*arguments, "--resume"])
    assert again.exit_code == 0
    assert pd.read_parquet(tmp_path / "score.parquet").equals(before)


def test_an_interrupted_hunt_has_missed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hunts, "run", Mock(side_effect=KeyboardInterrupt))
    ended = CliRunner().invoke(score, ["--defect", "leak_per_call", "--cases", "1", "--report", str(tmp_path)])
    assert ended.exit_code == Overall.INCOMPLETE
    assert "0 of 1 defects found (0.0 %), 1 hunt interrupted" in ended.output
    for text in (ended.output, (tmp_path / "score.html").read_text()):
        assert "interrupted" in text and "issed" not in text


OVERLAPPING: dict[str, Any] = {"shape": (1, 1, 300, 301), "kernel_size": (3,), "stride": (2,)}
VOLUME = OVERLAPPING | {"operator": "MaxPool3dWithArgmaxBackward", "shape": (1, 1, 20, 40, 41)}
Place = tuple[int, ...]
KNOWN: dict[str, tuple[str, dict[str, Any], str, Callable[[Place, Place], bool]]] = {
    "plane_tail_dropped": ("A2", {"shape": (1, 70, 4, 4)}, "lost", lambda cell, window: cell[1] >= 64 <= window[1]),
    "last_ceil_window_dropped": (
        *("A2", {"shape": (1, 1, 5, 7), "ceil_mode": True}, "lost"),
        lambda cell, window: window[2] == 2 or window[3] == 3,
    ),
    "halo_counted_twice": (
        *("A2", OVERLAPPING | {"shape": (1, 1, 50, 40)}, "added twice"),
        lambda cell, window: 2 * window[2] <= cell[2] <= 2 * window[2] + 2,
    ),
    "uint16_plane_index": (
        *("A2", {"shape": (1, 1, 260, 260), "indices": "last"}, "lost"),
        lambda cell, window: cell[2] * 260 + cell[3] >= 65536,
    ),
    "short_lanes_truncated": (
        *("A2", {"shape": (1, 20, 33, 33), "kernel_size": (3,), "stride": (1,)}, "lost"),
        lambda cell, window: cell[1] >= 16,
    ),
    "gradient_of_first_plane": ("A2", {"shape": (1, 3, 4, 6)}, "expected", lambda cell, window: cell[1] >= 1),
    "padded_lane_adds": (
        *("950", {"shape": (1, 1, 40, 42), "indices": "last"}, "no window reaches it"),
        lambda cell, window: cell == (0, 0, 0, 0),
    ),
    "width_tail_dropped": ("950", {"shape": (1, 1, 20, 140)}, "lost", lambda cell, window: window[3] >= 64),
    "gaps_not_stored": (
        *("950", {"shape": (1, 1, 40, 40), "kernel_size": (1,), "stride": (2,)}, "what was in memory before the call"),
        lambda cell, window: cell[2] % 2 == 1 or cell[3] % 2 == 1,
    ),
    "tile_end_inclusive": (
        *("950", VOLUME | {"indices": "in_window"}, "had been added as well"),
        lambda cell, window: window[2:] != tuple(place // 2 for place in cell[2:]),
    ),
    "lost_halo_window": (
        *("950", OVERLAPPING | {"indices": "last"}, "lost"),
        lambda cell, window: (cell[2], cell[3]) == (2 * window[2] + 2, 2 * window[3] + 2),
    ),
}
"""Defect -> (product, a case that triggers it, words of its message, whether cell and window are where it is at work).

The cell is that which is said to be wrong, the window that which is said to have gone astray, () if none.
"""


@pytest.mark.parametrize("defect", KNOWN)
def test_the_message_names_what_the_defect_did(defect: str) -> None:
    product, fields, words, names_the_place = KNOWN[defect]
    asked = question(**{"kernel_size": (2,), **fields})
    values = CaseQuestion(asked.case, holding("written", "interval", "unreached"))
    (row,) = answers(product, defect, [values], 60.0)
    finding = json.loads(row["findings"])[0]
    assert words in finding["message"]
    astray = re.search(r"as if grad_output\[([\d, ]+)\]", finding["message"])
    window = tuple(map(int, astray[1].split(", "))) if astray else ()
    assert names_the_place(tuple(finding["element"]), window)
