"""Tries a bad input, in a child of the fork server, and in an empty folder of its own.

What is looked at is what a person gets: exit status, output, time, and the files that were there before.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import forked
from bad_inputs import Ending, Given
from bad_inputs.fence import keep_inside
from bad_inputs.materials import FAILING_CASE, MADE, failing_case, finish
from places import ROOT
from poolproof.reports.figures import tables
from poolproof.reports.rows.store import NotARun
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.running import sandbox
from sessions import surroundings

SECONDS = 60.0
"""How long a command may take on a busy machine; most take a tenth of a second."""

START_SECONDS = 15.0
"""In place of the minutes that a framework may take to load, which no input here waits for."""

_SHARED = (Path(tempfile.gettempdir()), Path.home() / ".cache", ROOT, Path(sys.prefix))
"""Where a command changes things beside the folder that it is run in: temporary files and caches of code."""


def make(made: Path) -> None:
    """What the inputs get copies of."""
    for given in MADE:
        _ended(given, made)
    finish(made)


def attempt(given: Given, made: Path, here: Path, real: bool = False) -> str:
    """What is wrong with how a command ends, as a person reads it; ``real`` is a process as its user starts it."""
    given.lay(here, made)
    before, case = contents(here), failing_case(made)
    asked = [each.replace(FAILING_CASE, case) for each in given.arguments]
    try:
        ended = (_really_ended if real else _ended)(replace(given, arguments=tuple(asked)), here)
    except subprocess.TimeoutExpired:
        return f"was not over after {SECONDS:g} s"
    said = ended.stdout + ended.stderr
    found = "; ".join(objections(given, ended.returncode, said, before, here))
    return found and f"{found}\n{given.program} {' '.join(map(ascii, asked))}\n{said[-3000:]}"


def _ended(given: Given, here: Path) -> subprocess.CompletedProcess[str]:
    before = partial(_fenced, here)
    return forked.run(forked.Command(given.program, given.arguments, here, variables(given), SECONDS, before))


def _fenced(here: Path) -> None:
    sandbox.START_SECONDS = START_SECONDS
    keep_inside(here, *_SHARED)


def _really_ended(given: Given, here: Path) -> subprocess.CompletedProcess[str]:
    program = ["-m", "pytest"] if given.program == "pytest" else ["-c", "from poolproof.suites.cli import main; main()"]
    command = [sys.executable, *program, *given.arguments]
    return subprocess.run(command, cwd=here, env=variables(given), capture_output=True, text=True, timeout=SECONDS)


def variables(given: Given) -> dict[str, str]:
    """The environment of a command, that of no test."""
    own = {name: value for name, value in surroundings().items() if not name.startswith("PYTEST_")}
    changed = {**own, **given.environment}
    return {name: value for name, value in changed.items() if value is not None}


_NORMAL = (Ending.HARMLESS, Ending.SHOWN)
"""Nothing is said of the input, then."""


def objections(given: Given, status: int, output: str, before: dict[str, str], here: Path) -> Iterator[str]:
    """What is wrong with how a command ended."""
    if status != given.ending.status:
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
