"""An implementation that dies, hangs or changes its process costs one case; all else is judged, and not blamed."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holding import holding
from misdeed_backends import LEAVE_SOMETHING
from poolproof.backends.base import BackendUnavailable, Call, Outcome
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.isolation import supervision
from poolproof.suites.isolation import worker as worker_module
from poolproof.suites.isolation.remote import RemoteBackend
from poolproof.suites.isolation.supervision import Message
from poolproof.suites.isolation.survey import surveyed, surveys
from poolproof.suites.isolation.worker import WorkerState
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import CHECKS, USUAL
from poolproof.suites.judging.question import Aspect
from poolproof.suites.run import sandbox as sandbox_module
from poolproof.suites.run.sandbox import Sandbox

ASPECT = holding("interval", "unreached")
CASE = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 5, 5), kernel_size=(2,))
QUESTIONS = [
    CaseQuestion(
        replace(CASE, seed=seed, attributes=replace(CASE.attributes, ceil_mode=seed in (2, 3, 7))), ASPECT, "block"
    )
    for seed in range(9)
]
KILLING = [asked for asked in QUESTIONS if asked.case.attributes.rounds_up]


def opened(backend: str, scratch: Path, timeout: float = 20.0) -> closing[Sandbox]:
    return closing(Sandbox(backend, scratch, "sandbox", timeout))


def judged(backend: str, scratch: Path, timeout: float = 20.0, aspect: Aspect = ASPECT) -> list[Row]:
    with opened(backend, scratch, timeout) as sandbox:
        return [*sandbox.judge([replace(asked, aspect=aspect) for asked in QUESTIONS]), *sandbox.unplanned]


def lost_alone(rows: list[Row], verdict: Verdict) -> list[Row]:
    """The rows of what rounds up, which alone has that verdict; all others conform."""
    assert [row["case_id"] for row in rows] == [question.case.id for question in QUESTIONS]
    assert [row["verdict"] for row in rows] == [verdict if each in KILLING else Verdict.CONFORMS for each in QUESTIONS]
    return [row for row, asked in zip(rows, QUESTIONS, strict=True) if asked in KILLING]


@pytest.mark.parametrize(
    ("backend", "verdict", "words"),
    [
        ("exiting", Verdict.CRASHED, "exit status 7"),
        ("unforkable", Verdict.CRASHED, "signal SIGSEGV"),
        ("hanging", Verdict.TIMED_OUT, "no answer within 1 s"),
        ("in an interpreter of its own: crashing", Verdict.CRASHED, "signal SIGSEGV"),
        ("raising", Verdict.ADAPTER_ERROR, "the adapter raised ValueError: no stream (dying_backends.py, line "),
        ("loses_context", Verdict.VIOLATES, "AI Core exception"),
        ("LosesContextUnproved", Verdict.NOT_RUN, "AI Core exception"),
    ],
)
def test_only_the_cases_that_kill_are_lost(
    tmp_path: Path, request: pytest.FixtureRequest, backend: str, verdict: Verdict, words: str
) -> None:
    *fresh, name = backend.split(": ")
    if not fresh:
        request.getfixturevalue("forked_sandboxes")
    rows = judged(f"dying_backends:{name}", tmp_path, 1.0 if name == "hanging" else 20.0)
    for row, asked in zip(lost_alone(rows, verdict), KILLING, strict=True):
        assert words in row["reason"]
        assert ("Traceback (most recent call last)" in row["findings"]) is (verdict is Verdict.ADAPTER_ERROR)
        assert (row["checks_violated"] == []) is (verdict in (Verdict.ADAPTER_ERROR, Verdict.NOT_RUN))
        assert row["judged_at"] > 1.7e9
        assert Case.from_json(row["case"]) == asked.case


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("timeout", [1.5, 20.0])
def test_who_hangs_takes_a_share_of_a_budget_and_is_accused_of_whole_time_outs(tmp_path: Path, timeout: float) -> None:
    until = time.monotonic() + 6.0
    with closing(Sandbox("dying_backends:hanging", tmp_path, "sandbox", timeout, until)) as sandbox:
        rows = list(sandbox.judge(QUESTIONS[:4]))
        assert time.monotonic() < until
        sandbox._until = time.monotonic()
        for row in sandbox.judge([QUESTIONS[4], KILLING[0], QUESTIONS[5]]):
            rows.append(row)
            assert sandbox.judge_alone(QUESTIONS[6])["verdict"] == Verdict.CONFORMS, "what a call may be due to"
    first = Verdict.TIMED_OUT if timeout == 1.5 else Verdict.NOT_RUN
    verdicts = [Verdict.CONFORMS] * 2 + [first, Verdict.NOT_RUN, Verdict.CONFORMS] + [Verdict.NOT_RUN] * 2
    assert [row["verdict"] for row in rows] == verdicts
    assert rows[3]["reason"] == "cut off: its share of the budget was used up"
    assert rows[6]["reason"].startswith("the budget was used up by an earlier case")


def test_the_first_case_of_a_process_has_ten_times_as_long_as_others_took(tmp_path: Path) -> None:
    beyond = CaseQuestion(replace(CASE, shape=(1, 1 << 20, 1 << 12, 1 << 12)), holding("written"), "block")
    with opened("dying_backends:unforkable_hanging", tmp_path, timeout=1.0) as sandbox:
        assert sandbox.judge_alone(beyond)["verdict"] == Verdict.NOT_RUN
        assert sandbox._warm_up_seconds == 20.0, "it called nothing"
        assert sandbox.judge_alone(QUESTIONS[0])["verdict"] == Verdict.CONFORMS
        begun = time.monotonic()
        assert sandbox.judge_alone(KILLING[0])["verdict"] == Verdict.TIMED_OUT
    assert 3.0 <= time.monotonic() - begun < 20.0


ONE_REQUEST = ("interval", "repeat", "index_dtype_invariance", "scale_equivariance")


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("backend", "checks", "repeats", "violated"),
    [
        ("slow", ONE_REQUEST, 1, []),
        ("slow_and_losing", ONE_REQUEST, 1, ["interval"]),
        ("slow", ("interval", "repeat"), 4, []),
        ("slow", ("interval", "modes"), 1, []),
        ("slow", ("interval", "memory_kept"), 20, []),
    ],
)
def test_many_calls_may_take_longer_than_one(
    tmp_path: Path, backend: str, checks: Sequence[str], repeats: int, violated: list[str]
) -> None:
    """A slow implementation is no hung one: the limit is that of a call."""
    began = time.monotonic()
    with opened(f"dying_backends:{backend}", tmp_path, timeout=1.0) as sandbox:
        (row,) = sandbox.judge([CaseQuestion(CASE, holding(*checks), "block", repeats)])
    assert row["checks_violated"] == violated, row["reason"]
    assert row["verdict"] == (Verdict.VIOLATES if violated else Verdict.CONFORMS)
    assert set(checks) < set(row["checks_judged"])
    assert time.monotonic() - began > 1.0


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_hung_call_behind_others_is_found_within_the_limit_of_one(tmp_path: Path) -> None:
    with opened("dying_backends:slow_and_hanging", tmp_path, timeout=1.0) as sandbox:
        began = time.monotonic()
        (row,) = sandbox.judge([CaseQuestion(CASE, holding(*ONE_REQUEST), "block")])
        assert time.monotonic() - began < 3.5, "four calls may take 4 s"
    assert row["verdict"] == Verdict.TIMED_OUT
    assert row["reason"] == "the call gave no answer within 1 s"
    assert json.loads(row["findings"])[0]["got"] == "0 of 50 elements of grad_input"


def test_what_is_judged_lies_where_no_implementation_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("scatter_backends:honest", tmp_path) as sandbox:
        remote = sandbox.worker.backend_within(20.0)
        assert isinstance(remote, RemoteBackend)
        read = remote.read_outcomes

        def overwrite_and_read(calls: Sequence[Call], done: Message) -> list[Outcome]:
            remote.staging[:] = 0x5A
            return read(calls, done)

        monkeypatch.setattr(remote, "read_outcomes", overwrite_and_read)
        assert QUESTIONS[0].judge(remote)["verdict"] == Verdict.CONFORMS


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("counted", "written"),
    [(None, "0 of 50 elements of grad_input"), (1, "50 of 50 elements of grad_input"), (255, "0 of 50"), (0, "")],
)
def test_a_crash_is_of_the_call_that_was_begun_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: int | None, written: str
) -> None:
    """Several are one request. The host counts them, in memory where a library may write any number."""
    with opened("dying_backends:crashing_in_repetition", tmp_path) as sandbox:
        remote = sandbox.worker.backend_within(20.0)
        assert isinstance(remote, RemoteBackend)
        ask = remote._ask_host

        def ask_and_count(request: Message, *limit: Any) -> Message:
            try:
                return ask(request, *limit)
            finally:
                remote.staging[0] = remote.staging[0] if counted is None else counted

        monkeypatch.setattr(remote, "_ask_host", ask_and_count)
        (row,) = sandbox.judge([CaseQuestion(QUESTIONS[0].case, holding("interval", "repeat"), "block")])
    assert row["verdict"] == Verdict.CRASHED
    (finding,) = json.loads(row["findings"])
    assert finding.get("got", "").startswith(written)
    assert bool(finding.get("got")) == bool(written)


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_death_between_calls_is_a_row_about_the_call_before(tmp_path: Path) -> None:
    before, after = QUESTIONS[2], QUESTIONS[4]
    with opened("dying_backends:dying_later", tmp_path) as sandbox:
        rows = list(sandbox.judge([before]))
        select.select([sandbox.worker._host._channel], [], [], 20.0)  # its end is readable once the process is dead
        rows += sandbox.judge([after])
    assert [row["case_id"] for row in rows] == [before.id, after.id]
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS}
    (late,) = sandbox.unplanned
    assert late["reason"] == f"died between calls, after case {before.id}: the process ended by signal SIGALRM"
    assert (late["verdict"], late["checks_violated"]) == (Verdict.CRASHED, ["survival"])
    assert (late["case_id"], late["block"]) == (before.id, "")


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("backend", ["killed_once", "unforkable_killed_once", "killed_once_and_losing"])
def test_what_is_killed_once_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """The reason of what is wrong then is what was found: a bundle where it is another would not stand."""
    monkeypatch.setenv("KILLED_ONCE", str(tmp_path / "killed"))
    rows = judged(f"dying_backends:{backend}", tmp_path)
    assert (tmp_path / "killed").exists()
    if backend == "killed_once_and_losing":
        wrong = lost_alone(rows, Verdict.VIOLATES)
        assert [row["reason"] for row in wrong] == [json.loads(row["findings"])[0]["message"] for row in wrong]
    else:
        assert [row["verdict"] for row in rows] == [Verdict.CONFORMS] * len(QUESTIONS)
        again = ["the first process was killed from outside" in row["reason"] for row in rows]
        assert [number for number, told in enumerate(again) if told] == [2]


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("kills", "verdict", "words"),
    [
        (count(), Verdict.NOT_RUN, "killed from outside (SIGKILL) twice"),
        (repeat(7), Verdict.CRASHED, "ended by signal SIGKILL"),
    ],
    ids=["the system runs out of memory", "it does not"],
)
def test_what_is_killed_twice_is_a_crash_unless_the_system_runs_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: Iterator[int], verdict: Verdict, words: str
) -> None:
    monkeypatch.setattr(sandbox_module, "_oom_kills", lambda: next(kills))
    for row in lost_alone(judged("dying_backends:killed_every_time", tmp_path), verdict):
        assert words in row["reason"]
        assert row["checks_violated"] == ([] if verdict is Verdict.NOT_RUN else ["survival"])


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("backend", "verdict"),
    [
        ("dying_backends:crashing_on_one_cell", Verdict.CONFORMS),
        ("dying_backends:loses_context_late", Verdict.CONFORMS),
        ("scatter_backends:lost", Verdict.VIOLATES),
    ],
)
def test_no_first_death_lost_context_or_broken_claim_costs_a_row(
    tmp_path: Path, backend: str, verdict: Verdict
) -> None:
    assert [row["verdict"] for row in judged(backend, tmp_path)] == [verdict] * len(QUESTIONS)


@pytest.mark.parametrize(
    ("backend", "violated", "stays"),
    [
        ("other_strides", ["results"], True),
        ("other_strides_and_past", ["results", "memory_untouched"], False),
        ("other_strides in gaps", ["results", "memory_untouched"], True),
        ("other_strides_and_past in gaps", ["results", "memory_untouched"], False),
        ("misrouted", ["interval", "unreached"], True),
        ("lost", ["interval", "plane_sum"], False),
    ],
)
@pytest.mark.usefixtures("forked_sandboxes")
def test_a_worker_stays_unless_it_wrote_astray(tmp_path: Path, backend: str, violated: list[str], stays: bool) -> None:
    names = "results", "written", "interval", "unreached", "plane_sum", "inputs_untouched", "memory_untouched"
    name, _, in_gaps = backend.partition(" ")
    case = replace(QUESTIONS[0].case, layouts=(("grad_input", "sliced"),) if in_gaps else ())
    asked = [replace(QUESTIONS[0], case=case, aspect=holding(*names))] * 3
    with opened(f"scatter_backends:{name}", tmp_path) as sandbox:
        worker = sandbox.worker
        answered = [(row["checks_violated"], worker.state, worker._host.worker) for row in sandbox.judge(asked)]
    assert [found for found, _, _ in answered] == [violated] * 3
    assert {state for _, state, _ in answered} == {WorkerState.WARM if stays else WorkerState.SPOILED}
    assert len({process for _, _, process in answered} - {0}) == (1 if stays else 3)


@pytest.mark.parametrize(
    ("backend", "stays"),
    [("dense_outputs", True), ("dense_outputs_that_lack_one", False), ("dense_outputs_and_past", False)],
)
@pytest.mark.usefixtures("forked_sandboxes")
def test_a_worker_stays_that_wrote_every_element_somewhere_in_its_output(
    tmp_path: Path, backend: str, stays: bool
) -> None:
    case = replace(CASE, operator="MaxPool2dWithIndices", layouts=(("out", "sliced"),))
    with opened(f"scatter_backends:{backend}", tmp_path) as sandbox:
        (row,) = sandbox.judge([CaseQuestion(case, holding(*USUAL), "block")])
        assert {"written", "memory_untouched", "maximum"} <= {*row["checks_violated"]}
        assert sandbox.worker.state is (WorkerState.WARM if stays else WorkerState.SPOILED)


@cache
def honest() -> list[Row]:
    with TemporaryDirectory() as scratch:
        return judged("scatter_backends:honest", Path(scratch), aspect=holding(*CHECKS))


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("misdeed", LEAVE_SOMETHING)
def test_what_a_call_leaves_in_its_process_is_named_and_touches_no_other_row(tmp_path: Path, misdeed: str) -> None:
    here, umask = Path.cwd(), os.umask(0o022)
    os.umask(umask)
    rows = judged(f"misdeed_backends:backend_{misdeed}", tmp_path, aspect=holding(*CHECKS))
    for row, asked, right in zip(rows, QUESTIONS, honest(), strict=True):
        if asked in KILLING:
            assert (row["verdict"], row["checks_violated"]) == (Verdict.VIOLATES, ["process_untouched"])
            assert LEAVE_SOMETHING[misdeed] in row["reason"]
        else:
            assert (row["verdict"], "process_untouched" in row["checks_judged"]) == (Verdict.CONFORMS, True)
            others = {"seconds", "call_seconds", "judged_at", "backend", "given"}
            assert not [name for name in row.keys() - others if row[name] != right[name]]
    assert (Path.cwd(), os.umask(umask)) == (here, umask)


@pytest.mark.usefixtures("forked_sandboxes")
def test_the_case_in_flight_is_on_disk_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "in-flight-sandbox.json"
    records: list[str] = []
    with opened("dying_backends:hanging", tmp_path, 1.0) as sandbox:
        sandbox.judge_alone(QUESTIONS[0])
        ask = sandbox.worker._host.ask
        monkeypatch.setattr(
            sandbox.worker.remote, "_ask_host", lambda *asked: (records.append(note.read_text()), ask(*asked))[1]
        )
        (row,) = sandbox.judge(QUESTIONS[2:3])
    assert row["verdict"] == Verdict.TIMED_OUT
    assert not note.exists()
    record = json.loads(records[-1])
    assert record["backend"] == "dying_backends:hanging"
    assert Case.from_record(record["case"]) == QUESTIONS[2].case


@pytest.mark.usefixtures("forked_sandboxes")
def test_what_a_backend_loads_at_its_first_call_takes_no_time_of_a_case(tmp_path: Path) -> None:
    with opened("plugged_backends:slow_at_first", tmp_path, timeout=2.0) as sandbox:
        rows = [*sandbox.judge(QUESTIONS[:2]), sandbox.judge_alone(QUESTIONS[2])]
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS] * 3


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_worker_that_was_surveyed_goes_on_with_what_it_has_loaded(tmp_path: Path) -> None:
    said, worker = surveyed("dying_backends:crashing")
    assert said.subjects
    server = worker._host._guardian
    with closing(Sandbox("dying_backends:crashing", tmp_path, "runner", timeout=20.0, loaded=worker)) as sandbox:
        rows = list(sandbox.judge(QUESTIONS[:3]))
        assert worker._host._guardian == server
    assert [row["verdict"] for row in rows] == [Verdict.CONFORMS, Verdict.CONFORMS, Verdict.CRASHED]
    assert {row["worker"] for row in rows} == {"runner"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="finds no cuda device"):
        Sandbox("torch-cuda", tmp_path, "sandbox", 1.0).start()


@pytest.mark.parametrize(
    ("backend", "words"), [("late_and_missing", "there is no device"), ("late_and_dead", "SIGSEGV while it was loaded")]
)
def test_a_device_that_cannot_be_opened_is_named(tmp_path: Path, backend: str, words: str) -> None:
    with pytest.raises(BackendUnavailable, match=words), opened(f"dying_backends:{backend}", tmp_path) as sandbox:
        sandbox.start()


def test_what_opens_late_is_loaded_once_and_opened_in_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE", str(tmp_path / "late"))
    with opened("dying_backends:late", tmp_path) as sandbox:
        found = sandbox.start()
        rows = list(sandbox.judge(QUESTIONS))
        assert sandbox.worker.starts_cold
        alone = sandbox.judge_alone(QUESTIONS[0])
    lost_alone(rows, Verdict.CRASHED)
    assert (alone["verdict"], found.subjects[0].tags) == (Verdict.CONFORMS, ("NHWC",))
    loaded, *others = (tmp_path / "late").read_text().splitlines()
    assert loaded.startswith("loaded") and {line.split()[0] for line in others} == {"opened"}
    processes = [line.split()[1] for line in (loaded, *others)]
    assert len({*processes}) == len(processes) >= 1 + 1 + 4 + 1, "survey, after each death, alone"


def test_a_host_that_is_dead_before_it_is_asked_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = supervision.launched

    def launched_and_ended(*arguments: Any) -> int:
        guardian = launched(*arguments)
        os.waitid(os.P_PID, guardian, os.WEXITED | os.WNOWAIT)
        return guardian

    monkeypatch.setattr(supervision, "launched", launched_and_ended)
    monkeypatch.setenv("POOLPROOF_TORCH_CPU_PYTHON", "/bin/false")
    with pytest.raises(BackendUnavailable, match="exit status 1 while it was loaded"):
        Sandbox("torch-cpu", tmp_path, "sandbox", 1.0).start()


def test_a_backend_that_hangs_while_it_is_loaded_is_named_meanwhile_and_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervision, "START_SECONDS", 3.0)
    monkeypatch.setattr(worker_module, "_SILENCE", 0.1)
    ((name, found),) = surveys(["dying_backends:never_loaded"])
    assert str(found) == f"backend {name} gave no answer within 3 s while it was loaded"
    assert f"poolproof: backend {name} is being loaded; this may take" in capsys.readouterr().err


def test_it_is_said_that_what_judges_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker_module, "_SILENCE", 0.1)
    monkeypatch.setattr(worker_module, "compile_all", lambda: time.sleep(0.5))
    with opened("scatter_backends:honest", tmp_path) as sandbox:
        sandbox.start()
    assert "poolproof: the judge is being compiled, once" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_process_that_judges_never_imports_the_framework(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    asked = ["--backend", "torch-cpu", "--operator", "MaxPool2dWithIndices", "--dtype", "float32", "--cases", "1"]
    arguments = ["--pyargs", "poolproof.suites", "-p", "no:cacheprovider", "--report", str(tmp_path / "run"), *asked]
    program = f"import pytest, sys; pytest.main({arguments!r}); print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.stdout.splitlines()[-1] == "False"
    assert "CONFORMS" in ended.stdout
