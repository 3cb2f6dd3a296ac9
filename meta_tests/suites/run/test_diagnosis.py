"""Further cases narrow a threshold, tell ties apart and refute what is not so: against made-up kernels whose trigger is
known, and at the end of sessions that judge the emulated NPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pandas as pd
import pytest

from forging import rewrite
from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import BackendUnavailable
from poolproof.reports.bundle.redraw import Redraw, plan_problems
from poolproof.reports.bundle.verification import verify
from poolproof.reports.clusters import FailureCluster, cluster_failures
from poolproof.reports.clusters.clustering import open_clusters
from poolproof.reports.figures.comparison import compare
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.recorder import Done
from poolproof.reports.rows.checks import DIAGNOSIS
from poolproof.reports.rows.store import read_rows
from poolproof.reports.rows.verdicts import FAILED, Overall, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.lines import NoFurtherCase, further_question, further_question_of
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plan.record import mandatory, plan_cases, redraw, redraw_further
from poolproof.suites.rerun import rejudge, sample
from poolproof.suites.run import interrupts
from poolproof.suites.run.diagnosis import ROUNDS, Diagnosis, diagnose
from shared_runs import WIDE_LANES
from shared_runs import judged_with_wide_lanes as judged
from suspect_rows import Row, failing, made_up
from suspect_subjects import subjects

Fails = Callable[[Case], bool]


@dataclass
class Kernel:
    """Cases of ``kernel_rows`` are what the plan judged; a further one fails where ``fails`` says so."""

    kernel_rows: list[Row]
    fails: Fails
    asked: list[Case] = field(default_factory=list)
    verdict: Verdict = Verdict.VIOLATES

    @classmethod
    def planned(cls, fails: Fails, count: int = 300, keep: Fails = lambda _: True) -> Kernel:
        """Of the cases of a plan those that are kept."""
        rows = [row for row in made_up(count) if keep(Case.from_json(row["case"]))]
        return cls(failing(rows, lambda row: fails(Case.from_json(row["case"]))), fails)

    def ask(self, question: CaseQuestion, backend: str) -> Row:
        assert backend == "mine"
        self.asked.append(question.case)
        row = question.describe() | {"backend": backend, "checks_judged": ["interval"], "checks_violated": []}
        row |= {"verdict": str(Verdict.CONFORMS)}
        if self.fails(question.case):
            violated = ["survival"] if self.verdict is Verdict.CRASHED else ["interval"]
            row |= {"verdict": str(self.verdict), "checks_violated": violated}
        self.kernel_rows.append(row)
        return row

    def suspects(self) -> tuple[FailureCluster, ...]:
        return cluster_failures(pd.DataFrame(self.kernel_rows))

    def inquiries(self) -> list[FailureCluster]:
        return open_clusters(self.suspects())

    def diagnose(self, seconds: float = 60.0, able: Abilities = ALL, known: set[str] | None = None) -> FailureCluster:
        """What is suspected first once further cases were asked."""
        Diagnosis(self.inquiries, self.ask, subjects(able), seconds, lambda _: None, known or set()).run()
        return self.suspects()[0]


def planes(least: int) -> Fails:
    return lambda case: case.planes >= least


def dilated(case: Case) -> bool:
    return any(axis.step > 1 for axis in case.axes)


@pytest.mark.parametrize("least", [61, 64])
def test_a_threshold_is_narrowed_to_two_neighbours(least: int) -> None:
    kernel = Kernel.planned(planes(least), keep=lambda case: not 50 <= case.planes <= 75)
    (before,) = kernel.suspects()
    assert before.bounds[0].fails - (before.bounds[0].conforms or 0) > 20
    after = kernel.diagnose()
    assert [str(term) for term in after.terms] == [f"N*C >= {least}"]
    assert (after.bounds[0].fails, after.bounds[0].conforms) == (least, least - 1)
    assert after.is_exact


def test_an_upper_threshold_is_narrowed_too() -> None:
    kernel = Kernel.planned(lambda case: case.planes < 9, keep=lambda case: not 5 <= case.planes <= 20)
    after = kernel.diagnose()
    assert [str(term) for term in after.terms] == ["N*C < 9"]


def test_a_threshold_between_whose_sides_few_calls_lie_is_narrowed_as_far_as_they_do() -> None:
    """Not every number of elements is one of a plane's multiples."""

    def elements(case: Case) -> int:
        return case.planes * case.plane_size

    kernel = Kernel.planned(lambda case: elements(case) >= 20_000, keep=lambda case: not 9000 < elements(case) < 40_000)
    after = kernel.diagnose()
    (bound,) = after.bounds
    assert bound.feature == "elements"
    assert 19_000 < (bound.conforms or 0) < 20_000 <= bound.fails < 21_000


def test_conditions_that_the_same_cases_meet_are_told_apart() -> None:
    """In the plan nothing has many planes but what has float16."""
    kernel = Kernel.planned(planes(64), keep=lambda case: (case.planes >= 64) == (case.dtype == "float16"))
    (before,) = kernel.suspects()
    assert before.ties
    after = kernel.diagnose()
    assert [str(term) for term in after.terms] == ["N*C >= 64"]
    assert not {"dtype = float16", "half precision"} & {str(term) for tie in after.ties for term in tie}


def test_a_condition_that_is_not_so_is_refuted() -> None:
    """In the plan every dilated case is of float16, too."""
    kernel = Kernel.planned(dilated, keep=lambda case: not dilated(case) or case.dtype == "float16")
    after = kernel.diagnose()
    assert [str(term) for term in after.terms] == ["dilation > 1"]
    assert after.is_exact


def test_a_single_failing_case_is_enough_to_begin_with() -> None:
    kernel = Kernel.planned(planes(100))
    seen = [row for row in kernel.kernel_rows if row["verdict"] in FAILED]
    kernel.kernel_rows = [row for row in kernel.kernel_rows if row not in seen[1:]]
    (before,) = kernel.suspects()
    assert not before.has_condition
    assert [str(term) for term in kernel.diagnose().terms] == ["N*C >= 100"]


def test_a_death_is_narrowed_as_any_failure_is() -> None:
    kernel = Kernel.planned(planes(64), keep=lambda case: not 50 <= case.planes <= 75)
    died = {"verdict": "crashed", "checks_violated": ["survival"]}
    kernel.kernel_rows = [row | died if row["verdict"] in FAILED else row for row in kernel.kernel_rows]
    kernel.verdict = Verdict.CRASHED
    after = kernel.diagnose()
    assert (after.bounds[0].fails, after.bounds[0].conforms) == (64, 63)


@pytest.fixture(scope="module")
def asked() -> list[Case]:
    """The further cases of a run in which 64 planes fail."""
    kernel = Kernel.planned(planes(64))
    kernel.diagnose()
    return kernel.asked


def test_no_more_is_asked_than_there_is_room_for(asked: list[Case]) -> None:
    assert 0 < len(asked) <= sum(ROUNDS)
    assert len(set(asked)) == len(asked)


def test_a_number_that_one_case_had_is_refuted_by_those_beside_it() -> None:
    """All that fails in the plan leaves the same remainder."""
    kernel = Kernel.planned(
        lambda case: case.planes % 8 in (4, 5, 6), 600, lambda case: case.planes % 8 in (0, 1, 5, 7)
    )
    (before,) = kernel.suspects()
    assert [str(term) for term in before.terms] == ["N*C mod 8 = 5"]
    after = kernel.diagnose()
    assert {case.planes % 8 for case in kernel.asked if kernel.fails(case)} >= {4, 6}
    assert "N*C mod 8 = 5" not in map(str, after.terms)


def test_without_time_nothing_is_asked() -> None:
    kernel = Kernel.planned(planes(64))
    kernel.diagnose(seconds=0.0)
    assert not kernel.asked


def test_nothing_that_is_known_is_asked_again(asked: list[Case]) -> None:
    again = Kernel.planned(planes(64))
    again.diagnose(known={case.id for case in asked})
    assert not set(asked) & set(again.asked)


def test_the_same_run_is_asked_the_same(asked: list[Case]) -> None:
    again = Kernel.planned(planes(64))
    again.diagnose()
    assert asked == again.asked


def test_further_cases_are_calls_that_the_backend_has() -> None:
    able = Abilities(padding=False, unbatched=False, ceil_mode=False, layouts=())
    kernel = Kernel.planned(dilated)
    kernel.diagnose(able=able)
    assert kernel.asked
    for case in kernel.asked:
        assert Case.from_json(case.to_json()) == case
        assert not case.has_empty_window()
        assert able.lacking(case.api, case.shape, case.attributes) is None
        assert case.dtype in ("float32", "float16")
        assert not case.layouts


def test_of_a_further_case_that_is_waived_nothing_is_learned() -> None:
    kernel = Kernel.planned(planes(64))
    (before,) = kernel.suspects()
    kernel.verdict = Verdict.WAIVED
    after = kernel.diagnose()
    waived = [row for row in kernel.kernel_rows if row["verdict"] == Verdict.WAIVED]
    assert waived
    assert (after.failing, after.cases, after.bounds[0].fails) == (before.failing, before.cases, before.bounds[0].fails)
    assert not after.conforming
    assert not after.cases & {row["case_id"] for row in waived}


def test_calls_of_the_contract_are_left_as_they_are() -> None:
    kernel = Kernel.planned(dilated)
    kernel.kernel_rows = [row | {"aspect": "contract", "case": '{"tensors":{}}'} for row in kernel.kernel_rows]
    kernel.diagnose()
    assert not kernel.asked


def test_a_further_case_is_held_to_the_claims_of_the_aspect_that_failed() -> None:
    case = Case.from_json(made_up(1)[0]["case"])
    question = further_question(case, "state")
    assert "state" in question.aspect.checks
    assert question.aspect.id == DIAGNOSIS
    assert further_question_of(question.describe()) == question


@pytest.mark.parametrize("row", [{"case": "{", "block": "diagnosis-values"}, {"case": None, "block": None}])
def test_a_row_of_no_further_case_is_told(row: Row) -> None:
    with pytest.raises(NoFurtherCase):
        further_question_of(row)


DRAW = Redraw(redraw, mandatory, plan_cases, redraw_further)


@pytest.fixture(scope="module")
def digest(diagnosed: Path) -> Digest:
    return read_digest(diagnosed / "run")


def test_a_session_ends_with_the_threshold(digest: Digest) -> None:
    (suspect,) = digest.clusters
    assert "N*C mod 32 >= 17" in map(str, suspect.terms)
    assert (suspect.bounds[0].fails, suspect.bounds[0].conforms) == (17, 16)
    assert not suspect.failing_others


def test_further_cases_count_for_no_plan(diagnosed: Path, digest: Digest) -> None:
    totals = digest.conclusion.totals
    assert (totals["judged"], totals["violates"], digest.conclusion.planned) == (12, 1, 12)
    further = read_rows(diagnosed / "run").num_rows - 12 - int(digest.skips["count"].sum())
    assert digest.conclusion.further == further > 20
    printed = (diagnosed / "printed.txt").read_text(encoding="utf-8")
    assert "1 of 12 judged cases; one thing is wrong; narrowed: 12 of" in printed
    assert f"; {further} further cases asked to narrow down what is wrong" in printed
    assert DIAGNOSIS not in (diagnosed / "run" / "junit.xml").read_text(encoding="utf-8")


def test_its_bundle_stands(diagnosed: Path) -> None:
    found = verify(diagnosed / "bundle.zip", draw=DRAW)
    assert found.overall is Overall.CONFORMS, [step.problems for step in found.steps]
    assert any("the others are" in step.text for step in found.steps)


def test_a_further_row_that_says_otherwise_than_its_case_is_told(diagnosed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(diagnosed / "run", tmp_path / "run"))
    rewrite(folder, lambda rows: [row | {"planes": 7} if row["aspect"] == DIAGNOSIS else row for row in rows])
    problems = list(plan_problems(read_digest(folder), DRAW))
    assert problems
    assert all("diagnosis-values" in problem and "says planes 7" in problem for problem in problems)


def test_a_planned_row_cannot_pass_for_a_further_one(diagnosed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(diagnosed / "run", tmp_path / "run"))
    further = {"aspect": DIAGNOSIS, "block": "diagnosis-values"}
    rewrite(folder, lambda rows: [row | further if row["verdict"] in FAILED else row for row in rows])
    assert any("was planned and has no row" in problem for problem in plan_problems(read_digest(folder), DRAW))


def test_a_further_row_says_what_follows_from_its_case(diagnosed: Path, digest: Digest) -> None:
    row = next(row for row in read_rows(diagnosed / "run").to_pylist() if row["aspect"] == DIAGNOSIS)
    described, checks = redraw_further(row)
    assert all(row[name] == value for name, value in described.items())
    assert set(checks) <= set(row["checks_judged"])


def test_a_sample_is_judged_again(digest: Digest, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None) -> None:
    for name, value in WIDE_LANES.items():
        monkeypatch.setenv(name, value)
    rows = [row for row in sample(digest, 1000, 0) if row["aspect"] == DIAGNOSIS][:10]
    assert len(rows) == 10
    assert not [again.differs for again in rejudge(digest, rows, None, 60.0) if again.differs]


def test_a_comparison_accuses_nobody_of_more_or_fewer_cases(diagnosed: Path, tmp_path: Path) -> None:
    """One worker of two judges; 0 seconds turn it off; what is resumed later has them all the same."""
    folder = tmp_path / "run"
    ended = judged(folder, "--diagnose", "0", "-n", "2")
    assert ended.status == Overall.VIOLATES, ended.output
    assert not read_digest(folder).conclusion.further
    for pair in ((diagnosed / "run", folder), (folder, diagnosed / "run")):
        told = compare(*pair)
        assert (told.shared, told.overall) == (12, Overall.CONFORMS)
    resumed = judged(folder, "--resume", "--diagnose", "60", "-n", "2")
    assert resumed.status == Overall.VIOLATES, resumed.output
    assert "further cases are asked about 1 suspect: 60 s each at most" in resumed.output
    assert "N*C mod 32 >= 17" in map(str, read_digest(folder).clusters[0].terms)


# What ends the further cases of a session, and that whatever was learned until then counts.


class Ending:
    """Judges some questions, and then ends as it is told to."""

    def __init__(self, end: Callable[[], object], answers: int) -> None:
        self._end, self._answers = end, answers
        self.asked = 0

    def __call__(self, question: Question, backend: str) -> Row:
        self.asked += 1
        if self.asked > self._answers:
            self._end()
        return question.describe() | {"backend": backend, "verdict": "conforms"}


def told_of(diagnosed: Path, judge: Ending) -> list[str]:
    """What a session says that ends so; the suspects are those of a real run."""
    (backend,) = read_digest(diagnosed / "run").run["backends"]
    asked_of = [Subject(backend, each.operator, each.dtype, each.index_dtype) for each in subjects()]
    said: list[str] = []
    diagnose(diagnosed / "run", judge, asked_of, 30.0, NOTHING, said.append)
    return said


NOTHING = Done()


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def unavailable() -> NoReturn:
    raise BackendUnavailable("the card is gone")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (interrupted, "diagnosis interrupted: what was learned so far counts"),
        (unavailable, "no further cases: the card is gone"),
    ],
)
def test_an_end_is_told_and_nothing_else_ends(diagnosed: Path, end: Callable[[], object], told: str) -> None:
    judge = Ending(end, answers=3)
    assert told_of(diagnosed, judge)[-1] == told
    assert judge.asked == 4


def test_an_interrupt_that_was_lost_is_no_interrupt_of_the_session(
    diagnosed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        monkeypatch.setattr(interrupts, "_pending", True)

    assert told_of(diagnosed, Ending(lose, answers=3))[-1].startswith("diagnosis interrupted")


def test_what_no_end_disturbs_says_how_many_are_asked_about(diagnosed: Path) -> None:
    judge = Ending(lambda: None, answers=0)
    (said,) = told_of(diagnosed, judge)
    assert "further cases are asked about 1 suspect: 30 s each at most" in said
    assert judge.asked
