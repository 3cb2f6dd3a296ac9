"""Runs and replays in a folder, as their user starts them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import forked
from forked import Command
from places import ROOT, SUPPORT

ENVIRONMENT = os.environ | {"PYTHONPATH": str(SUPPORT)}


def command(*arguments: object) -> list[str]:
    quick = ("-q", "-p", "no:cacheprovider", "--diagnose", "0")
    return [sys.executable, "-m", "pytest", str(ROOT / "suites"), *quick, *map(str, arguments)]


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(Command("pytest", command(*arguments)[3:], cwd, ENVIRONMENT))


def begin(*arguments: object, cwd: Path) -> BaseProcess:
    """A session that is not waited for; what it prints goes to the file ``printed``."""
    asked = Command("pytest", command(*arguments)[3:], cwd, ENVIRONMENT)
    return forked.start(asked, cwd / "printed", cwd / "printed")


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_so():
        time.sleep(0.05)


def bare() -> dict[str, str]:
    """The environment of somebody else: of the session that printed a line nothing is left."""
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def replay(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What comes of a printed line."""
    program, *arguments = shlex.split(line)
    assert program == "poolproof"
    return forked.run(Command(program, arguments, cwd, bare()))


def replay_pasted(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a printed line, pasted as it is."""
    return subprocess.run(["bash", "-c", line], cwd=cwd, env=bare(), capture_output=True, text=True, check=False)
