"""A fleet judges every case once, whoever dies over it, and its rows are those of an ordinary session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from places import SUPPORT
from poolproof.backends.base import BackendUnavailable
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, finished_blocks, read_rows
from poolproof.reports.rows.verdicts import BadInput, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.fleet.dispatch import (
    MOST_DEATHS,
    Dispatch,
    Event,
    JudgeDied,
    Pool,
    RowsArrived,
    WorkFinished,
    by_cost,
    silence_timeout,
)
from poolproof.suites.fleet.node import Batch, Judge, RunSettings, Work
from poolproof.suites.fleet.ray_pool import FleetError, resource_of
from poolproof.suites.fleet.scratch import scratch_folder
from poolproof.suites.fleet.session import FurtherJudge, Recording
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.question import Question
from poolproof.suites.options import check_fleet
from poolproof.suites.plan.aspects import EVERYTHING
from poolproof.suites.plan.plans import PLANS, Plan
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.runner import BlockResult
from sessions import run_session


@dataclass(frozen=True)
class Made:
    """A block of so many cases."""

    id: str
    count: int
    aspect: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="values", costly=False))
    subject: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(backend="made"))

    def questions(self) -> list[Question]:
        return [cast(Question, SimpleNamespace(id=f"{self.id}/{number}")) for number in range(self.count)]


def made(*counts: int) -> list[Work]:
    return [cast(Work, Made(f"b{number}", count)) for number, count in enumerate(counts)]


class Scripted:
    """Judges that hand over one row at a time; ``dies`` says how often somebody dies at a case."""

    def __init__(self, judges: int, dies: dict[str, int] | None = None, silent: Sequence[int] = ()) -> None:
        self.now = 0.0
        self.given: list[tuple[int, str]] = []
        self.replaced: list[int] = []
        self._judges = list(range(judges))
        self._dies = Counter(dies or {})
        self._silent = set(silent)
        self._todo: dict[int, deque[str]] = {}

    @property
    def judges(self) -> Sequence[int]:
        return self._judges

    def takes(self, judge: int, work: Work) -> bool:
        return judge == 0 or not work.aspect.costly

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        assert judge not in self._todo
        self.given.append((judge, work.id))
        self._todo[judge] = deque(asked.id for asked in work.questions() if asked.id not in judged)

    def wait(self, seconds: float) -> Iterable[Event]:
        self.now += seconds
        for judge in [judge for judge in self._todo if judge not in self._silent]:
            left = self._todo[judge]
            if not left:
                del self._todo[judge]
                return [WorkFinished(judge)]
            if self._dies[left[0]]:
                self._dies[left[0]] -= 1
                del self._todo[judge]
                return [JudgeDied(judge, "on n1 is gone")]
            return [RowsArrived(judge, Batch([{"case_id": left.popleft()}]))]
        return []

    def replace(self, judge: int) -> None:
        self.replaced.append(judge)
        self._silent.discard(judge)
        self._todo.pop(judge, None)


class Kept:
    """Everything that a sink is told."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.ended: list[tuple[str, int, str]] = []
        self.deaths: list[tuple[str, str | None, str]] = []
        self.given_up: list[str] = []

    def take(self, batch: Batch) -> None:
        self.cases.update(row["case_id"] for row in batch.rows)

    def end(self, work: Work, rows: Sequence[Row], error: str, judge: int, seconds: float) -> None:
        assert seconds >= 0.0
        assert judge >= 0
        self.ended.append((work.id, len(rows), error))

    def note_death(self, work: Work, case: Question | None, why: str) -> None:
        self.deaths.append((work.id, case and case.id, why))

    def give_up(self, work: Work, case: Question) -> Row:
        self.given_up.append(case.id)
        return {"case_id": case.id}


def dispatched(pool: Scripted, works: list[Work], silence_timeout: float = 1e6) -> Kept:
    kept = Kept()
    Dispatch(cast(Pool, pool), kept, silence_timeout, clock=lambda: pool.now).run(works)
    return kept


@pytest.mark.parametrize("judges", [1, 3, 8])
def test_every_case_is_judged_once(judges: int) -> None:
    works = made(3, 0, 5, 1, 4)
    kept = dispatched(Scripted(judges), works)
    assert kept.cases == Counter(asked.id for work in works for asked in work.questions())
    assert sorted(kept.ended) == [("b0", 3, ""), ("b1", 0, ""), ("b2", 5, ""), ("b3", 1, ""), ("b4", 4, "")]
    assert not kept.deaths


@pytest.mark.parametrize("judges", [1, 2])
def test_what_a_dead_judge_had_not_judged_is_judged_by_another(judges: int) -> None:
    works = made(4, 3)
    pool = Scripted(judges, {"b0/2": 2, "b1/0": 1})
    kept = dispatched(pool, works)
    assert kept.cases == Counter(asked.id for work in works for asked in work.questions())
    assert Counter(kept.deaths) == {
        ("b0", "b0/2", "on n1 is gone"): 2,
        ("b1", "b1/0", "on n1 is gone"): 1,
    }
    assert sorted(kept.ended) == [("b0", 4, ""), ("b1", 3, "")]
    assert len(pool.replaced) == 3


def test_a_case_that_nobody_survives_is_given_up() -> None:
    kept = dispatched(Scripted(2, {"b0/1": 99}), made(3, 2))
    assert kept.given_up == ["b0/1"]
    assert len(kept.deaths) == MOST_DEATHS
    assert kept.cases == Counter(["b0/0", "b0/2", "b1/0", "b1/1"])
    assert sorted(kept.ended) == [("b0", 3, ""), ("b1", 2, "")]


def test_a_judge_that_says_nothing_is_ended() -> None:
    pool = Scripted(2, silent=[1])
    kept = dispatched(pool, made(2, 2), silence_timeout=30.0)
    assert pool.replaced == [1]
    assert [why for _, _, why in kept.deaths] == ["said nothing for 30 s and was ended"]
    assert kept.cases == Counter(["b0/0", "b0/1", "b1/0", "b1/1"])


def test_patience_is_longer_than_a_case_may_take() -> None:
    assert silence_timeout(60.0) > 300.0 + 10 * 60.0


def test_large_cases_go_where_memory_is() -> None:
    costly = SimpleNamespace(id="huge", costly=True)
    works = [cast(Work, Made(f"h{number}", 2, costly)) for number in range(3)] + made(2, 2, 2)
    pool = Scripted(3)
    dispatched(pool, works)
    assert {judge for judge, name in pool.given if name.startswith("h")} == {0}


def test_what_a_judge_raised_is_told_and_the_rest_goes_on() -> None:
    class Raising(Scripted):
        def wait(self, seconds: float) -> Iterable[Event]:
            events = list(super().wait(seconds))
            return [
                WorkFinished(e.judge, "no space") if isinstance(e, WorkFinished) and not e.judge else e for e in events
            ]

    kept = dispatched(Raising(2), made(1, 1))
    assert Counter(error for _, _, error in kept.ended) == {"no space": 1, "": 1}


def test_the_costly_come_first() -> None:
    works = made(1, 1, 1)
    assert [work.id for work in by_cost(works, {"b0": 1.0, "b1": 9.0, "b2": 5.0})] == ["b1", "b2", "b0"]


@pytest.mark.parametrize(
    ("backends", "resource"),
    [(["torch-cpu"], "CPU"), (["aclnn"], "NPU"), (["torch-npu"], "NPU"), (["torch-cuda", "torch-compile-cuda"], "GPU")],
)
def test_a_device_is_told_by_its_backend(backends: list[str], resource: str) -> None:
    assert resource_of(backends) == resource


def test_backends_of_several_devices_are_refused() -> None:
    with pytest.raises(FleetError, match="run on CPU and NPU: judge them in runs of their own"):
        resource_of(["aclnn", "torch-cpu"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ray": "auto", "dist": "load"}, "--ray auto takes the place of -n"),
        ({"ray": "auto", "budget": "10m"}, "--budget is shared by the processes of one machine: take a --shard"),
        ({"ray": "auto", "minutes": 3.0}, "--minutes is shared by the processes of one machine: take a --shard"),
        ({"ray_workers": 0}, "--ray-workers 0: a fleet needs one at least"),
    ],
)
def test_what_does_not_go_with_a_fleet_is_named(given: dict[str, Any], said: str) -> None:
    config = SimpleNamespace(getoption=lambda name, default=None: given.get(name, default))
    with pytest.raises(BadInput, match=said):
        check_fleet(cast(pytest.Config, config))


class Together:
    """A real judge in this process, which dies after its first rows, and the one in its place."""

    def __init__(self, given: RunSettings, backend: str) -> None:
        self._given, self._backend = given, backend
        self._judges: dict[int, Judge] = {}
        self._at: dict[int, Any] = {}
        self.deaths = 1
        self._start(0)
        self.said = self._judges[0].survey(backend)

    def _start(self, number: int) -> None:
        self._judges[number] = Judge(number)
        node, environments = self._judges[number].join([self._backend], self._given)
        assert node.suite
        assert environments.keys() == {self._backend}

    @property
    def judges(self) -> Sequence[int]:
        return list(self._judges)

    def takes(self, judge: int, work: Work) -> bool:
        return bool(work) and judge in self._judges

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        self._at[judge] = self._judges[judge].judge(work, judged)

    def wait(self, seconds: float) -> Iterable[Event]:
        assert seconds
        for judge, batches in list(self._at.items()):
            batch = next(batches, None)
            if batch is None:
                del self._at[judge]
                yield WorkFinished(judge)
                continue
            yield RowsArrived(judge, batch)
            if self.deaths:
                self.deaths -= 1
                list(batches)  # what it judged besides, nobody gets
                del self._at[judge]
                yield JudgeDied(judge, "on this machine is gone")

    def replace(self, judge: int) -> None:
        self._judges[judge].close()
        self._start(judge)

    def close(self) -> None:
        for judge in self._judges.values():
            judge.close()


ASKED = ("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--aspect", "values", "--cases", "12")


def test_judges_hand_over_what_a_session_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("POOLPROOF_WORKER", "0")
    monkeypatch.setenv("POOLPROOF_MEMORY_BUDGET", str(8 << 30))
    backend = "scatter_backends:Lost"
    ended = run_session(tmp_path / "session", backend, "--no-shrink", asked=ASKED)
    plan = Plan("smoke", 12, PLANS["smoke"].purpose)
    pool = Together(RunSettings(lambda row: row, 60.0, False, 50, 8 << 30), backend)
    selection = Selection({backend: pool.said}, plan, 0, ("values",), (ASKED[1],), ("float32",))
    told: list[str] = []
    writer = RowWriter(tmp_path / "fleet", "main")
    tallies: list[BlockResult] = []

    def report(work: Work, result: BlockResult, error: str, judge: int, seconds: float) -> None:
        assert not error
        assert work.id.startswith(backend)
        assert judge == 0
        assert seconds >= 0.0
        tallies.append(result)

    recording = Recording(tmp_path / "fleet", writer, report, told.append)
    Dispatch(pool, recording, 600.0).run(cast(list[Work], selection.blocks()))
    pool.close()
    writer.close()
    assert outcomes(tmp_path / "fleet") == outcomes(ended.folder)
    assert finished_blocks(tmp_path / "fleet") == finished_blocks(ended.folder)
    assert sum(len(result.failures) for result in tallies) == sum(
        row[1] == Verdict.VIOLATES for row in outcomes(ended.folder)
    )
    assert len(told) == 1
    assert "on this machine is gone while it was at " in told[0]
    assert (tmp_path / "fleet" / "evidence" / "call.py").exists()
    assert list((tmp_path / "fleet" / "evidence").glob("*.npz"))


@pytest.mark.parametrize("deaths", [0, 1])
def test_a_fleet_judges_further_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("POOLPROOF_WORKER", "0")
    monkeypatch.setenv("POOLPROOF_MEMORY_BUDGET", str(8 << 30))
    backend = "scatter_backends:Lost"
    pool = Together(RunSettings(lambda row: row, 60.0, False, 50, 8 << 30), backend)
    pool.deaths = deaths
    told: list[str] = []
    writer = RowWriter(tmp_path, "main")
    fleet = FurtherJudge(cast(Pool, pool), tmp_path, writer, 60.0, told.append)
    case = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 2, 4, 4), kernel_size=(2,), gradient="ones")
    rows = [
        fleet.judge(CaseQuestion(replace(case, seed=seed), EVERYTHING, "diagnosis-1"), backend) for seed in range(2)
    ]
    pool.close()
    writer.close()
    assert [row["verdict"] for row in rows] == [Verdict.VIOLATES] * 2
    assert len(told) == deaths
    kept = Counter(row["case_id"] for row in read_rows(tmp_path).to_pylist() if row["block"] == "diagnosis-1")
    assert kept == Counter(row["case_id"] for row in rows)


def test_what_a_judge_raises_ends_further_cases(tmp_path: Path) -> None:
    pool = Raising()
    fleet = FurtherJudge(cast(Pool, pool), tmp_path, RowWriter(tmp_path, "main"), 60.0, print)
    case = Case.of(operator="MaxPool2dWithIndicesBackward", shape=(1, 2, 4, 4), kernel_size=(2,))
    with pytest.raises(BackendUnavailable, match=r"^RuntimeError: no device$"):
        fleet.judge(CaseQuestion(case, EVERYTHING, "diagnosis-1"), "torch-cpu")


class Raising(Scripted):
    """A judge whose device has gone."""

    def __init__(self) -> None:
        super().__init__(1)

    def give(self, judge: int, work: Work, judged: frozenset[str]) -> None:
        """Whatever it is."""

    def wait(self, seconds: float) -> Iterable[Event]:
        return [WorkFinished(0, "Traceback\nRuntimeError: no device\n")]


def test_the_folder_of_a_judge_that_was_killed_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = "from poolproof.suites.fleet.scratch import scratch_folder; print(scratch_folder(), flush=True); input()"
    surroundings = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=surroundings
    ) as other:
        assert other.stdout
        theirs = Path(other.stdout.readline().strip())
        assert theirs.parent == tmp_path
        grow_old(theirs)
        ours = scratch_folder()
        assert theirs.is_dir()
        other.kill()
    grow_old(ours)
    young = tmp_path / theirs.name.replace(theirs.name[-4:], "made")
    young.mkdir()
    again = scratch_folder()
    assert set(tmp_path.iterdir()) == {ours, young, again}


def test_where_there_are_no_locks_a_judge_has_a_folder_and_nobody_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fcntl.flock", refuse)
    ours = scratch_folder()
    grow_old(ours)
    assert {ours, scratch_folder()} == set(tmp_path.iterdir())


def grow_old(folder: Path) -> None:
    os.utime(folder, (0.0, 0.0))


def outcomes(folder: Path) -> Counter[tuple[str, ...]]:
    rows = [row for row in read_rows(folder).to_pylist() if row["block"]]
    columns = ("case_id", "verdict", "block", "output_digest", "reason")
    return Counter(tuple(str(row[name]) for name in columns) for row in rows)
