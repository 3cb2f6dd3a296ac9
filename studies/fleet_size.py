"""Time per row and memory of a fleet's driver as the fleet grows, with judges that judge nothing.

    python studies/fleet_size.py RUN [--judges 4,16,64] [--seconds 20] [--rate 20]

The judges are actors of a Ray of this machine that return blocks of 200 copies of a row of RUN, so many rows a second
each, as real ones would: the driver cannot tell. A line for each size says how many rows a second came, what CPU time
the driver took for one, and the most memory that it had; the last line has judges that return all they can: the
driver's limit.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import click
import pytest

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, read_rows
from poolproof.suites.fleet.node import Batch
from poolproof.suites.fleet.ray_pool import AUTO, RayPool
from poolproof.suites.fleet.session import Recording, Work, judge_all
from poolproof.suites.plan.blocks import Block

BLOCK = 200
"""Rows of a block, as real ones have at most."""


@dataclass(frozen=True)
class Copies:
    """A block of copies of a row, which come at a rate; None is as fast as can be."""

    id: str
    row: Row
    rate: float | None


class Copying:
    """A judge that returns what it is given."""

    def run(self, work: Copies) -> Batch:
        if work.rate is not None:
            time.sleep(BLOCK / work.rate)
        return Batch([work.row | {"block": work.id, "case_id": f"{number:012x}"} for number in range(BLOCK)])


class Simulated(RayPool):
    """As many of these as are asked for, whatever the machine has."""

    def __init__(self, judges: int) -> None:
        super().__init__(AUTO, "CPU", 1)
        self.size = judges
        self._copying = [self._ray.remote(Copying).options(num_cpus=0).remote() for _ in range(judges)]
        self._ray.get([self.ping(judge) for judge in range(judges)])

    def ping(self, judge: int) -> Any:
        return self._copying[judge].__ray_ready__.remote()

    def ask(self, judge: int, _method: str, *arguments: Any) -> Any:
        return self._copying[judge].run.remote(*arguments)


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True))
@click.option("--judges", default="4,16,64")
@click.option("--seconds", default=20.0, help="For which there are rows, for each size.")
@click.option("--rate", default=20.0, help="Rows a second of each judge.")
def main(run: Path, judges: str, seconds: float, rate: float) -> None:
    row = next(row for row in read_rows(run).to_pylist() if row["verdict"] == "conforms" and row["block"])
    sizes = [int(size) for size in judges.split(",")]
    for size in sizes:
        measure(size, row, rate, seconds)
    measure(sizes[0], row, None, seconds)


def measure(judges: int, row: Row, rate: float | None, seconds: float) -> None:
    pid = os.fork()  # a driver of its own for each size: its memory is told from the others'
    if pid == 0:
        told(judges, row, rate, seconds)
        os._exit(0)
    os.waitpid(pid, 0)


def told(judges: int, row: Row, rate: float | None, seconds: float) -> None:
    pool = Simulated(judges)
    count = max(judges, round(judges * (rate or 5000.0) * seconds / BLOCK))
    blocks = [cast(Block, Copies(f"block{number}", row, rate)) for number in range(count)]
    works = [Work(cast(pytest.Item, None), block) for block in blocks]
    with TemporaryDirectory() as scratch:
        writer = RowWriter(Path(scratch), "main")
        begun, cpu = time.monotonic(), time.process_time()
        judge_all(works, pool, Recording(Path(scratch), writer), lambda _work, _judge: None)
        took, used = time.monotonic() - begun, time.process_time() - cpu
        writer.close()
    rows = count * BLOCK
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = "as fast as can be" if rate is None else f"{rate:g} a second each"
    click.echo(
        f"{judges:3} judges, {speed}: {rows:,} rows, {rows / took:,.0f} a second, {1e6 * used / rows:,.0f} us of CPU "
        f"for each, {memory:,.0f} MB",
    )
    pool.close()


if __name__ == "__main__":
    main()
