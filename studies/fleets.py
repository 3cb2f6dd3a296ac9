"""The cost of judging a plan by workers and fleets instead of one session, and whether the results agree.

    python studies/fleets.py [--workers 2] [--ray-workers 2,4] [--kills 0] [--no-ways] -- OPTIONS

OPTIONS are those of the session. One session, xdist, four shards one after another and merged, and Ray judge the same
plan in turn; a line for each says its seconds from start to end, those of judging alone (pytest's own count), and
whether its rows (case, verdict, checks, waivers, bits) are those of the first. With ``--kills`` Ray judges it once more
while so many of its judges are killed, and once while its driver is, three times; ``--no-ways`` leaves out the others,
but for the first. Exits with 1 if anything differs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import click

from poolproof.reports.rows.store import read_rows

ROOT = Path(__file__).parents[1]
COLUMNS = (
    *("backend", "block", "case_id", "operator", "dtype", "index_dtype", "verdict"),
    *("checks_judged", "checks_violated", "waivers", "output_digest"),
)


class Way:
    """One way to judge a plan, with what it took."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.seconds = self.judging = 0.0

    def session(self, *options: str, folder: Path | None = None) -> None:
        begun = time.monotonic()
        said = self.begin(*options, folder=folder).communicate()[0]
        self.ended(said, time.monotonic() - begun)

    def begin(self, *options: str, folder: Path | None = None) -> subprocess.Popen[str]:
        asked = ["--pyargs", "poolproof.suites", "-q", "-p", "no:cacheprovider", "--ci", "none"]
        command = [sys.executable, "-m", "pytest", *asked, "--report", str(folder or self.folder), *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)

    def ended(self, said: str, seconds: float) -> None:
        self.seconds += seconds
        found = re.findall(r" in ([\d.]+)s", said)
        if not found:
            raise click.ClickException(f"{self.name} did not come to its end:\n{said[-2000:]}")
        self.judging += float(found[-1])

    def rows(self) -> Counter[tuple[str, ...]]:
        rows = read_rows(self.folder, COLUMNS).to_pylist()
        return Counter(tuple(str(row[name]) for name in COLUMNS) for row in rows if row["block"])


def judges(driver: int) -> list[int]:
    """List the processes that judge now on the Ray that a driver started."""
    said = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in said.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in lines}
    judging = [int(pid) for pid, _, what in lines if what.startswith("ray::Judge.run")]
    return [pid for pid in judging if driver in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found = set()
    while pid := parents.get(pid, 0):
        found.add(pid)
    return found


def killed(way: Way, options: list[str], kills: int, random: Random) -> int:
    """Judge while judges are killed, one every few seconds; how many were."""
    begun, driver, done = time.monotonic(), way.begin(*options), 0
    while driver.poll() is None and done < kills:
        time.sleep(random.uniform(0.5, 4.0))
        if there := judges(driver.pid):
            os.kill(random.choice(there), signal.SIGKILL)
            done += 1
    way.ended(driver.communicate()[0], time.monotonic() - begun)
    return done


def resumed(way: Way, options: list[str], times: int, random: Random) -> int:
    """Judge while the driver is killed, and gone on with; how often it was."""
    done = 0
    for number in range(times):
        driver = way.begin(*options, *(["--resume"] if number else []))
        while driver.poll() is None and not judges(driver.pid):
            time.sleep(0.2)
        time.sleep(random.uniform(1.0, 4.0))
        done += driver.poll() is None
        driver.kill()
        driver.communicate()
        time.sleep(2.0)  # a Ray that nobody drives ends itself
    way.session(*options, "--resume")
    return done


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--workers", default=2, help="Of xdist.")
@click.option("--ray-workers", default="2,4", help="Of Ray, in turn.")
@click.option("--kills", default=0, help="Of judges.")
@click.option("--no-ways", is_flag=True, help="Of the ways one session alone, to hold kills against.")
@click.option("--seed", default=0, help="Of the moments of kills.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(workers: int, ray_workers: str, kills: int, no_ways: bool, seed: int, options: tuple[str, ...]) -> None:
    random = Random(seed)
    os.environ["RAY_AUTH_MODE"] = "disabled"  # a cluster of this machine, which ends with this program
    with TemporaryDirectory() as scratch:
        judged = Judged(Path(scratch), list(options))
        if not no_ways:
            judged.in_other_ways(workers, [int(number) for number in ray_workers.split(",")])
        if kills:
            judged.disturbed(kills, random)
    sys.exit(1 if judged.differing else 0)


class Judged:
    """A plan that one session has judged, and what others make of it."""

    def __init__(self, scratch: Path, options: list[str]) -> None:
        self._scratch, self._options = scratch, options
        self._first = Way("one session", scratch / "one")
        self._first.session(*options)
        self._rows = self._first.rows()
        self.differing = 0
        self._done(self._first)

    def in_other_ways(self, workers: int, ray_workers: list[int]) -> None:
        xdist = Way(f"xdist, {workers} workers", self._scratch / "xdist")
        xdist.session("-n", str(workers), *self._options)
        self._done(xdist)
        self._done(self._merged())
        for number in ray_workers:
            self._done(self._on_ray(number))

    def disturbed(self, kills: int, random: Random) -> None:
        options = ["--ray", "auto", *self._options]
        way = Way("Ray, judges killed", self._scratch / "killed")
        self._done(way, f"{killed(way, options, kills, random)} killed")
        way = Way("Ray, driver killed and resumed", self._scratch / "resumed")
        self._done(way, f"{resumed(way, options, 3, random)} killed")

    def _merged(self) -> Way:
        way = Way("4 shards, one after another, merged", self._scratch / "merged")
        parts = [self._scratch / f"shard{number}" for number in range(1, 5)]
        for number, part in enumerate(parts, 1):
            way.session("--shard", f"{number}/4", *self._options, folder=part)
        begun = time.monotonic()
        merge = ["poolproof", "merge", *map(str, parts), "-o", str(way.folder)]
        subprocess.run(merge, capture_output=True, check=False)
        way.seconds += time.monotonic() - begun
        return way

    def _on_ray(self, workers: int) -> Way:
        """More judges than cores, too: Ray is told of as many as are asked for."""
        way = Way(f"Ray, {workers} workers", self._scratch / f"ray{workers}")
        started = ["ray", "start", "--head", "--num-cpus", str(workers), "--port", "6391", "--disable-usage-stats"]
        subprocess.run(started, capture_output=True, check=True)
        try:
            way.session("--ray", "127.0.0.1:6391", *self._options)
        finally:
            subprocess.run(["ray", "stop", "--force"], capture_output=True, check=False)
        return way

    def _done(self, way: Way, note: str = "") -> None:
        others = (way.rows() - self._rows).total() + (self._rows - way.rows()).total()
        self.differing += others
        tell(way, self._first, self._rows, others, note)


def tell(way: Way, first: Way, rows: Counter[tuple[str, ...]], others: int, note: str = "") -> None:
    same = "the same rows" if not others else f"{others:,} ROWS DIFFER"
    click.echo(
        f"{way.name:36} {way.seconds:7.1f} s, judging {way.judging:7.1f} s ({way.judging / first.judging:.2f}), "
        f"{rows.total():,} rows, {same}{', ' if note else ''}{note}"
    )


if __name__ == "__main__":
    main()
