"""Tries a bad input, in a child of the fork server, and in an empty folder of its own.

What is looked at is what a person gets: exit status, output, time, and the files that were there before.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import forked
from bad_inputs import Ending, Given
from bad_inputs.materials import FAILING_CASE, HARMFUL, MADE, failing_case
from places import GOLDEN, ROOT
from poolproof.reports.figures import tables
from poolproof.reports.rows.store import NotARun
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.isolation import supervision
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
        ended(given, made)
    subprocess.run(["c++", "-x", "c++", "-shared", "-fPIC", "-o", HARMFUL, GOLDEN / "harmful.c"], cwd=made, check=True)


def attempt(given: Given, made: Path, here: Path, real: bool = False) -> str:
    """What is wrong with how a command ends, as a person reads it; ``real`` is a process as its user starts it."""
    given.lay(here, made)
    before, case = contents(here), failing_case(made)
    asked = [each.replace(FAILING_CASE, case) for each in given.arguments]
    try:
        came = (_really_ended if real else ended)(replace(given, arguments=tuple(asked)), here)
    except subprocess.TimeoutExpired:
        return f"was not over after {SECONDS:g} s"
    said = came.stdout + came.stderr
    found = "; ".join(objections(given, came.returncode, said, before, here))
    return found and f"{found}\n{given.program} {' '.join(map(ascii, asked))}\n{said[-3000:]}"


def ended(given: Given, here: Path) -> subprocess.CompletedProcess[str]:
    before = partial(_fenced, here)
    return forked.run(forked.Command(given.program, given.arguments, here, variables(given), SECONDS, before))


def _fenced(here: Path) -> None:
    supervision.START_SECONDS = START_SECONDS
    keep_inside(here, *_SHARED)


# A fence around the command: who runs the test may be somebody who may do all, and a bug would write to a device, or
# put a file in its place. The command is ended before it does.

LEFT = 97
"""The exit status of a command that went beyond the fence."""

_PLACES = {
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
}
"""What happens to a name in a folder, a link or not: which of the event's arguments are such names."""

_CONTENTS = frozenset({"os.truncate", "os.chmod", "os.chown", "os.utime"})
"""What happens to what a name leads to."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def keep_inside(*folders: Path) -> None:
    """From now on, let this process and its forks change nothing but what lies in these folders; /dev/null is written.

    Libraries of C and programs that are started are not held. What lies below /dev/null the system refuses.
    """
    inside = (*(f"{os.path.realpath(folder)}/" for folder in folders), f"{os.devnull}/")

    def look(event: str, arguments: tuple[object, ...]) -> None:
        for path in targets(event, arguments):
            if not f"{path}/".startswith(inside) or path == os.devnull:
                os.write(2, f"{event} of {path}, beyond the fence\n".encode(errors="replace"))
                os._exit(LEFT)

    sys.addaudithook(look)


def targets(event: str, arguments: tuple[Any, ...]) -> list[str]:
    """The real paths of what an audit event is about to change."""
    if event == "open" or event in _CONTENTS:
        path, written = arguments[0], event != "open" or (isinstance(arguments[2], int) and arguments[2] & _WRITES)
        if not written or not isinstance(path, str | bytes):
            return []
        real = os.path.realpath(os.fsdecode(path))
        return [] if event == "open" and real == os.devnull else [real]
    names = [os.path.split(os.fsdecode(arguments[place]).rstrip("/")) for place in _PLACES.get(event, ())]
    return [f"{os.path.realpath(folder)}/{name}" for folder, name in names]


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
    expected, most_lines = given.ending.value
    if status != expected:
        yield f"exit status {status}, expected {expected}"
    if "Traceback" in output or "INTERNALERROR" in output:
        yield "a traceback"
    if given.ending not in _NORMAL and given.names and not any(name in output for name in given.names):
        yield f"names none of {', '.join(map(repr, given.names))}"
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines and given.ending not in _NORMAL:
        yield "says nothing"
    if len(lines) > most_lines or len(output) > 200 * most_lines + 4000:
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
