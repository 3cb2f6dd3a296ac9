"""Runs whose processes are killed and which are resumed, compared with the rows of an undisturbed run.

    python studies/kills.py [20] [--each 5] [--seed 0]

Each kill (-9) is of one process of a role, at a random moment: a session, an xdist worker, a guardian, a server or a
judging process. ``--each`` kills come in one run; it is then gone on with by ``--resume`` to its end, and its rows
(block, case, verdict) and exit status are compared with those of the undisturbed run. What descends from a killed
process has to be gone two seconds later, and so has all of a session after its end. A case whose process is killed,
and killed once more when it is asked again, is not run: that is said, and no difference. Only an xdist worker that is
still being imported, and has started nothing, may end when it is. Exits with 1 if anything differs.
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
from random import Random
from tempfile import TemporaryDirectory
from uuid import uuid4

import click
import pyarrow.parquet as pq

from poolproof.reports.rows.store import read_rows

ROOT = Path(__file__).parents[1]
ASKED = [
    *("--backend", "plugged_backends:dies_of_threes", "--operator", "MaxPool2dWithIndicesBackward"),
    *("--dtype", "float16", "--aspect", "values", "--aspect", "state", "--cases", "40", "--no-shrink"),
    *("--diagnose", "0", "-n", "2"),
]

GONE_SECONDS = 2.0
"""How long what descends from a killed process may stay."""

STARTING_SECONDS = 30.0
"""How long an xdist worker may stay that was still being imported; execnet gives it 15 seconds."""

SESSION_SECONDS = 600.0
"""How long a session may take."""

SAME = "same rows, none twice, same exit status, no process left"

MOST_RUNS = 100
"""Runs that are begun at most: each is too short for some kills."""


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


def is_session(family: Family, one: Seen) -> bool:
    return one.parent == os.getpid()


def is_worker(family: Family, one: Seen) -> bool:
    return "exec(eval(sys.stdin.readline()))" in one.command


def is_guardian(family: Family, one: Seen) -> bool:
    return one.is_guardian


def is_server(family: Family, one: Seen) -> bool:
    return one.parent in family and family[one.parent].is_guardian and not one.is_guardian


def is_judging(family: Family, one: Seen) -> bool:
    return one.parent in family and is_server(family, family[one.parent])


ROLES: dict[str, Callable[[Family, Seen], bool]] = {
    "session": is_session,
    "xdist worker": is_worker,
    "guardian": is_guardian,
    "server": is_server,
    "judging process": is_judging,
}


@dataclass(frozen=True)
class Kill:
    """One of a role, once the run has so many rows, and that many seconds later."""

    role: str
    rows: int
    seconds: float


@dataclass(frozen=True)
class Killed:
    """A kill that was made, and when all that descended from the process was gone; None: not within `GONE_SECONDS`."""

    kill: Kill
    gone: float | None

    def __str__(self) -> str:
        gone = "NOT ALL GONE" if self.gone is None else f"all gone after {self.gone:.2f} s"
        return f"{self.kill.role} at {self.kill.rows} rows: {gone}"


@dataclass(frozen=True)
class Result:
    """The result of a run: the exit status of its last session, and the number of each (block, case id, verdict)."""

    status: int
    rows: Counter[tuple[str, ...]]

    def killed_twice(self, other: Result) -> set[tuple[str, ...]]:
        """(block, case id) of what another result has not run: it was asked when its process was killed, and again."""
        lost, added = ({row[:2]: row[2] for row in rows} for rows in (self.rows - other.rows, other.rows - self.rows))
        return {place for place in lost.keys() & added.keys() if added[place] == "not run"}

    def difference(self, other: Result, kills: int) -> str:
        """In what another result, of a run with so many ``kills``, differs from this one, in words.

        One case for every two kills may be not run.
        """
        twice = self.killed_twice(other)
        lost, added = (
            Counter({row: count for row, count in rows.items() if row[:2] not in twice})
            for rows in (self.rows - other.rows, other.rows - self.rows)
        )
        if self.status == other.status and not lost and not added and len(twice) <= kills // 2:
            return ""
        found = f"lost {sorted(lost)}, added or doubled {sorted(added)}, killed twice {sorted(twice)}"
        return f"exit status {other.status} for {self.status}; {found}"


class Session:
    """A session of the run in ``folder``, begun or resumed; a word in their environment marks its processes."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, word = folder, uuid4().hex
        self._mark = f"KILLS={word}".encode()
        resume = ["--resume"] if (folder / "run.json").exists() else []
        command = [sys.executable, "-m", "pytest", "suites", "-q", "-p", "no:cacheprovider", *ASKED]
        with folder.with_suffix(".txt").open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--report", str(folder), *resume, *options],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT / "meta_tests" / "support"), "KILLS": word},
                stdout=output,
                stderr=output,
            )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> int:
        """Return the exit status, when it has ended."""
        return self._process.wait(SESSION_SECONDS)

    def kill(self, kill: Kill, random: Random) -> Killed | None:
        """Make a kill; None where the session ends before."""
        deadline = time.monotonic() + SESSION_SECONDS
        while not self.ended and time.monotonic() < deadline:
            time.sleep(0.02)
            if _recorded(self._folder) < kill.rows:
                continue  # before anybody is looked for: that reads a file of every process of the machine
            family = self.family()
            chosen = [one for one in family.values() if ROLES[kill.role](family, one)]
            if chosen:
                time.sleep(kill.seconds)
                killed = self._kill(kill, random.choice(chosen))
                if killed is not None:
                    return killed
        return None

    def _kill(self, kill: Kill, victim: Seen) -> Killed | None:
        """Kill a process; None where it has ended by itself."""
        family = self.family()
        doomed = {victim.pid, *_descendants(family, victim.pid)} - _starting(family)
        try:
            os.kill(victim.pid, 9)
        except ProcessLookupError:
            return None
        if kill.role == "session":
            self.end()
        return Killed(kill, self.gone(doomed))

    def gone(self, doomed: set[int]) -> float | None:
        """Seconds until none of these processes is there; None where some stay."""
        return self._gone(lambda family: family.keys() & doomed, GONE_SECONDS)

    def all_gone(self) -> bool:
        """Tell whether nothing of an ended session stays."""
        family = self.family()
        settled = self.gone(family.keys() - _starting(family)) is not None
        return settled and self._gone(lambda left: left.keys(), STARTING_SECONDS) is not None

    def _gone(self, left: Callable[[Family], Set[int]], seconds: float) -> float | None:
        began = time.monotonic()
        while (waited := time.monotonic() - began) <= seconds:
            if not left(self.family()):
                return waited
            time.sleep(0.02)
        return None

    def family(self) -> Family:
        found = (_seen(path, self._mark) for path in Path("/proc").glob("[0-9]*"))
        return {one.pid: one for one in found if one is not None}


def _seen(path: Path, mark: bytes) -> Seen | None:
    """Tell whether a process has a mark in its environment; the dead have none."""
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


def drawn(roles: Sequence[str], rows: int, random: Random) -> list[Kill]:
    """Plan a kill of each of these roles, in the order in which a run with so many rows comes to them."""
    moments = sorted(random.randrange(rows * 4 // 5) for _ in roles)
    return [Kill(role, moment, random.uniform(0.0, 0.3)) for role, moment in zip(roles, moments, strict=True)]


def undisturbed(folder: Path) -> Result:
    return result_of(Session(folder).end(), folder)


def disturbed(
    folder: Path, kills: Sequence[Kill], random: Random, say: Callable[[str], None]
) -> tuple[Result, list[str]]:
    """Return the result of a run with these kills, and the roles of those for which it was too short.

    RuntimeError where a process stays.
    """
    session, missed = Session(folder), []
    for kill in kills:
        if session.ended:
            _require_gone(session)
            session = Session(folder)
        killed = session.kill(kill, random)
        if killed is None:
            missed.append(kill.role)
        else:
            say(f"  {killed}")
            _require(killed.gone is not None, f"what descended from a killed {kill.role} stayed")
    session.end()
    _require_gone(session)
    last = Session(folder)
    status = last.end()
    _require_gone(last)
    return result_of(status, folder), missed


def _require_gone(session: Session) -> None:
    _require(session.all_gone(), f"processes stayed behind their session: {session.family()}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


def result_of(status: int, folder: Path) -> Result:
    """Return the result of the run in a folder, whose last session ended with this status."""
    columns = ["block", "case_id", "verdict"]
    return Result(status, Counter(tuple(map(str, row.values())) for row in read_rows(folder, columns).to_pylist()))


@click.command()
@click.argument("count", default=20)
@click.option("--each", default=len(ROLES), show_default=True, help="Kills in one run.")
@click.option("--seed", default=0, show_default=True)
def main(count: int, each: int, seed: int) -> None:
    random, made, differ = Random(seed), 0, 0
    roles = [[*ROLES][number % len(ROLES)] for number in range(count)]
    with TemporaryDirectory() as scratch:
        expected = undisturbed(Path(scratch, "undisturbed"))
        most = max(expected.rows.values())
        say(f"seed {seed}; undisturbed: {expected.rows.total()} rows, none oftener than {most} times")
        for number in range(MOST_RUNS):
            chosen, roles = roles[:each], roles[each:]
            random.shuffle(chosen)
            kills = drawn(chosen, expected.rows.total(), random)
            result, missed = disturbed(Path(scratch, f"run-{number}"), kills, random, say)
            difference = expected.difference(result, len(chosen))
            twice = len(expected.killed_twice(result))
            made, differ, roles = made + len(chosen) - len(missed), differ + bool(difference), missed + roles
            say(f"{made} kills, resumed: {difference or SAME}; not run, for killed twice: {twice}")
            if not roles:
                break
    say(f"{made} kills, {differ} runs differ")
    raise SystemExit(differ > 0 or made < count)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
