"""Killing any process of a run costs no row and doubles none.

No process of a session outlives it by more than two seconds, whatever a backend does and however it ends.
"""

import signal
import subprocess
from pathlib import Path

import pytest

import forked
from kills import ASKED, ROLES, Kill, Result, disturbed, result_of
from places import ROOT
from poolproof.reports.rows.store import read_run
from sessions import command, surroundings, wait_until
from shares import a_share

KILLS = [
    Kill(role, rows)
    for role, rows in (("judging process", 3), ("server", 8), ("guardian", 14), ("xdist worker", 20), ("session", 27))
]


@pytest.mark.thorough
def test_a_run_whose_processes_are_killed_has_the_same_rows(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    assert max(expected.rows.values()) == 1
    assert {kill.role for kill in KILLS} == {*ROLES}
    result, missed = disturbed(tmp_path / "disturbed", KILLS)
    assert not missed
    assert not expected.difference(result, len(KILLS))


def undisturbed(folder: Path) -> Result:
    """Of forked processes, and without workers: nothing is killed, and it takes a tenth of the time."""
    arguments = ["suites", "-q", "-p", "no:cacheprovider", "--no-search", *ASKED, "-n", "0", "--report", str(folder)]
    return result_of(forked.run(forked.Command("pytest", arguments, ROOT, surroundings())).returncode, folder)


SMALL = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--dtype", "float16", "--cases", "30"]


def stuck(folder: Path, backend: str, *options: str) -> subprocess.Popen[bytes]:
    """A session whose judging process hangs in a call, with a child."""
    (folder / "pids").mkdir()
    given, told = command(folder / "run", backend, *options, asked=SMALL), {"STUBBORN": str(folder / "pids")}
    into = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(given, cwd=ROOT, env=surroundings() | told, **into)
    wait_until(lambda: len([*(folder / "pids").iterdir()]) >= 2, 120.0)
    assert len([*(folder / "pids").iterdir()]) >= 2
    return process


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_are_gone(folder: Path) -> bool:
    """Within two seconds."""
    pids = [path.name for path in (folder / "pids").iterdir()]
    wait_until(lambda: not any(map(alive, pids)), 2.0)
    return not any(map(alive, pids))


@pytest.mark.parametrize(
    ("backend", "options"),
    a_share([("stubborn", ["-n", "2"]), ("stubborn_in_c", []), ("stubborn_unforkable", [])]),
    ids=str,
)
def test_a_killed_session_takes_all_along(tmp_path: Path, backend: str, options: list[str]) -> None:
    process = stuck(tmp_path, f"dying_backends:{backend}", *options)
    process.kill()
    process.wait()
    assert all_are_gone(tmp_path)


def test_sigterm_ends_like_control_c(tmp_path: Path) -> None:
    process = stuck(tmp_path, "dying_backends:stubborn", "-n", "2")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 2
    assert all_are_gone(tmp_path)
    assert read_run(tmp_path / "run")["finished"]
    assert (tmp_path / "run" / "summary.md").exists()
    assert not list((tmp_path / "run" / "rows").glob("*.jsonl"))
