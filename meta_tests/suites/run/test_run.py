"""A run as its user makes it: options, several workers, interruption and resumption, one case again."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from poolproof.reports.figures import tables
from poolproof.reports.rows.store import finished_blocks, read_run
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites import plugin
from runs import begin, replay, replay_pasted, run, wait_until

SMALL = ("--operator", "MaxPool2dWithIndicesBackward", "--dtype", "float16")
ASPECTS = ("--aspect", "values", "--aspect", "layouts", "--aspect", "state")


REPLAYS = dict.fromkeys(["duplicated", "misrouted", "unwritten", "truncating", "half_accumulator"], replay)


def test_a_conforming_run_ends_well_and_leaves_rows_and_a_page(tmp_path: Path) -> None:
    ended = run("--backend", "scatter_backends:honest", "--cases", 5, "--report", "out", *SMALL, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout
    rows, record = tables.load(tmp_path / "out"), read_run(tmp_path / "out")
    assert set(rows["verdict"]) == {Verdict.CONFORMS, Verdict.REFUSED}
    assert set(rows.loc[rows["verdict"] == Verdict.REFUSED, "aspect"]) == {"empty_windows"}
    assert (record["plan"], record["seed"], record["finished"] is not None) == ("smoke", 0, True)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "MaxPool2dWithIndicesBackward" in page.replace("<wbr>", "")
    assert "cases judged" in ended.stdout


def test_workers_and_processes_judge_the_same_cases(tmp_path: Path) -> None:
    arguments = ("--backend", "scatter_backends:honest", "--cases", 6, *ASPECTS, *SMALL)
    ids = []
    for folder, more in (("one", ()), ("two", ("-n", "2"))):
        assert run(*arguments, "--report", folder, *more, cwd=tmp_path).returncode == 0
        rows = tables.load(tmp_path / folder)
        ids.append(sorted(zip(rows["block"].fillna(""), rows["case_id"].fillna(""), strict=True)))
    assert ids[0] == ids[1]
    run(*arguments, "--report", "other", "--seed", 1, cwd=tmp_path)
    assert sorted(tables.load(tmp_path / "other")["case_id"].fillna("")) != [case for _, case in ids[0]]


@pytest.mark.parametrize("fault", ["lost", *REPLAYS])
def test_a_planted_fault_is_found_shrunk_and_printed_as_a_line_that_reproduces_it(tmp_path: Path, fault: str) -> None:
    name = f"scatter_backends:{fault}"
    ended = run(
        "--backend",
        name,
        "--cases",
        5,
        "--report",
        "out",
        "--aspect",
        "precision",
        "--aspect",
        "values",
        *SMALL,
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    lines = [line.strip() for line in ended.stdout.splitlines() if line.strip().startswith("poolproof replay")]
    assert lines
    shrunk = list(tables.load(tmp_path / "out")["shrunk"].dropna())
    assert shrunk
    again = REPLAYS.get(fault, replay_pasted)(lines[-1], tmp_path)
    assert again.returncode == 1, (lines[-1], again.stdout, again.stderr)
    assert "expected" in again.stdout or "was in memory before the call" in again.stdout
    smallest = min(json.loads(case)["shape"] for case in shrunk)
    assert len(smallest) in (3, 4)
    assert lines[-1] in again.stdout


def test_killed_runs_keep_their_rows_and_can_be_resumed(tmp_path: Path) -> None:
    arguments = (
        "--backend",
        "scatter_backends:honest",
        "--cases",
        15,
        "--report",
        "out",
        "-n",
        "2",
        "--operator",
        "AdaptiveMaxPool2dBackward",
        *ASPECTS,
    )
    whole = [*arguments[:5], "whole", *arguments[6:]]
    process = begin(*arguments, cwd=tmp_path)
    folder = tmp_path / "out"
    wait_until(lambda: folder.exists() and len(finished_blocks(folder)) >= 2)
    os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    before = tables.load(folder)
    assert len(before) > 0
    assert set(before["verdict"]) <= {Verdict.CONFORMS, Verdict.NOT_SUPPORTED}

    resumed = run(*arguments, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stdout
    run(*whole, cwd=tmp_path)
    after, reference = tables.load(folder), tables.load(tmp_path / "whole")
    judged = after[after["verdict"] == Verdict.CONFORMS]
    assert set(judged["case_id"]) == set(reference.loc[reference["verdict"] == Verdict.CONFORMS, "case_id"])
    assert len(after) > len(before)


def test_failures_that_wait_for_their_smaller_cases_survive_a_kill(tmp_path: Path) -> None:
    """Killed while a block is judged or its failures are shrunk: a resumed run has every row, and none twice."""
    arguments = ["--backend", "scatter_backends:lost", "--cases", 16, "--aspect", "values", *SMALL]
    folder = tmp_path / "out"
    process = begin(*arguments, "--report", "out", cwd=tmp_path)
    wait_until(lambda: any(part.stat().st_size for part in (folder / "rows").glob("*.jsonl")))
    os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert run(*arguments, "--report", "out", "--no-shrink", "--resume", cwd=tmp_path).returncode == 1
    assert run(*arguments, "--report", "whole", "--no-shrink", cwd=tmp_path).returncode == 1
    after, whole = (tables.load(tmp_path / name) for name in ("out", "whole"))
    assert sorted(zip(after["case_id"], after["verdict"], strict=True)) == sorted(
        zip(whole["case_id"], whole["verdict"], strict=True)
    )


def test_control_c_keeps_the_rows(tmp_path: Path) -> None:
    limits = ("--backend", "scatter_backends:honest", "--cases", 2000, "--report", "out")
    process = begin(*limits, *SMALL, cwd=tmp_path)
    folder = tmp_path / "out"
    wait_until(lambda: any(part.stat().st_size for part in (folder / "rows").glob("*")))
    os.kill(process.pid or 0, signal.SIGINT)
    process.join()
    output = (tmp_path / "printed").read_text()
    assert process.exitcode == 2, output
    assert len(tables.load(folder)) > 0
    assert "cases judged" in output


def test_crashes_are_rows_with_reproducers(tmp_path: Path) -> None:
    ended = run(
        "--backend",
        "dying_backends:crashing",
        "--cases",
        6,
        "--report",
        "out",
        "--aspect",
        "values",
        "--no-shrink",
        *SMALL,
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    rows = tables.load(tmp_path / "out")
    crashed = rows[rows["verdict"] == Verdict.CRASHED]
    assert len(crashed)
    assert crashed["case"].str.contains('"ceil_mode":true').all()
    assert (rows["verdict"] == Verdict.CONFORMS).any()
    assert "crashed" in ended.stdout
    assert "signal SIGSEGV" in ended.stdout


def test_deaths_between_calls_alone_make_a_run_deviate(tmp_path: Path) -> None:
    limits = ("--backend", "dying_backends:dying_later", "--cases", 200, "--aspect", "values", "--report", "out")
    ended = run(*limits, "--no-shrink", *SMALL, cwd=tmp_path)
    assert ended.returncode == 1
    assert re.search("died (between calls, after|in) case ", ended.stdout)
    rows = tables.load(tmp_path / "out")
    assert set(rows.loc[rows["block"] != "", "verdict"]) == {Verdict.CONFORMS}
    assert set(rows.loc[rows["block"] == "", "verdict"]) == {Verdict.CRASHED}


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        ("raising", "an adapter raised an exception or gave no outcome, which says nothing about the implementation"),
    ],
)
def test_what_is_no_fault_of_the_implementation_leaves_the_run_incomplete(
    tmp_path: Path, backend: str, sentence: str
) -> None:
    limits = ("--backend", f"dying_backends:{backend}", "--cases", 6, "--aspect", "values", "--report", "out")
    ended = run(*limits, *SMALL, cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in " ".join(ended.stdout.split())
    assert "crashed" not in set(tables.load(tmp_path / "out")["verdict"])


CASE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,4,4],"kernel_size":[2,2],"index_dtype":"int32"}'


def test_one_case_is_judged_with_every_check(tmp_path: Path) -> None:
    ended = run("--backend", "scatter_backends:honest", "--case", CASE, "--report", "out", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout
    (row,) = tables.load(tmp_path / "out").to_dict("records")
    assert row["case"] == CASE.replace('"shape":[1,4,4],', '"shape":[1,4,4],"index_dtype":"int32",').replace(
        ',"index_dtype":"int32"}', "}"
    )
    assert {"interval", "plane_sum", "repeat"} <= set(row["checks_judged"])
    again = run("--backend", "scatter_backends:lost", "--case", CASE, "--report", "bad", cwd=tmp_path)
    assert again.returncode == 1
    assert "expected" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--backend", "abacus"), "unknown backend 'abacus': choose from "),
        (("--backend", "nowhere:Backend"), "backend 'nowhere:Backend' cannot be loaded"),
        (("--backend", "torch-cuda"), "finds no cuda device here"),
        (("--case", "{"), "this is not JSON"),
        (("--operator", "MaxPool9d"), "unknown operator 'MaxPool9d'"),
        (("--waivers", "missing.toml"), "cannot read waivers from missing.toml"),
        (("--resume",), "nothing to resume"),
    ],
)
def test_a_run_that_cannot_start_says_why_and_exits_with_3(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = run(*arguments, cwd=tmp_path)
    assert sentence in ended.stdout + ended.stderr
    assert ended.returncode == 3


@pytest.mark.parametrize("asked", ["suites", "suites/test_conformance.py::test_conformance"])
def test_a_copy_of_the_suite_is_refused(tmp_path: Path, asked: str) -> None:
    """A clone beside an installed suite; its tests would get no session."""
    shutil.copytree(Path(plugin.__file__).parent, tmp_path / "suites")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", asked], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 3
    assert "--pyargs poolproof.suites" in ended.stdout + ended.stderr


def test_a_folder_that_is_in_use_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    ended = run("--report", "out", cwd=tmp_path)
    assert ended.returncode == 3
    assert "out is not empty" in ended.stdout + ended.stderr
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_waived_failures_do_not_fail_the_run_and_are_printed(tmp_path: Path) -> None:
    waiver = tmp_path / "known.toml"
    waiver.write_text(
        '[[waiver]]\nid = "losing"\nreason = "the last window is lost"\nowner = "us"\n'
        f"expires = {date.today() + timedelta(days=90)}\n"
        'scope = { backend = "scatter_backends:*", operator = "MaxPool2d*" }\n'
    )
    ended = run(
        "--backend",
        "scatter_backends:lost",
        "--cases",
        6,
        "--waivers",
        "known.toml",
        "--aspect",
        "values",
        *SMALL,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout
    assert "losing" in ended.stdout
    rows = tables.load(tmp_path / "poolproof-report")
    assert (rows["verdict"] == Verdict.WAIVED).any()
