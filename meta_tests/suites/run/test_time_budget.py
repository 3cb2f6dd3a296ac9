"""A budget is spent to its end, all blocks get as much of it, nothing is asked twice, and all can be drawn again.

Minutes leave out no block and go beyond the plan.
"""

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from places import ROOT
from poolproof.backends.aclnn.sequences import ACTIONS
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS
from poolproof.reports.rows.merging import merge as join
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import read_rows, read_run
from poolproof.reports.rows.text import duration
from poolproof.reports.rows.verdicts import BadInput, Overall, Verdict
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.strategies import cases
from poolproof.suites.options import budget_of
from poolproof.suites.plan.aspects import ASPECTS, CASE_ASPECTS
from poolproof.suites.plan.blocks import Block, extend, root_of
from poolproof.suites.plan.plans import PLANS, Subject, blocks
from poolproof.suites.plan.selection import mandatory, redraw_questions
from poolproof.suites.run import time_budget
from poolproof.suites.run.runner import Runner
from poolproof.suites.run.time_budget import Allotment, Budget, Portion, cheapest_first, parse_time
from scatter_backends import stores
from sessions import run_session
from shared_runs import verified


@dataclass(frozen=True)
class Made:
    """A block that only has cases, and the seconds that each takes; one that is ``endless`` goes on where it ends."""

    id: str
    count: int
    seconds: float
    endless: bool = False
    index: int = 0

    min_cases = min_batch = 1
    aspect = SimpleNamespace(id="values")

    def extension(self) -> Self | None:
        root, index = root_of(self.id), self.index + 1
        return replace(self, id=f"{root}+{index}", index=index) if self.endless else None


class SimulatedProcesses:
    """Processes that take turns: each has a time of its own, and whose is least goes on."""

    def __init__(self, folder: Path, made: list[Any], seconds: float, workers: int, extends_plan: bool = False):
        self.times = [0.0] * workers
        self.now = 0.0
        self.portions: list[Portion] = []
        self.allotments = [
            Allotment(folder, made, Budget(seconds, 0.0, extends_plan), workers, lambda: self.now) for _ in self.times
        ]
        for number, block in enumerate(made):
            for portion in self.allotments[number % workers].first_portions(block):
                self._judge(number % workers, portion)

    def spend(self) -> None:
        idle: set[int] = set()
        while len(idle) < len(self.times):
            worker = min(set(range(len(self.times))) - idle, key=self.times.__getitem__)
            self.now = self.times[worker]
            portion = self.allotments[worker].next_portion()
            if portion is None:
                idle.add(worker)
            else:
                self._judge(worker, portion)

    def _judge(self, worker: int, portion: Portion) -> None:
        cases, block = portion.stop - portion.start, portion.block
        seconds = cases * block.seconds  # type: ignore[attr-defined]
        self.times[worker] += seconds
        self.now = self.times[worker]
        self.allotments[worker].record_time(portion, cases, seconds)
        self.portions.append(portion)

    def taken(self) -> Counter[str]:
        """How many cases of each block were judged; none twice, and none left out before another."""
        judged = Counter((p.block.id, number) for p in self.portions for number in range(p.start, p.stop))
        assert set(judged.values()) == {1}
        counts = Counter(name for name, _ in judged)
        assert counts == {name: max(number + 1 for block, number in judged if block == name) for name in counts}
        return counts


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1.5 h", 5400.0), (" 1s ", 1.0)])
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_a_thousand_calls_are_asked_after_a_case_of_others() -> None:
    ids = ("endurance", "scale", "values")
    first = cheapest_first([type(name, (Made,), {"aspect": SimpleNamespace(id=name)})(name, 9, 1.0) for name in ids])
    assert [block.id for block in first] == ["values", "scale", "endurance"]


def test_what_is_no_time_is_named() -> None:
    for text in ("", "10", "m", "0m", "0.5s", "-1m", "1e3s", "10 minutes", "200h", "9" * 400 + "h"):
        with pytest.raises(BadInput, match="a budget is a number and a unit"):
            parse_time(text)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"budget": "10m", "case": ["a"], "case_list": []}, "not on the cases of --case$"),
        ({"budget": "10m", "case": [], "case_list": ["a"]}, "not on the cases of --case-list$"),
        ({"budget": "3m+", "case": ["a"]}, r"^--budget 3m\+: a time is spent on a plan, not on the cases of --case$"),
    ],
)
def test_what_does_not_go_together_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        budget_of(SimpleNamespace(getoption=given.get), 0.0)  # type: ignore[arg-type]


def test_durations_are_told_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 12.4, 600.0, 90.0)] == ["0 s", "12 s", "10 min", "1 min 30 s"]


UNEVEN: list[Any] = [Made(f"{number}", 40 + 40 * (number % 5), 0.05 * (1 + number % 7)) for number in range(60)]
"""60 blocks of 40 to 200 cases that take 0.05 s to 0.35 s: 1,400 s for all."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seconds", [100.0, 300.0])
def test_a_budget_is_spent_to_its_end_and_all_blocks_get_as_much(tmp_path: Path, seconds: float, workers: int) -> None:
    clock = SimulatedProcesses(tmp_path, UNEVEN, seconds, workers)
    clock.spend()
    assert all(0.9 * budget <= time <= budget for time in clock.times for budget in [Budget(seconds, 0.0).until])
    taken = clock.taken()
    had = [taken[block.id] * block.seconds for block in UNEVEN if taken[block.id] < block.count]
    assert max(had) - min(had) < 0.1 * seconds * workers / len(UNEVEN) + 0.7


def test_a_plan_that_fits_is_asked_whole(tmp_path: Path) -> None:
    clock = SimulatedProcesses(tmp_path, UNEVEN, 2000.0, 1)
    clock.spend()
    assert clock.taken() == {block.id: block.count for block in UNEVEN}
    assert time_budget.partial_counts(tmp_path, UNEVEN) == {}


def test_what_has_no_first_cases_when_time_is_up_is_missing(tmp_path: Path) -> None:
    """A few cases of each block in the first half of a budget, one in the second, then none."""
    slow = [Made(f"{number}", 80, 3.0) for number in range(10)]
    clock = SimulatedProcesses(tmp_path, slow, 40.0, 1)
    clock.spend()
    assert [clock.taken()[block.id] for block in slow] == [4, 4, *[1] * 4, *[0] * 4]
    assert clock.times == [36.0]
    parts = time_budget.partial_counts(tmp_path, slow)
    assert [parts[block.id][0] for block in slow] == [4, 4, *[1] * 8]


def test_what_no_longer_fits_is_not_begun(tmp_path: Path) -> None:
    clock = SimulatedProcesses(tmp_path, [Made("quick", 10_000, 0.01), Made("slow", 100, 15.0)], 140.0, 1)
    clock.spend()
    assert 117.0 <= clock.times[0] <= 126.1
    assert clock.taken()["slow"] == 4


def test_what_was_taken_is_owed_and_begun_with(tmp_path: Path) -> None:
    """By whoever goes on after a death: portions whose cases nobody judged, and lines that were cut short."""
    made: list[Any] = [Made("a", 100, 0.1), Made("b", 100, 0.1)]
    Allotment(tmp_path, made, Budget(3e9, 0.0), 1).first_portions(made[0])
    with (tmp_path / time_budget.FILE).open("a") as journal:
        journal.write('{"block": "a", "taken": 40}\n{"block": "a", "tak')
    assert time_budget.partial_counts(tmp_path, made) == {"a": (40, 100), "b": (1, 100)}
    again = Allotment(tmp_path, made, Budget(3e9, 0.0), 1)
    assert again.first_portions(made[0]) == [Portion(made[0], 0, 40)]
    assert again.first_portions(made[1]) == [Portion(made[1], 0, 4)]
    lines = (tmp_path / time_budget.FILE).read_text().splitlines()
    assert [json.loads(line) for line in lines[-2:]] == [{"block": "a", "taken": 40}, {"block": "b", "taken": 4}]


def test_blocks_that_were_begun_without_a_budget_are_asked_whole(tmp_path: Path) -> None:
    made: list[Any] = [Made("a", 100, 0.1), Made("b", 100, 0.1)]
    time_budget.take_whole(tmp_path, made[:1])
    assert time_budget.partial_counts(tmp_path, made) == {"b": (1, 100)}
    time_budget.remove_journal(tmp_path)
    assert time_budget.partial_counts(tmp_path, made) == {"a": (1, 100), "b": (1, 100)}


@pytest.mark.parametrize("seconds", [60.0, 600.0, 28_800.0])
def test_turns_outlast_a_time_and_tell_of_it_often(seconds: float) -> None:
    budget = Budget(seconds, 0.0)
    assert seconds < budget.slices * budget.slice_seconds <= 1.3 * seconds
    assert budget.slice_seconds <= 120.0


def test_what_workers_ask_beyond_a_plan_is_counted(tmp_path: Path) -> None:
    made: list[Any] = [Made(f"{name}", 40, 0.05, endless=name > 2) for name in range(1, 5)]
    clock = SimulatedProcesses(tmp_path, made, 60.0, 3, extends_plan=True)
    clock.spend()
    beyond = time_budget.extension_counts(tmp_path, made)
    assert set(beyond) == {"3", "4"}
    assert clock.taken().total() == 4 * 40 + sum(beyond.values())
    assert beyond["3"] > 3 * 40


def test_a_plan_that_is_spent_goes_on_where_it_can(tmp_path: Path) -> None:
    made = [Made("1", 20, 0.05), Made("2", 20, 0.05, endless=True)]
    clock = SimulatedProcesses(tmp_path, made, 50.0, 1, extends_plan=True)
    clock.spend()
    assert 40.5 <= clock.times[0] <= 45.0
    assert clock.taken()["1"] == 20
    again = SimulatedProcesses(tmp_path, made, 0.1, 1, extends_plan=True)
    assert sum(p.stop - p.start for p in again.portions) == clock.taken().total()


def test_a_session_begins_with_its_process() -> None:
    script = "import time; time.sleep(0.5); from poolproof.suites.run.time_budget import *; print(starting_seconds())"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert 0.45 <= float(ended.stdout) <= time.monotonic() - began


@pytest.mark.parametrize(("until", "smaller", "repetitions"), [(inf, True, 3), (0.0, False, 1)])
def test_nothing_is_made_smaller_when_time_is_up(tmp_path: Path, until: float, smaller: bool, repetitions: int) -> None:
    rows: list[Row] = []
    subject = Subject("scatter_backends:lost", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64")
    with closing(Runner(tmp_path, "main", lambda row: row, rows.append, 20.0, shrinks=True, until=until)) as runner:
        runner.judge(next(iter(CASE_ASPECTS["values"].blocks(subject, replace(PLANS["smoke"], cases=1), 0))))
    (row,) = rows
    assert (row["verdict"], "shrunk" in row, row["asked_again"]) == (Verdict.VIOLATES, smaller, repetitions)


def planned() -> list[Block]:
    """A block of each kind and aspect."""
    operator = OPERATORS["MaxPool3dWithArgmaxBackward"]
    subject = Subject("npu", operator, "float32", "int32", tags=("nhwc",), product=PRODUCTS["A2"])
    whole = replace(subject, actions=ACTIONS)
    small = replace(PLANS["smoke"], cases=12)
    return list(blocks([whole], ASPECTS.values(), small, 0))


@pytest.mark.parametrize("block", planned(), ids=lambda block: block.id.partition("-")[2])
def test_a_part_of_a_block_is_part_of_a_larger_one(block: Block) -> None:
    """And owes what its questions are; the least has one of all that the whole owes."""
    least = [question.id for question in block.prefix(block.min_cases)]
    assert block.groups(block.min_cases).keys() == block.groups().keys()
    for more in (min(block.min_cases + 5, block.count), block.count):
        larger = block.prefix(more)
        assert [question.id for question in larger[: block.min_cases]] == least
        assert {question.id for question in larger} <= {question.id for question in block.questions()}
        assert sum(block.groups(more).values()) == more == len(larger)
        described = [question.describe() for question in larger]
        for group, count in block.groups(more).items():
            assert sum(all(row.get(name, "npu") == value for name, value in group) for row in described) == count


def test_the_first_case_of_a_block_is_none_that_shows_nothing() -> None:
    subject = Subject("stores", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64", index_dtypes=("int64",))
    for name in ("values", "precision", "special_values"):
        (block,) = CASE_ASPECTS[name].blocks(subject, PLANS["smoke"], 0)
        assert block.prefix(1)[0].judge(stores())["verdict"] == Verdict.VIOLATES
        drawn = generate(cases(subject.operator, "float32", "int64", block.aspect.profile), block.count, block.seed)
        assert Counter(asked.case for asked in block.questions()) == Counter(drawn)


VALUES = ["--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float32", "--no-shrink", "--aspect", "values"]
ASKED = [*VALUES, "--cases", "700", "-k", "values-1"]
SLOW = "dying_backends:slow"


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose budget was too small for its plan, on any machine: of its 200 cases each takes 40 ms and more."""
    folder = tmp_path_factory.mktemp("spent") / "run"
    ended = run_session(folder, SLOW, "--budget", "2s", asked=ASKED)
    assert ended.status == Overall.CONFORMS, ended.output
    return folder


def test_a_run_says_what_its_budget_left_of_the_plan(spent: Path) -> None:
    ((name, (part, count)),) = read_run(spent)["budget"]["asked"].items()
    assert name.endswith("values-1")
    assert 1 <= part < count == 200
    rows = read_rows(spent, ["case_id", "block"]).filter(read_rows(spent, ["block"])["block"].is_valid())
    assert rows.num_rows == len(set(rows["case_id"].to_pylist())) == part
    page = (spent / "index.html").read_text(encoding="utf-8")
    assert "s of a budget of 2 s: at least 1 case and " in page
    assert f"narrowed: {part} of " in page


def test_what_was_asked_is_drawn_again(spent: Path, tmp_path: Path) -> None:
    assert "s of a budget of 2 s" in verified(spent, tmp_path).verdict


def test_a_resumed_run_has_time_for_more(spent: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(spent, tmp_path / "run"))
    options = ["--budget", "8s", "--resume"]  # on a busy machine to begin takes some of them
    ended = run_session(folder, SLOW, *options, asked=ASKED)
    assert ended.status == Overall.CONFORMS, ended.output
    before, after = read_run(spent)["budget"], read_run(folder)["budget"]
    assert (before["seconds"], after["seconds"]) == (2.0, 10.0)
    assert after["took"] > before["took"]
    ((name, (part, count)),) = after["asked"].items()
    assert before["asked"][name][0] < part <= count
    rows = read_rows(folder, ["case_id", "block"]).to_pylist()
    judged = [row["case_id"] for row in rows if row["block"]]
    assert len(judged) == len(set(judged)) == part


def test_a_clock_that_is_set_back_changes_no_budget(tmp_path: Path) -> None:
    given, way = ("--budget", "1s", "-p", "disturbing"), {"DISTURBANCE": "clock"}
    ended = run_session(tmp_path / "run", BACKEND, *given, asked=SMALL, variables=way, fresh=True)
    assert ended.status == Overall.CONFORMS, ended.output
    assert 0.0 < read_run(tmp_path / "run")["budget"]["took"] < 600.0


@pytest.mark.parametrize(
    ("part", "complaint"),
    [([0, 200], "a budget left 0 of 200"), ([7, 199], "at least 1 of 200 are expected"), ([200, 200], "200 of 200")],
)
def test_a_part_that_cannot_be_is_named(spent: Path, part: list[int], complaint: str) -> None:
    run = read_run(spent)
    (name,) = run["budget"]["asked"]
    run["budget"]["asked"] = {name: part}
    with pytest.raises(BadInput, match=complaint):
        list(redraw_questions(run))
    run["budget"]["asked"] = {"another": [1, 2]}
    with pytest.raises(BadInput, match="'another', which is no block of the plan"):
        list(redraw_questions(run))


SMALL = [*VALUES, "--aspect", "targets", "--cases", "3"]
BACKEND = "scatter_backends:honest"


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first session died when it had taken 207 cases beyond the plan, which the next one judged."""
    folder = tmp_path_factory.mktemp("minutes") / "run"
    ended = run_session(folder, BACKEND, "--budget", "1.2s+", asked=SMALL)
    assert ended.status == Overall.CONFORMS, ended.output
    name = f"{BACKEND}-MaxPool2dWithIndicesBackward-float32-int64-values-0"
    taken = {name: 3, f"{name}+1": 200, f"{name}+2": 7}
    with (folder / time_budget.FILE).open("a") as journal:
        journal.writelines(json.dumps({"block": block, "taken": count}) + "\n" for block, count in taken.items())
    ended = run_session(folder, BACKEND, "--resume", "--budget", "1.2s+", asked=SMALL)
    assert ended.status == Overall.CONFORMS, ended.output
    return folder


def test_a_run_says_what_it_asked_beyond_its_plan(extended: Path) -> None:
    ((name, cases),) = read_run(extended)["budget"]["beyond"].items()
    assert name.endswith("-values-0")
    assert cases >= 207
    rows = [row for row in read_rows(extended, ["block", "case_id"]).to_pylist() if row["block"]]
    assert sum(row["block"].startswith(f"{name}+") for row in rows) == cases
    assert sum(group["planned"] for group in read_run(extended)["mandatory"]) == len(rows)
    assert len({(row["block"], row["case_id"]) for row in rows}) == len(rows)
    assert len({row["case_id"] for row in rows}) > 0.9 * len(rows)
    page = (extended / "index.html").read_text(encoding="utf-8")
    assert f"and {cases:,} cases beyond it, in " in page
    assert " s of a budget of 2 s: at least 1 case and " in page


def test_what_was_asked_beyond_a_plan_is_drawn_again_and_can_be_merged(extended: Path, tmp_path: Path) -> None:
    verified(extended, tmp_path)
    join([extended, Path(shutil.copytree(extended, tmp_path / "again"))], tmp_path / "run", mandatory)
    was, merged = read_run(extended), read_run(tmp_path / "run")
    assert merged["mandatory"] == was["mandatory"]
    assert merged["budget"]["beyond"] == was["budget"]["beyond"]


def test_only_minutes_go_on_with_it(extended: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(extended, tmp_path / "run"))
    for options in ((), ("--budget", "2s")):
        ended = run_session(folder, BACKEND, "--resume", *options, asked=SMALL)
        assert ended.status == Overall.COULD_NOT_RUN
        assert "went beyond its plan: go on with it by such a budget, as 10m+" in " ".join(ended.output.split())
    assert read_run(folder)["budget"]["beyond"] == read_run(extended)["budget"]["beyond"]


def test_what_cannot_have_gone_on_is_named(extended: Path) -> None:
    run = read_run(extended)
    (name,) = read_run(extended)["budget"]["beyond"]
    for beyond in ({"another": 3}, {name: 10**9}, {name.replace("-values-0", "-examples-0"): 3}):
        wrong = run | {"budget": run["budget"] | {"beyond": beyond}}
        with pytest.raises(BadInput, match=r"a time was spent on .* cases beyond .*, which does not go on"):
            list(redraw_questions(wrong))


def test_cases_beyond_a_block_depend_on_it_alone() -> None:
    subject = Subject("npu", OPERATORS["MaxPool2dWithIndicesBackward"], "float32", "int64")
    block = next(iter(CASE_ASPECTS["values"].blocks(subject, PLANS["smoke"], 0)))
    first, second = extend(block, 250)
    assert (first.count, second.count) == (200, 50)
    assert [more.id for more in (first, second)] == [f"{block.id}+1", f"{block.id}+2"]
    (longer,) = extend(block, 120)
    assert [asked.id for asked in longer.questions()] == [asked.id for asked in first.prefix(120)]
    assert len({asked.id for asked in first.questions()} & {asked.id for asked in second.questions()}) < 3
