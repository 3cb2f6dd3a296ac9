"""A fleet judges every case once, whoever dies over it, and its rows are those of an ordinary session."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holding import holding
from places import SUPPORT
from poolproof.backends.base import BackendUnavailable
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, finished_blocks, read_rows
from poolproof.reports.rows.verdicts import BadInput, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.fleet.node import Batch, FleetError, Judge, RunSettings
from poolproof.suites.fleet.ray_pool import resource_of
from poolproof.suites.fleet.session import MOST_DEATHS, Recording, Work, judge_all, judge_further, works_of
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.options import check_fleet
from poolproof.suites.plan.lines import SingleBlock
from poolproof.suites.plan.plans import PLANS, Plan
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.runner import Runner
from sessions import run_session


@dataclass(frozen=True)
class Asked:
    id: str

    aspect, block = SimpleNamespace(id="values"), "block"

    def describe(self) -> dict[str, str]:
        return {"case_id": self.id, "aspect": "values"}


def block(name: str, count: int) -> Any:
    """A block of so many cases."""
    cases = [Asked(f"{name}/{number}") for number in range(count)]
    return SimpleNamespace(id=name, cost=count, backend="made", questions=lambda: cases)


def name_of(asked: Any) -> str:
    return asked.question.id if isinstance(asked, SingleBlock) else asked.id


def made(*counts: int) -> list[Any]:
    return [block(f"b{number}", count) for number, count in enumerate(counts)]


def single(name: str) -> Any:
    return SingleBlock(Asked(name), "made")  # type: ignore[arg-type]


@dataclass
class Scripted:
    """Judges of which none survives some cases; blocks with names in ``raises`` end by an exception.

    The ``absent`` never start.
    """

    size: int
    deadly: Collection[str] = ()
    raises: Collection[str] = ()
    absent: Collection[int] = ()
    asked: list[str] = field(default_factory=list)
    pinged: dict[object, int] = field(default_factory=dict)
    open: dict[object, tuple[int, Batch | None]] = field(default_factory=dict)

    def ping(self, judge: int) -> object:
        reference = object()
        self.pinged[reference] = judge
        return reference

    def ask(self, judge: int, method: str, work: Any) -> object:
        assert method == "judge"
        assert judge not in self.absent
        assert judge not in [busy for busy, _ in self.open.values()]
        cases = [asked.id for asked in work.questions()]
        self.asked.append(name := name_of(work))
        found = Batch([{"case_id": case, "aspect": "values", "verdict": Verdict.CONFORMS} for case in cases])
        error = Batch(error="no space") if name in self.raises else found
        reference = object()
        self.open[reference] = judge, None if {*self.deadly} & {*cases} else error
        return reference

    def answers(self, references: list[object]) -> list[tuple[object, Batch | None]]:
        assert set(references) == {*self.open, *self.pinged}
        live = [reference for reference, judge in self.pinged.items() if judge not in self.absent]
        if live:
            del self.pinged[live[0]]
            return [(live[0], None)]
        reference, (_, batch) = self.open.popitem()
        return [(reference, batch)]


def judged(pool: Any, asked: list[Any], **options: Any) -> Any:
    """All that is recorded, in place of a writer of rows, and reported."""
    rows: list[Row] = []
    finished: list[str] = []
    reported: dict[str, tuple[int, str]] = {}

    def report(work: Work, judge: int) -> None:
        name = name_of(work.asked)
        assert judge >= 0 and work.seconds >= 0.0 and name not in reported
        reported[name] = work.result.rows, work.error

    writer: Any = SimpleNamespace(append=rows.append, finish_block=finished.append)
    judge_all([Work(Any, each) for each in asked], pool, Recording(Path(), writer), report, **options)
    verdicts = Counter((row["case_id"], row["verdict"]) for row in rows)
    return SimpleNamespace(rows=rows, finished=finished, reported=reported, verdicts=verdicts)


@pytest.mark.parametrize("judges", [1, 3, 8])
def test_every_case_is_judged_once(judges: int) -> None:
    blocks = made(3, 5, 1, 4)
    kept = judged(Scripted(judges), blocks)
    assert kept.verdicts == Counter((case.id, Verdict.CONFORMS) for each in blocks for case in each.questions())
    assert kept.reported == {"b0": (3, ""), "b1": (5, ""), "b2": (1, ""), "b3": (4, "")}
    assert sorted(kept.finished) == ["b0", "b1", "b2", "b3"]


def test_a_judge_that_finds_no_device_holds_up_nothing() -> None:
    kept = judged(Scripted(3, absent=[0, 2]), made(2, 1))
    assert kept.reported == {"b0": (2, ""), "b1": (1, "")}


@pytest.mark.parametrize("judges", [1, 3])
def test_a_case_that_no_judge_survives_costs_itself_alone(judges: int) -> None:
    pool = Scripted(judges, deadly=["b0/1"])
    kept = judged(pool, made(3, 2))
    conforming = ((case, Verdict.CONFORMS) for case in ("b0/0", "b0/2", "b1/0", "b1/1"))
    assert kept.verdicts == Counter([("b0/1", Verdict.NOT_RUN), *conforming])
    assert kept.reported == {"b0": (3, ""), "b1": (2, "")}
    assert Counter(pool.asked) == Counter(["b0"] * MOST_DEATHS + ["b0/0", *["b0/1"] * MOST_DEATHS, "b0/2", "b1"])


def test_cases_of_a_resumed_run_are_not_judged_again_when_judges_die() -> None:
    pool = Scripted(2, deadly=["b0/2"])
    judged(pool, made(3), judged={("b0", "b0/0"), ("b1", "b0/1")})
    assert Counter(pool.asked) == Counter(["b0"] * MOST_DEATHS + ["b0/1", *["b0/2"] * MOST_DEATHS])


def test_a_single_question_that_no_judge_survives_is_not_run() -> None:
    kept = judged(Scripted(2, ["case"]), [single("case")])
    (row,) = kept.rows
    assert (row["case_id"], row["backend"], row["verdict"]) == ("case", "made", Verdict.NOT_RUN)
    assert row["reason"] == "3 judges of the fleet died at it"
    assert (kept.reported, kept.finished) == ({"case": (1, "")}, [])


def test_what_a_judge_raised_is_told_and_its_block_is_left_to_a_resumed_run() -> None:
    kept = judged(Scripted(2, raises=["b0"]), made(1, 1))
    assert kept.reported == {"b0": (0, "no space"), "b1": (1, "")}
    assert kept.finished == ["b1"]


def test_a_session_that_is_over_ends_with_what_judges_are_at() -> None:
    pool = Scripted(2)
    kept = judged(pool, made(1, 1, 1, 1), is_over=lambda: len(pool.asked) >= 2)
    assert kept.reported.keys() == {"b0", "b1"}


def test_the_costly_come_first() -> None:
    few, many, some = block("few", 1), block("many", 9), block("some", 5)
    given: list[dict[str, object]] = [{"block": few}, {"block": many}, {"block": some}]
    given += [{"single": single("case")}, {"unsupported": None}]
    items: Any = [SimpleNamespace(callspec=SimpleNamespace(params=params)) for params in given]
    works = works_of([*items, SimpleNamespace()])
    assert [work.asked for work in works] == [many, some, few, single("case")]


def test_a_device_is_told_by_its_backend_and_backends_of_several_are_refused() -> None:
    asked = (["torch-cpu"], ["aclnn"], ["torch-npu"], ["torch-cuda", "torch-compile-cuda"])
    assert [resource_of(backends) for backends in asked] == ["CPU", "NPU", "NPU", "GPU"]
    with pytest.raises(FleetError, match="run on CPU and NPU: judge them in runs of their own"):
        resource_of(["aclnn", "torch-cpu"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ray": "auto", "dist": "load"}, "--ray auto takes the place of -n"),
        ({"ray": "auto", "budget": "10m"}, "--budget is for the processes of one machine: take a --shard"),
        ({"ray_workers": 0}, "--ray-workers 0: a fleet needs one at least"),
    ],
)
def test_what_does_not_go_with_a_fleet_is_named(given: dict[str, Any], said: str) -> None:
    config: Any = SimpleNamespace(getoption=lambda name, default=None: given.get(name, default))
    with pytest.raises(BadInput, match=said):
        check_fleet(config)


class Together:
    """Real judges in this process; the first dies after its first work, whose rows nobody gets."""

    def __init__(self, make: Callable[..., Runner], backend: str, deaths: int = 0) -> None:
        self.size = 2
        self.judges = [Judge("test", number) for number in range(self.size)]
        self.said = self.judges[0].survey([backend], RunSettings(make, {}, 0, {}).suite)[backend]
        self.settings = RunSettings(make, {backend: self.said.environment}, 8 << 30, {})
        self._deaths = deaths
        self._open: list[tuple[int, Any]] = []

    def ping(self, judge: int) -> tuple[int, Any]:
        return judge, None

    def ask(self, judge: int, *request: Any) -> tuple[int, Any]:
        self._open.append((judge, request))
        return self._open[-1]

    def answers(self, references: list[Any]) -> list[tuple[Any, Batch | None]]:
        if pings := [reference for reference in references if reference[1] is None]:
            return [(reference, None) for reference in pings]
        judge, request = self._open.pop(0)
        batch = self.judges[judge].run(self.settings, *request)
        self._deaths -= 1
        return [((judge, request), None if self._deaths >= 0 else batch)]

    def close(self) -> None:
        for judge in self.judges:
            assert judge.close() == Batch()


ASKED = ("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--aspect", "values", "--cases", "12")
CASE = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 4, 4), kernel_size=(2,), gradient="ones")
QUESTION = CaseQuestion(CASE, holding("interval"), "diagnosis-1")
MAKE = partial(Runner, waive=lambda row: row, timeout=60.0, shrinks=False, most_evidence=50)
BACKEND = "scatter_backends:lost"


@pytest.fixture
def judging_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_sandboxes: None) -> None:
    """Have judges of this process leave it as it was."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("POOLPROOF_WORKER", "0")
    monkeypatch.setenv("POOLPROOF_MEMORY_BUDGET", str(8 << 30))
    forkserver.ensure_running()  # its socket lies in a folder for temporary files, whose path has to be short
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))


@pytest.fixture
def pool(judging_here: None) -> Iterator[Any]:
    pool = Together(MAKE, BACKEND)
    yield pool
    pool.close()


@pytest.mark.usefixtures("judging_here")
@pytest.mark.parametrize("deaths", [0, 1])
def test_judges_return_what_a_session_records(tmp_path: Path, deaths: int) -> None:
    ended = run_session(tmp_path / "session", BACKEND, "--no-shrink", asked=ASKED)
    plan = Plan("smoke", 12, PLANS["smoke"].purpose)
    pool: Any = Together(MAKE, BACKEND, deaths)
    selection = Selection({BACKEND: pool.said}, plan, 0, ("values",), (ASKED[1],), ("float32",))
    writer = RowWriter(tmp_path / "fleet", "main")
    works = [Work(Any, block) for block in selection.blocks()]
    told: list[Work] = []
    judge_all(works, pool, Recording(tmp_path / "fleet", writer), lambda work, _: told.append(work))
    pool.close()
    writer.close()
    assert sorted(map(id, told)) == sorted(map(id, works))
    assert not any(work.error for work in works)
    assert outcomes(tmp_path / "fleet") == outcomes(ended.folder)
    assert finished_blocks(tmp_path / "fleet") == finished_blocks(ended.folder)
    failed = sum(row[1] == Verdict.VIOLATES for row in outcomes(ended.folder).elements())
    assert sum(len(work.result.failures) for work in works) == failed
    assert (tmp_path / "fleet" / "evidence" / "call.py").exists()
    kept, theirs = ({path.name for path in (f / "evidence").glob("*.npz")} for f in (tmp_path / "fleet", ended.folder))
    assert kept == theirs != set()
    assert list((tmp_path / "scratch").glob("poolproof-test-*")) == []


def test_a_fleet_judges_further_cases(pool: Any, tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "main")
    asked = [replace(QUESTION, case=replace(CASE, seed=seed)) for seed in range(2)]
    rows = [judge_further(pool, Recording(tmp_path, writer), question, BACKEND) for question in asked]
    writer.close()
    assert [row["verdict"] for row in rows] == [Verdict.VIOLATES] * 2
    kept = Counter(row["case_id"] for row in read_rows(tmp_path).to_pylist() if row["block"] == "diagnosis-1")
    assert kept == Counter(row["case_id"] for row in rows)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (Batch(error="Traceback\nRuntimeError: no device"), "RuntimeError: no device"),
        (None, "the judge that got it died"),
    ],
)
def test_what_a_judge_raises_ends_further_cases(tmp_path: Path, batch: Batch | None, said: str) -> None:
    pool: Any = SimpleNamespace(size=1, ping=lambda _: 1, ask=lambda *_: 1, answers=lambda references: [(1, batch)])
    recording = Recording(tmp_path, RowWriter(tmp_path, "main"))
    with pytest.raises(BackendUnavailable, match=f"^{said}$"):
        judge_further(pool, recording, QUESTION, "torch-cpu")


def test_a_machine_that_differs_is_named_in_a_sentence(pool: Together) -> None:
    other_suite = {"suite": pool.settings.suite | {"version": "0"}}
    other_library = {"environments": {BACKEND: pool.said.environment | {"numpy": "0"}}}
    for change, said in (
        (other_suite, r"^\S+ has another suite .*: suite version is '.*', here it is '0'$"),
        (other_library, f"another {BACKEND} than the first .*: judge"),
        ({"environments": {"scatter_backends:None": {}}}, r"^\S+ cannot judge: backend '.*:None' cannot be loaded: "),
    ):
        with pytest.raises(FleetError, match=said):
            pool.judges[1].run(replace(pool.settings, **change), "judge_one")


def test_judges_share_the_memory_of_their_machine(pool: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "n1")
    given = [replace(pool.settings, sharing={"n1": 4}), replace(pool.settings, sharing={"n1": 2}, memory=0)]
    monkeypatch.setattr("poolproof.suites.fleet.node.free_memory", lambda: 6 << 30)
    budgets = []
    for judge, settings in zip(pool.judges, given, strict=True):
        judge.run(settings, "judge_one", QUESTION, BACKEND)
        budgets.append(int(os.environ["POOLPROOF_MEMORY_BUDGET"]))
    assert budgets == [2 << 30, 3 << 30]


def test_a_judge_clears_what_a_killed_one_left_and_returns_what_its_end_adds(pool: Together, tmp_path: Path) -> None:
    left = tmp_path / "scratch" / "poolproof-test-0" / "evidence" / "old.npz"
    left.parent.mkdir(parents=True)
    left.touch()
    judge = pool.judges[0]
    judge.run(pool.settings, "judge_one", QUESTION, BACKEND)
    assert not left.exists()
    runner = judge._runner
    assert runner is not None
    runner._sandboxes[BACKEND].unplanned.append({"backend": BACKEND, "case_id": "late"})
    assert judge.close().rows == [{"backend": BACKEND, "case_id": "late"}]


def outcomes(folder: Path) -> Counter[tuple[str, ...]]:
    rows = [row for row in read_rows(folder).to_pylist() if row["block"]]
    columns = ("case_id", "verdict", "block", "output_digest", "reason", "checks_judged")
    return Counter(tuple(str(row[name]) for name in columns) for row in rows)


def test_a_fleet_whose_judges_are_all_gone_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poolproof.suites.fleet.session.START_TIMEOUT", 0.0)
    with pytest.raises(FleetError, match="no judge came back"):
        judged(SimpleNamespace(size=2, ping=lambda judge: judge, answers=lambda _: []), made(12))
