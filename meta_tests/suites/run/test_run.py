"""A run as its user makes it: options, several workers, interruption and resumption, one case again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from places import ROOT
from poolproof.reports.figures import tables
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites import plugin
from sessions import begin, replay, replay_pasted, run, run_session, wait_until
from shares import a_share

SMALL = "--operator MaxPool2dWithIndicesBackward --dtype float16"
ASPECTS = "--aspect values --aspect layouts --aspect state"
REPLAYS = {"lost": replay_pasted, "unwritten": replay, "half_accumulator": replay}


def judged(here: Path, words: str, status: int, folder: str = "out") -> tuple[str, pd.DataFrame]:
    """What a run says that ends with a status, and its rows."""
    ended = run(*words.split(), "--report", folder, cwd=here)
    assert ended.returncode == status, ended.stdout
    return ended.stdout, tables.load(here / folder)


def stopped(here: Path, words: str, number: int, is_due: Callable[[Path], object]) -> pd.DataFrame:
    """The rows of a run that gets a signal once its folder is as is waited for."""
    process = begin(*words.split(), "--report", "out", cwd=here)
    wait_until(lambda: bool(is_due(here / "out")))
    (os.killpg if number == signal.SIGKILL else os.kill)(process.pid or 0, number)
    process.join()
    assert process.exitcode == (-number if number == signal.SIGKILL else 2), (here / "printed").read_text()
    return tables.load(here / "out")


def test_a_worker_takes_a_block_at_a_time(tmp_path: Path) -> None:
    """Of many blocks each gets two to begin with: whoever got more would hold them back from one that has nothing."""
    words = f"--backend scatter_backends:honest --cases 1 --operator MaxPool2dWithIndicesBackward {ASPECTS}"
    (_, alone), (_, shared) = judged(tmp_path, words, 0, "alone"), judged(tmp_path, f"{words} -n 2", 0, "shared")
    order = list(alone["block"].dropna().unique())
    workers = dict(zip(shared["block"], shared["worker"], strict=True))
    assert len(order) >= 24
    assert [workers[block] == workers[order[0]] for block in order[:4]] == [True, True, False, False]


def test_a_case_that_hangs_is_named_while_it_hangs(tmp_path: Path) -> None:
    case = '{"operator":"MaxPool2dWithIndices","shape":[1,1,4,4],"kernel_size":[2],"ceil_mode":true}'
    said, rows = judged(tmp_path, f"--backend dying_backends:hanging --case-timeout 12 --no-shrink --case {case}", 1)
    assert set(rows["verdict"]) == {Verdict.TIMED_OUT}
    assert re.search(r"^1\d s without an end: dying_backends:hanging, aspect case, .*ceil_mode", said, re.MULTILINE)


@pytest.mark.parametrize("fault", a_share(REPLAYS))
def test_a_planted_fault_is_found_shrunk_and_printed_as_a_line_that_reproduces_it(tmp_path: Path, fault: str) -> None:
    words = f"--backend scatter_backends:{fault} --cases 5 --aspect precision --aspect values {SMALL}"
    said, rows = judged(tmp_path, words, 1)
    line = [line.strip() for line in said.splitlines() if line.strip().startswith("poolproof replay")][-1]
    again = REPLAYS[fault](line, tmp_path)
    assert again.returncode == 1, (line, again.stdout, again.stderr)
    assert "expected" in again.stdout or "was in memory before the call" in again.stdout
    assert len(min(json.loads(case)["shape"] for case in rows["shrunk"].dropna())) in (3, 4)
    assert line in again.stdout


def has_a_row(out: Path, files: str = "*") -> bool:
    return any(part.stat().st_size for part in (out / "rows").glob(files))


def test_failures_that_wait_for_their_smaller_cases_survive_a_kill(tmp_path: Path) -> None:
    """Killed while a block is judged or its failures are shrunk: a resumed run has every row, and none twice."""
    words = f"--backend scatter_backends:lost --cases 16 --aspect values {SMALL}"
    stopped(tmp_path, words, signal.SIGKILL, lambda out: has_a_row(out, "*.jsonl"))
    (_, after), (_, whole) = (
        judged(tmp_path, f"{words} --no-shrink --resume", 1),
        judged(tmp_path, f"{words} --no-shrink", 1, "whole"),
    )
    found = [sorted(zip(rows["case_id"], rows["verdict"], strict=True)) for rows in (after, whole)]
    assert found[0] == found[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_rows_and_is_said(tmp_path: Path, number: int) -> None:
    assert len(stopped(tmp_path, f"--backend scatter_backends:honest --cases 2000 {SMALL}", number, has_a_row))
    said = (tmp_path / "printed").read_text()
    assert "cases judged" in said
    assert "interrupted: the judged cases are kept; judge the rest with" in said
    (again,) = (line for line in said.splitlines() if line.startswith("pytest ") and line.endswith(" --resume"))
    assert "--backend scatter_backends:honest --cases 2000" in again


@pytest.mark.parametrize(
    ("place", "status", "said"),
    [
        ("last case", 2, "CONFORMS IN PART (exit status 2)"),
        ("session", 0, "the report is being written: another Ctrl-C leaves it unwritten, and --resume writes it"),
    ],
)
def test_an_interrupt_that_comes_late_loses_nothing(tmp_path: Path, place: str, status: int, said: str) -> None:
    way = {"DISTURBANCE": f"interrupt behind the {place}"}
    ended = run_session(tmp_path / "run", "scatter_backends:honest", "-p", "disturbing", variables=way)
    assert ended.status == status
    assert said in ended.output
    assert f"CONFORMS IN PART (exit status {status})" in ended.output
    assert re.search(r"\b(\d+) of \1 planned cases judged", ended.output)


def test_deaths_between_calls_alone_make_a_run_deviate(tmp_path: Path) -> None:
    words = f"--backend dying_backends:dying_later --cases 200 --aspect values --no-shrink {SMALL}"
    said, rows = judged(tmp_path, words, 1)
    assert re.search("died (between calls, after|in) case ", said)
    assert set(rows.loc[rows["block"] != "", "verdict"]) == {Verdict.CONFORMS}
    assert set(rows.loc[rows["block"] == "", "verdict"]) == {Verdict.CRASHED}


@pytest.mark.parametrize("asked", ["suites", "suites/test_conformance.py::test_conformance"])
def test_a_copy_of_the_suite_is_refused(tmp_path: Path, asked: str) -> None:
    """A clone beside an installed suite; its tests would get no session."""
    shutil.copytree(Path(plugin.__file__).parent, tmp_path / "suites")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    command = [sys.executable, "-m", "pytest", asked]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 3
    assert "--pyargs poolproof.suites" in ended.stdout + ended.stderr
