"""Runs whose processes are killed and which are resumed, to be compared with the rows of an undisturbed run.

A case whose process is killed, and killed once more when it is asked again, is not run: that is no difference. Only an
xdist worker that is still being imported, and has started nothing, may end when it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq

from places import ROOT
from poolproof.reports.rows.store import read_rows
from sessions import surroundings

ASKED = [
    *("--backend", "plugged_backends:dies_of_threes", "--operator", "MaxPool2dWithIndicesBackward"),
    *("--dtype", "float16", "--aspect", "values", "--aspect", "state", "--cases", "20", "--no-shrink"),
    *("--diagnose", "0", "-n", "2"),
]

GONE_SECONDS = 2.0
"""How long what descends from a killed process may stay."""

STARTING_SECONDS = 30.0
"""How long an xdist worker may stay that was still being imported; execnet gives it 15 seconds."""

SESSION_SECONDS = 600.0
"""How long a session may take."""


@dataclass(frozen=True)
class Seen:
    """A process as it was seen: its id, its parent's, its arguments."""

    pid: int
    parent: int
    command: str

    @property
    def is_guardian(self) -> bool:
        return "guardian.py" in self.command


Family = dict[int, Seen]
"""A session and all that descends from it, by process id."""


def is_worker(family: Family, one: Seen) -> bool:
    return "exec(eval(sys.stdin.readline()))" in one.command


def is_server(family: Family, one: Seen) -> bool:
    return one.parent in family and family[one.parent].is_guardian and not one.is_guardian


ROLES: dict[str, Callable[[Family, Seen], bool]] = {
    "session": lambda family, one: one.parent == os.getpid(),
    "xdist worker": is_worker,
    "guardian": lambda family, one: one.is_guardian,
    "server": is_server,
    "judging process": lambda family, one: one.parent in family and is_server(family, family[one.parent]),
}


@dataclass(frozen=True)
class Kill:
    """A kill (-9) of one process of a role, once the run has so many rows."""

    role: str
    rows: int


@dataclass(frozen=True)
class Result:
    """The result of a run: the exit status of its last session, and the number of each (block, case id, verdict)."""

    status: int
    rows: Counter[tuple[str, ...]]

    def difference(self, other: Result, kills: int) -> str:
        """In what another result, of a run with so many ``kills``, differs from this one, in words.

        One case for every two kills may be not run.
        """
        lost, added = self.rows - other.rows, other.rows - self.rows
        not_run = {row[:2] for row in added if row[2] == "not run"}
        twice = {row[:2] for row in lost} & not_run
        lost, added = (
            Counter({row: count for row, count in rows.items() if row[:2] not in twice}) for rows in (lost, added)
        )
        if self.status == other.status and not lost and not added and len(twice) <= kills // 2:
            return ""
        found = f"lost {sorted(lost)}, added or doubled {sorted(added)}, killed twice {sorted(twice)}"
        return f"exit status {other.status} for {self.status}; {found}"


class Session:
    """A session of the run in ``folder``, begun or resumed; a word in their environment marks its processes."""

    def __init__(self, folder: Path) -> None:
        self._folder, word = folder, uuid4().hex
        self._mark = f"KILLS={word}".encode()
        resume = ["--resume"] if (folder / "run.json").exists() else []
        command = [sys.executable, "-m", "pytest", "suites", "-q", "-p", "no:cacheprovider", "--no-search", *ASKED]
        with folder.with_suffix(".txt").open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--report", str(folder), *resume],
                cwd=ROOT,
                env=surroundings() | {"KILLS": word},
                stdout=output,
                stderr=output,
            )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> int:
        """Wait for its end and for all of its processes; return the exit status."""
        status = self._process.wait(SESSION_SECONDS)
        family = self._family()
        assert self._are_gone(family.keys() - _starting(family)), f"processes stayed: {family}"
        assert self._wait(lambda left: left.keys(), STARTING_SECONDS), f"processes stayed: {self._family()}"
        return status

    def kill(self, kill: Kill) -> bool:
        """Kill one process of a role, and wait for what descends from it; False where the session ends before."""
        deadline = time.monotonic() + SESSION_SECONDS
        while not self.ended and time.monotonic() < deadline:
            time.sleep(0.02)
            if _recorded(self._folder) < kill.rows:
                continue  # before anybody is looked for: that reads a file of every process of the machine
            family = self._family()
            for victim in [one for one in family.values() if ROLES[kill.role](family, one)][:1]:
                doomed = {victim.pid, *_descendants(family, victim.pid)} - _starting(family)
                with suppress(ProcessLookupError):
                    os.kill(victim.pid, 9)
                    if kill.role == "session":
                        self._process.wait(SESSION_SECONDS)
                    assert self._are_gone(doomed), f"what descended from a killed {kill.role} stayed"
                    return True
        return False

    def _are_gone(self, doomed: set[int]) -> bool:
        return self._wait(lambda family: family.keys() & doomed, GONE_SECONDS)

    def _wait(self, left: Callable[[Family], Set[int]], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while left(self._family()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _family(self) -> Family:
        found = (_seen(path, self._mark) for path in Path("/proc").glob("[0-9]*"))
        return {one.pid: one for one in found if one is not None}


def _seen(path: Path, mark: bytes) -> Seen | None:
    """A process that has a mark in its environment; the dead have none."""
    try:
        if mark not in (path / "environ").read_bytes().split(b"\0"):
            return None
        parent = int((path / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        return Seen(int(path.name), parent, (path / "cmdline").read_text(errors="replace").replace("\0", " "))
    except (OSError, IndexError):
        return None


def _descendants(family: Family, pid: int) -> Iterator[int]:
    for one in family.values():
        if one.parent == pid:
            yield one.pid
            yield from _descendants(family, one.pid)


def _starting(family: Family) -> set[int]:
    """Workers that have started nothing."""
    parents = {one.parent for one in family.values()}
    return {pid for pid, one in family.items() if is_worker(family, one) and pid not in parents}


def _recorded(folder: Path) -> int:
    """Rows of a run that is being written, about."""
    count = 0
    for file in (folder / "rows").glob("*[lt]"):
        with suppress(OSError):
            count += pq.read_metadata(file).num_rows if file.suffix == ".parquet" else file.read_bytes().count(b"\n")
    return count


def disturbed(folder: Path, kills: Sequence[Kill]) -> tuple[Result, list[str]]:
    """Return the result of a run with these kills, and the roles of those for which it was too short."""
    session, missed = Session(folder), []
    for kill in kills:
        if session.ended:
            session.end()
            session = Session(folder)
        if not session.kill(kill):
            missed.append(kill.role)
    session.end()
    return result_of(Session(folder).end(), folder), missed


def result_of(status: int, folder: Path) -> Result:
    """Return the result of the run in a folder, whose last session ended with this status."""
    columns = ["block", "case_id", "verdict"]
    return Result(status, Counter(tuple(map(str, row.values())) for row in read_rows(folder, columns).to_pylist()))
