"""Sessions and replays as people start them, in processes of their own: `forked` where nothing hangs on fresh ones."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

from click.testing import CliRunner, Result

import forked
from forked import Command
from places import ROOT, SUPPORT
from poolproof.suites.cli import main

ASKED = ["--operator", "MaxPool2dWithIndicesBackward", "--aspect", "values", "--cases", "12"]


@dataclass
class Ended:
    """A session that has ended."""

    status: int
    output: str
    folder: Path

    @property
    def page(self) -> str:
        return (self.folder / "index.html").read_text(encoding="utf-8")


def command(
    folder: Path, backend: str, *options: str, asked: Sequence[str] = ASKED, suite: Sequence[str] = ("suites",)
) -> list[str]:
    """The words of a session that leaves its run in a folder."""
    return words(*asked, "--backend", backend, "--report", folder, *options, suite=suite)


def words(*arguments: object, suite: Sequence[str] = (str(ROOT / "suites"),)) -> list[str]:
    """The words of a session; further cases are asked, and searched, where its arguments say so."""
    quick = ("-q", "-p", "no:cacheprovider", "--diagnose", "0", *["--no-search"] * ("--search" not in arguments))
    arguments = tuple(each for each in arguments if each != "--search")
    return [sys.executable, "-m", "pytest", *suite, *quick, *map(str, arguments)]


def surroundings() -> dict[str, str]:
    """The environment of a session outside any CI service, where the backends of this folder can be imported."""
    ci_of_ours = ("GITHUB_ACTIONS", "GITLAB_CI")
    environment = {name: value for name, value in os.environ.items() if name not in ci_of_ours}
    return environment | {"PYTHONPATH": str(SUPPORT)}


def run_session(
    folder: Path,
    backend: str,
    *options: str,
    asked: Sequence[str] = ASKED,
    suite: Sequence[str] = ("suites",),
    variables: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Ended:
    """A session as a fork, or as a ``fresh`` interpreter, where it matters what a backend brings into its process."""
    whole, environment = command(folder, backend, *options, asked=asked, suite=suite), surroundings()
    environment |= dict(variables or {})
    if fresh:
        ended = subprocess.run(whole, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    else:
        ended = forked.run(Command("pytest", whole[3:], ROOT, environment))
    return Ended(ended.returncode, ended.stdout + ended.stderr, folder)


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A session in a folder of its own."""
    return forked.run(Command("pytest", words(*arguments)[3:], cwd, surroundings()))


def begin(*arguments: object, cwd: Path) -> BaseProcess:
    """A session that is not waited for; what it prints goes to the file ``printed``."""
    asked = Command("pytest", words(*arguments)[3:], cwd, surroundings())
    return forked.start(asked, cwd / "printed", cwd / "printed")


def waiver(name: str = "known", scope: str = 'backend = "mine"', expires: object = None, more: str = "") -> str:
    """A waiver as a file has it; it ends in three months unless something else is said."""
    day = expires or date.today() + timedelta(days=90)
    who = f'[[waiver]]\nid = "{name}"\nreason = "known"\nowner = "somebody"\n'
    return f"{who}expires = {day}\nscope = {{ {scope} }}\n{more}\n"


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_so():
        time.sleep(0.05)


def poolproof(*arguments: object, typed: str | None = None) -> Result:
    """How a command ends in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed)


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
