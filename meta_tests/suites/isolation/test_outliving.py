"""No process of a session outlives it by more than two seconds, whatever a backend does and however it ends."""

import signal
import subprocess
from pathlib import Path

import pytest

from places import ROOT
from poolproof.reports.rows.store import read_run
from sessions import command, surroundings, wait_until

ASKED = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--dtype", "float16", "--cases", "30"]


def stuck(folder: Path, backend: str, *options: str) -> subprocess.Popen[bytes]:
    """A session whose judging process hangs in a call, with a child."""
    (folder / "pids").mkdir()
    given, told = command(folder / "run", backend, *options, asked=ASKED), {"STUBBORN": str(folder / "pids")}
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
    ("backend", "options"), [("stubborn_in_c", []), ("stubborn_unforkable", []), ("stubborn", ["-n", "2"])], ids=str
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
