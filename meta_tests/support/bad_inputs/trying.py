"""Tries bad inputs in forks of one process that has everything imported: five hundred interpreters would take too long.

Each command runs in a fork of its own, in an empty folder, and so does each process that a sandbox would launch. What
is looked at is what a person gets: exit status, output, time, and the files that were there before.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from bad_inputs import Ending, Given
from bad_inputs.fence import keep_inside
from bad_inputs.materials import FAILING_CASE, MADE, failing_case, finish
from forked import become, prepare, speak_into
from places import ROOT, SUPPORT
from poolproof.reports.figures import tables
from poolproof.reports.rows.store import NotARun
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.isolation import supervision

SECONDS = 60.0
"""How long a command may take on a busy machine; most take a tenth of a second."""

START_SECONDS = 15.0
"""In place of the minutes that a framework may take to load, which no input here waits for."""

_CI_OF_OURS = ("GITHUB_ACTIONS", "GITLAB_CI", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")


@dataclass(frozen=True)
class Tried:
    """What became of an input: status (None: it hung), output, seconds, and what is wrong with that, if anything."""

    given: Given
    status: int | None
    output: str
    seconds: float
    objections: tuple[str, ...]


def try_all(inputs: Sequence[Given], real: frozenset[str] = frozenset(), workers: int = 3) -> list[Tried]:
    """Each input with what is wrong with its ending, so many at a time; those named ``real`` in fresh interpreters."""
    prepare()
    supervision.START_SECONDS = START_SECONDS
    waiting, running, ended = list(reversed(inputs)), list[_Attempt](), list[Tried]()
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / "made")
        case = failing_case(made)
        gc.freeze()
        while waiting or running:
            while waiting and len(running) < workers:
                given = _about(waiting.pop(), case)
                place = Path(scratch) / f"{len(waiting):04}"
                running.append(_Attempt(given, place, made, _execute if given.name in real else _become))
            for attempt in [each for each in running if each.is_over()]:
                running.remove(attempt)
                ended.append(attempt.tried())
            time.sleep(0.005)
    return ended


def make(made: Path) -> Path:
    """What the inputs get copies of."""
    made.mkdir()
    for given in MADE:
        pid = os.fork()
        if not pid:
            _become(given, made, made.parent / "making.txt")
        os.waitpid(pid, 0)
    finish(made)
    return made


def _about(given: Given, case: str) -> Given:
    return replace(given, arguments=tuple(each.replace(FAILING_CASE, case) for each in given.arguments))


class _Attempt:
    """A command in a fork of this process."""

    def __init__(self, given: Given, place: Path, made: Path, begin: Callable[[Given, Path, Path], NoReturn]) -> None:
        self.given = given
        self._here = place / "here"
        self._here.mkdir(parents=True)
        given.lay(self._here, made)
        self._before = contents(self._here)
        self._output = place / "output.txt"
        self._place = place
        self._began = time.monotonic()
        self._status: int | None = None
        self._pid = os.fork()
        if not self._pid:
            begin(given, self._here, self._output)

    def is_over(self) -> bool:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = os.waitstatus_to_exitcode(status)
            return True
        if time.monotonic() - self._began > SECONDS:
            os.killpg(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            return True
        return False

    def tried(self) -> Tried:
        seconds = time.monotonic() - self._began
        output = self._output.read_text(encoding="utf-8", errors="replace")
        found = tuple(objections(self.given, self._status, output, self._before, self._here))
        shutil.rmtree(self._place, ignore_errors=True)
        return Tried(self.given, self._status, output, seconds, found)


_NORMAL = (Ending.HARMLESS, Ending.SHOWN)
"""Nothing is said of the input, then."""


def objections(given: Given, status: int | None, output: str, before: dict[str, str], here: Path) -> Iterator[str]:
    """What is wrong with how a command ended."""
    if status is None:
        yield f"was not over after {SECONDS:g} s"
    elif status != given.ending.status:
        yield f"exit status {status}, owed {given.ending.status}"
    if "Traceback" in output or "INTERNALERROR" in output:
        yield "a traceback"
    if given.ending not in _NORMAL and given.names and not any(name in output for name in given.names):
        yield f"names none of {', '.join(map(repr, given.names))}"
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines and given.ending not in _NORMAL:
        yield "says nothing"
    if len(lines) > given.ending.most_lines or len(output) > 200 * given.ending.most_lines + 4000:
        yield f"{len(lines)} lines, {len(output)} characters"
    yield from (f"changed {name}" for name in changed(before, here))
    yield from (f"accuses in {folder}" for folder in accusing(here, before))


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, every other thing with its kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder" if path.is_dir() else "special"
    return found


def changed(before: dict[str, str], here: Path) -> list[str]:
    """What was there before and is so no more."""
    now = contents(here)
    return [name for name, content in before.items() if now.get(name) != content]


def accusing(here: Path, before: dict[str, str]) -> list[str]:
    """New run folders in which a row says that an implementation deviates."""
    found = []
    for rows in here.rglob("rows"):
        name = rows.relative_to(here).as_posix()
        if name in before or not rows.is_dir():
            continue
        with suppress(NotARun):
            if set(tables.load(rows.parent, ["verdict"])["verdict"]) & set(FAILED):
                found.append(name)
    return found


def _execute(given: Given, here: Path, output: Path) -> NoReturn:
    """The command as a process of its own, as its user starts it."""
    os.setsid()
    os.chdir(here)
    speak_into(output, output)
    os.execve(sys.executable, command_line(given), surroundings(given))


def command_line(given: Given) -> list[str]:
    """The same as a process of its own."""
    if given.program == "pytest":
        return [sys.executable, "-m", "pytest", *given.arguments]
    return [sys.executable, "-c", "from poolproof.suites.cli import main; main()", *given.arguments]


def surroundings(given: Given) -> dict[str, str]:
    """The environment of a command outside any CI service, where the backends of ``meta_tests`` can be imported."""
    mine = {name: value for name, value in os.environ.items() if name not in _CI_OF_OURS}
    mine["PYTHONPATH"] = str(SUPPORT)
    for name, value in given.environment.items():
        mine.pop(name, None)
        if value is not None:
            mine[name] = value
    return mine


_SHARED = (Path(tempfile.gettempdir()), Path.home() / ".cache", ROOT, Path(sys.prefix))
"""Where a command changes things beside the folder that it is run in: temporary files and caches of code."""


def _become(given: Given, here: Path, output: Path) -> NoReturn:
    """Turn a fork of this process into the command."""
    inside = partial(keep_inside, here, *_SHARED)
    become(given.program, given.arguments, here, surroundings(given), output, before=inside)


def told(tried: Tried) -> str:
    """What is wrong, as a person reads it."""
    command = " ".join(map(ascii, (tried.given.program, *tried.given.arguments)))
    shown = [f"  | {line[:300]}" for line in tried.output.splitlines()[-12:]]
    title = ascii(f"{tried.given.name}: {'; '.join(tried.objections)} ({tried.seconds:.1f} s)")
    return "\n".join([title, f"  {command[:400]}", *shown])
