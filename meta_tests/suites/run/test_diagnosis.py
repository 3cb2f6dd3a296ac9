"""Further cases narrow a threshold, tell ties apart and refute what is not so: against made-up kernels whose trigger is
known, and at the end of sessions that judge the emulated NPU."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Self

import pytest

from forging import rewrite
from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import BackendUnavailable
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.references.operators import OPERATORS
from poolproof.reports.clusters import FailureCluster, cluster_failures
from poolproof.reports.clusters.clustering import clusters_of, open_clusters
from poolproof.reports.clusters.describing import probe_lines
from poolproof.reports.figures.comparison import compare
from poolproof.reports.figures.digest import Digest, read_digest
from poolproof.reports.rows.checks import CONTRAST, DIAGNOSIS, NARROWING
from poolproof.reports.rows.records import Done
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.verdicts import FAILED, BadInput, Overall, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.plan.lines import further_question, further_question_of
from poolproof.suites.plan.plans import Subject
from poolproof.suites.plan.selection import Selection
from poolproof.suites.probe import command
from poolproof.suites.run import interrupts
from poolproof.suites.run.diagnosis import ROUNDS, contrasts, diagnose, narrow_down, probe_sums
from poolproof.suites.verify.plan_rows import row_problems
from poolproof.suites.verify.rerun import rejudge, sample
from poolproof.suites.verify.verification import verify
from sessions import run_session
from shared_runs import WIDE_LANES
from shared_runs import judged_with_wide_lanes as judged
from suspect_rows import Row, failing, made_up

WINDOWED = ("MaxPool3dWithArgmaxBackward", "MaxPool2dWithIndicesBackward")


def subjects(abilities: Abilities = ALL) -> list[Subject]:
    return [
        Subject("mine", OPERATORS[name], dtype, "int64", abilities=abilities)
        for name in WINDOWED
        for dtype in ("float32", "float16")
    ]


Fails = Callable[[Case], bool]


@dataclass
class Kernel:
    """Cases of ``kernel_rows`` are what the plan judged; a further one fails where ``fails`` says so."""

    kernel_rows: list[Row]
    fails: Fails
    asked: list[Case] = field(default_factory=list)
    verdict: Verdict = Verdict.VIOLATES

    @classmethod
    def planned(cls, fails: Fails, count: int = 300, keep: Fails = lambda _: True) -> Self:
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
        return cluster_failures(self.kernel_rows)

    def inquiries(self) -> list[FailureCluster]:
        return open_clusters(self.suspects())

    def diagnose(self, seconds: float = 60.0, able: Abilities = ALL, known: set[str] | None = None) -> FailureCluster:
        """What is suspected first once further cases were asked."""
        narrow_down(self.inquiries, self.ask, subjects(able), seconds, lambda _: None, known or set())
        return self.suspects()[0]


def planes(least: int) -> Fails:
    return lambda case: case.planes >= least


def dilated(case: Case) -> bool:
    return any(axis.step > 1 for axis in case.axes)


def outside(low: int, high: int) -> Fails:
    return lambda case: not low <= case.planes <= high


@pytest.mark.parametrize(
    ("fails", "keep", "found"),
    [
        (planes(61), outside(50, 75), "N*C >= 61"),
        (planes(64), outside(50, 75), "N*C >= 64"),
        (lambda case: case.planes < 9, outside(5, 20), "N*C < 9"),
        (planes(64), lambda case: (case.planes >= 64) == (case.dtype == "float16"), "N*C >= 64"),
        (dilated, lambda case: not dilated(case) or case.dtype == "float16", "dilation > 1"),
    ],
)
def test_what_a_plan_leaves_open_is_found(fails: Fails, keep: Fails, found: str) -> None:
    """A threshold to two neighbours; of conditions that the same cases meet, which it is."""
    kernel = Kernel.planned(fails, keep=keep)
    assert len(kernel.suspects()) == 1
    after = kernel.diagnose()
    assert [str(term) for term in after.terms] == [found]
    assert after.is_exact
    assert all(abs(bound.fails - (bound.conforms or 0)) == 1 for bound in after.bounds)


def test_a_threshold_between_whose_sides_few_calls_lie_is_narrowed_as_far_as_they_do() -> None:
    """Not every number of elements is one of a plane's multiples."""

    def elements(case: Case) -> int:
        return case.planes * case.plane_size

    kernel = Kernel.planned(lambda case: elements(case) >= 20_000, keep=lambda case: not 9000 < elements(case) < 40_000)
    after = kernel.diagnose()
    (bound,) = after.bounds
    assert bound.feature == "elements"
    assert 19_000 < (bound.conforms or 0) < 20_000 <= bound.fails < 21_000


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


def test_the_same_run_is_asked_the_same_and_nothing_that_is_known() -> None:
    kernel, again, resumed, hurried = (Kernel.planned(planes(64)) for _ in range(4))
    kernel.diagnose()
    assert 0 < len(set(kernel.asked)) == len(kernel.asked) <= sum(ROUNDS)
    again.diagnose()
    assert kernel.asked == again.asked
    resumed.diagnose(known={case.id for case in kernel.asked})
    assert not set(kernel.asked) & set(resumed.asked)
    hurried.diagnose(seconds=0.0)
    assert not hurried.asked


@pytest.mark.thorough
def test_a_number_that_one_case_had_is_refuted_by_those_beside_it() -> None:
    """All that fails in the plan leaves the same remainder."""
    kernel = Kernel.planned(lambda it: it.planes % 8 in (4, 5, 6), 600, lambda it: it.planes % 8 in (0, 1, 5, 7))
    (before,) = kernel.suspects()
    assert [str(term) for term in before.terms] == ["N*C mod 8 = 5"]
    after = kernel.diagnose()
    assert {case.planes % 8 for case in kernel.asked if kernel.fails(case)} >= {4, 6}
    assert "N*C mod 8 = 5" not in map(str, after.terms)


def test_further_cases_are_calls_that_the_backend_has() -> None:
    able = Abilities(padding=False, unbatched=False, ceil_mode=False, layouts=())
    kernel = Kernel.planned(dilated)
    kernel.diagnose(able=able)
    assert kernel.asked
    for case in kernel.asked:
        assert Case.from_json(case.to_json()) == case
        assert not case.has_empty_window
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
    assert (after.counts, after.cases, after.bounds) == (before.counts, before.cases, before.bounds)
    assert not after.counts.conforming
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
    with pytest.raises(BadInput, match="its case or its block is none"):
        further_question_of(row)


@pytest.fixture(scope="module")
def digest(diagnosed: Path) -> Digest:
    return read_digest(diagnosed / "run")


def test_a_session_ends_with_the_threshold(digest: Digest) -> None:
    (suspect,) = digest.clusters
    assert "N*C mod 32 >= 17" in map(str, suspect.terms)
    assert (suspect.bounds[0].fails, suspect.bounds[0].conforms) == (17, 16)
    assert not suspect.counts.others


def test_further_cases_count_for_no_plan(diagnosed: Path, digest: Digest) -> None:
    totals = digest.conclusion.totals
    assert (totals["judged"], totals["violates"], digest.conclusion.planned) == (12, 1, 12)
    further = read_rows(diagnosed / "run").num_rows - 12 - int(digest.skips["count"].sum())
    assert digest.conclusion.further == further > 20
    printed = (diagnosed / "printed.txt").read_text(encoding="utf-8")
    assert "1 of 12 judged cases fail. Narrowed: 12 of" in printed
    assert f". {further} further cases judged to narrow down the causes" in printed


def test_a_narrowed_run_is_compared_with_cases_that_it_left_out(diagnosed: Path) -> None:
    """One case of twelve says nothing about its cause; independent cases of other dtypes do."""
    rows = [row for row in read_rows(diagnosed / "run").to_pylist() if row["block"]]
    contrast = [row for row in rows if row["aspect"] == CONTRAST]
    own = [row for row in rows if row["aspect"] not in NARROWING]
    assert {row["dtype"] for row in contrast} == {"float32", "float16", "bfloat16"}
    assert {row["operator"] for row in contrast} == {own[0]["operator"]}
    assert not {row["case_id"] for row in contrast} & {row["case_id"] for row in own}
    (alone,), (compared,) = cluster_failures(own), cluster_failures([*own, *contrast])
    assert not alone.has_condition
    assert compared.features == ("N*C mod 32",)
    assert (compared.counts.failing, compared.counts.further) == (1, (6, 0))


def test_a_recorded_case_is_not_judged_again_for_contrast(diagnosed: Path) -> None:
    selection = Selection.of_run(read_digest(diagnosed / "run").run)
    clusters = clusters_of(diagnosed / "run")
    left = [question.case.id for question, _ in contrasts(clusters, selection, ())]
    assert len(left) == 20
    assert not [*contrasts(clusters, selection, left)]


def test_its_bundle_stands_and_its_further_rows_say_what_follows_from_their_cases(diagnosed: Path) -> None:
    found = verify(diagnosed / "bundle.zip")
    assert found.overall is Overall.CONFORMS, [step.problems for step in found.steps]
    assert any("the others are" in step.text for step in found.steps)
    row = next(row for row in read_rows(diagnosed / "run").to_pylist() if row["aspect"] == DIAGNOSIS)
    question = further_question_of(row)
    assert all(row[name] == value for name, value in question.describe().items())
    assert set(question.expected_checks()) <= set(row["checks_judged"])


def test_a_further_row_that_is_none_is_told(diagnosed: Path, tmp_path: Path) -> None:
    """A further row that contradicts its case, and a planned row disguised as a further one."""
    further = {"aspect": DIAGNOSIS, "block": "diagnosis-values"}
    folders = [Path(shutil.copytree(diagnosed / "run", tmp_path / name)) for name in ("other", "planned")]
    rewrite(folders[0], lambda rows: [row | {"planes": 7} if row["aspect"] == DIAGNOSIS else row for row in rows])
    rewrite(folders[1], lambda rows: [row | further if row["verdict"] in FAILED else row for row in rows])
    other, planned = (row_problems(read_digest(folder), is_known=True)[1] for folder in folders)
    assert other and all("diagnosis-values" in problem and "says planes 7" in problem for problem in other)
    assert any("was planned and has no row" in problem for problem in planned)


def test_a_sample_is_judged_again(digest: Digest, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None) -> None:
    for name, value in WIDE_LANES.items():
        monkeypatch.setenv(name, value)
    rows = [row for row in sample(digest, 1000, 0) if row["aspect"] == DIAGNOSIS][:10]
    assert len(rows) == 10
    assert not [again.differs for again in rejudge(digest, rows, None, 60.0, print) if again.differs]


@pytest.mark.thorough
def test_a_comparison_accuses_nobody_of_more_or_fewer_cases(diagnosed: Path, tmp_path: Path) -> None:
    """One worker of two judges; 0 seconds turn it off; what is resumed later has them all the same."""
    folder = tmp_path / "run"
    ended = judged(folder, "--diagnose", "0")
    assert ended.status == Overall.VIOLATES, ended.output
    assert not read_digest(folder).conclusion.further
    for pair in ((diagnosed / "run", folder), (folder, diagnosed / "run")):
        told = compare(*pair)
        assert (told.shared, told.overall) == (12, Overall.CONFORMS)
    resumed = judged(folder, "--resume", "--diagnose", "60", "-n", "2")
    assert resumed.status == Overall.VIOLATES, resumed.output
    assert "judging further cases for 1 cause, up to 60 s each" in resumed.output
    assert "N*C mod 32 >= 17" in map(str, read_digest(folder).clusters[0].terms)


def test_the_probe_says_how_deviating_sums_are_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["--operator", "MaxPool3dWithArgmaxBackward", "--dtype", "bfloat16", "--aspect", "precision"]
    defect = {VARIABLE: "bfloat16_truncated"}
    given = ("--cases", "12", "--no-shrink", "--diagnose", "10")
    ended = run_session(tmp_path / "run", "emulator-950", *given, asked=asked, variables=defect)
    told = "the probe of MaxPool3dWithArgmaxBackward in bfloat16: no model admits this rounding: toward zero (predicts "
    assert ended.status == Overall.VIOLATES and told in " ".join(ended.output.split())
    (cause,) = read_digest(tmp_path / "run").root_causes
    assert cause.probed[0].startswith(told)
    # An interrupt ends the probe alone.
    said: list[str] = []
    monkeypatch.setattr(command, "records_of", lambda *_: interrupted())
    assert not probe_sums(tmp_path / "run", said.append)
    assert said == ["probe interrupted: the accumulation model is not known"]
    # Nothing is said of sums that are right as far as their gradients arrive.
    wrong = replace(cause, members=(cause.smallest | {"dtype": "float16"},))
    (account,) = read_run(tmp_path / "run")["probes"]["emulator-950"]
    assert not probe_lines(wrong, {"emulator-950": [account]})
    # What the failing cases have said is not said again, but which model fits.
    fitting = account | {"model": "native", "disagreements": ["declared acc32 rejects 3 of 9 outputs"]}
    (line,) = probe_lines(cause, {"emulator-950": [fitting]})
    assert line.endswith(": native admits all observed sums, declared is acc32")


# What ends the further cases of a session, and that whatever was learned until then counts.


def told_of(diagnosed: Path, end: Callable[[], object] = lambda: None) -> tuple[list[str], int]:
    """What a session says that ends so at its second further case, and how many it asked: suspects of a real run."""
    selection = Selection.of_run(read_digest(diagnosed / "run").run)
    said: list[str] = []
    asked: list[Question] = []

    def judge(question: Question, backend: str) -> Row:
        asked.append(question)
        if len(asked) == 2:
            end()
        return question.describe() | {"backend": backend, "verdict": "conforms"}

    diagnose(diagnosed / "run", judge, selection, 30.0, Done(), said.append)
    return said, len(asked)


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def unavailable() -> NoReturn:
    raise BackendUnavailable("the card is gone")


def test_an_end_is_told_and_nothing_else_ends(diagnosed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = told_of(diagnosed, interrupted)
    assert (said[-1], asked) == ("diagnosis interrupted: the results so far count", 2)
    said, asked = told_of(diagnosed, unavailable)
    assert (said[-1], asked) == ("no further cases: the card is gone", 2)
    said, _ = told_of(diagnosed, lambda: monkeypatch.setattr(interrupts, "_pending", True))
    assert said[-1].startswith("diagnosis interrupted"), "an interrupt that was lost is none of the session"
    monkeypatch.setattr(interrupts, "_pending", False)
    (told,), asked = told_of(diagnosed)
    assert "judging further cases for 1 cause, up to 30 s each" in told
    assert asked
