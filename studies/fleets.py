"""What it costs to judge a plan in other ways than in one session, and whether it comes to the same.

    python studies/fleets.py [--workers 2] [--ray-workers 4] [--kills 0] -- OPTIONS

OPTIONS are those of the session. One session, xdist, four shards one after another and merged, and Ray judge the same
plan in turn; a line for each says its seconds from start to end, those of judging alone (pytest's own count), and
whether its rows (case, verdict, checks, waivers, bits) are those of the first. With ``--kills`` Ray judges it once more
while so many of its judges are killed, and once while its driver is, three times. Exits with 1 if anything differs.
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


def judges() -> list[int]:
    """Processes that judge on Ray now."""
    said = subprocess.run(["pgrep", "-f", "^ray::Judge.judge"], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in said.split()]


def killed(way: Way, options: list[str], kills: int, random: Random) -> int:
    """Judge while judges are killed, one every few seconds; how many were."""
    begun, driver, done = time.monotonic(), way.begin(*options), 0
    while driver.poll() is None and done < kills:
        time.sleep(random.uniform(0.5, 4.0))
        if there := judges():
            os.kill(random.choice(there), signal.SIGKILL)
            done += 1
    way.ended(driver.communicate()[0], time.monotonic() - begun)
    return done


def resumed(way: Way, options: list[str], times: int, random: Random) -> int:
    """Judge while the driver is killed, and gone on with; how often it was."""
    done = 0
    for number in range(times):
        driver = way.begin(*options, *(["--resume"] if number else []))
        while driver.poll() is None and not judges():
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
@click.option("--seed", default=0, help="Of the moments of kills.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(workers: int, ray_workers: str, kills: int, seed: int, options: tuple[str, ...]) -> None:
    random = Random(seed)
    os.environ["RAY_AUTH_MODE"] = "disabled"  # a cluster of this machine, which ends with this program
    with TemporaryDirectory() as scratch:
        differing = judge(Path(scratch), workers, ray_workers, kills, random, list(options))
    sys.exit(1 if differing else 0)


def judge(scratch: Path, workers: int, ray_workers: str, kills: int, random: Random, options: list[str]) -> int:
    first = Way("one session", scratch / "one")
    first.session(*options)
    rows, differing = first.rows(), 0
    tell(first, first, rows, 0)

    def done(way: Way, note: str = "") -> None:
        nonlocal differing
        others = (way.rows() - rows).total() + (rows - way.rows()).total()
        differing += others
        tell(way, first, rows, others, note)

    xdist = Way(f"xdist, {workers} workers", scratch / "xdist")
    xdist.session("-n", str(workers), *options)
    done(xdist)
    shards = Way("4 shards, one after another, merged", scratch / "merged")
    parts = [scratch / f"shard{number}" for number in range(1, 5)]
    for number, part in enumerate(parts, 1):
        shards.session("--shard", f"{number}/4", *options, folder=part)
    begun = time.monotonic()
    merge = ["poolproof", "merge", *map(str, parts), "-o", str(shards.folder)]
    subprocess.run(merge, capture_output=True, check=False)
    shards.seconds += time.monotonic() - begun
    done(shards)
    for number in ray_workers.split(","):
        # more judges than cores: Ray is told of as many as are asked for
        ray = Way(f"Ray, {number} workers", scratch / f"ray{number}")
        started = ["ray", "start", "--head", "--num-cpus", number, "--port", "6391", "--disable-usage-stats"]
        subprocess.run(started, capture_output=True, check=True)
        try:
            ray.session("--ray", "127.0.0.1:6391", *options)
        finally:
            subprocess.run(["ray", "stop", "--force"], capture_output=True, check=False)
        done(ray)
    if kills:
        way = Way("Ray, judges killed", scratch / "killed")
        done(way, f"{killed(way, ['--ray', 'auto', *options], kills, random)} killed")
        way = Way("Ray, driver killed and resumed", scratch / "resumed")
        done(way, f"{resumed(way, ['--ray', 'auto', *options], 3, random)} killed")
    return differing


def tell(way: Way, first: Way, rows: Counter[tuple[str, ...]], others: int, note: str = "") -> None:
    same = "the same rows" if not others else f"{others:,} ROWS DIFFER"
    click.echo(
        f"{way.name:36} {way.seconds:7.1f} s, judging {way.judging:7.1f} s ({way.judging / first.judging:.2f}), "
        f"{rows.total():,} rows, {same}{', ' if note else ''}{note}"
    )


if __name__ == "__main__":
    main()
