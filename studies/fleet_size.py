"""Time per row and memory of a fleet's driver as the fleet grows, with judges that judge nothing.

    python studies/fleet_size.py RUN [--judges 4,16,64] [--seconds 20] [--rate 20]

The judges are actors of a Ray of this machine that hand over copies of a row of RUN, so many a second each, as real
ones would: the driver cannot tell. A line for each size says how many rows a second came, what CPU time the driver took
for one, and the most memory that it had; the last line has judges that hand over all they can: the driver's limit.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import click

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter, read_rows
from poolproof.suites.fleet.dispatch import Dispatch
from poolproof.suites.fleet.node import Batch, Judge, Node, Work
from poolproof.suites.fleet.ray_pool import AUTO, Actor, RayPool
from poolproof.suites.fleet.session import Recording
from poolproof.suites.run.runner import BlockResult

AT_ONCE = 0.25
"""Seconds between two batches, as real judges have it."""


@dataclass(frozen=True)
class Copies:
    """A block of so many copies of a row, which come at a rate; None is as fast as can be."""

    id: str
    count: int
    row: Row
    rate: float | None
    aspect: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(costly=False))

    def rows(self) -> Iterator[Row]:
        return (self.row | {"block": self.id, "case_id": f"{number:012x}"} for number in range(self.count))


class Copying(Judge):
    """Hands over what it is given."""

    def judge(self, work: Any, _judged: frozenset[str]) -> Iterator[Batch]:
        batch = Batch()
        most = 200 if work.rate is None else max(1, round(work.rate * AT_ONCE))
        for row in work.rows():
            batch.rows.append(row)
            if len(batch.rows) == most:
                if work.rate is not None:
                    time.sleep(AT_ONCE)
                yield batch
                batch = Batch()
        yield batch

    def close(self) -> None:
        """Nothing was started."""


class Simulated(RayPool):
    """As many of these as are asked for, whatever the machine has."""

    def __init__(self, judges: int) -> None:
        super().__init__(AUTO, "CPU", 1)
        self.size = judges

    def _started(self, number: int) -> Any:
        return self._ray.remote(Copying).options(num_cpus=0).remote(number)

    def start(self) -> None:
        handles = [self._started(number) for number in range(self.size)]
        nodes: list[Node] = self._get([handle.node.remote() for handle in handles])
        for number, (handle, node) in enumerate(zip(handles, nodes, strict=True)):
            self._actors[number] = Actor(handle, node)


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
    pool.start()
    blocks, count = 4 * judges, max(1, round((rate or 5000.0) * seconds / 4))
    works = [Copies(f"block{number}", count, row, rate) for number in range(blocks)]
    ended: list[str] = []

    def report(work: Work, _result: BlockResult, _error: str, _judge: int, _seconds: float) -> None:
        ended.append(work.id)

    with TemporaryDirectory() as scratch:
        writer = RowWriter(Path(scratch), "main")
        recording = Recording(Path(scratch), writer, report, click.echo)
        begun, cpu = time.monotonic(), time.process_time()
        Dispatch(pool, recording, 600.0).run(cast("list[Work]", works))
        took, used = time.monotonic() - begun, time.process_time() - cpu
        writer.close()
    rows = blocks * count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = "as fast as can be" if rate is None else f"{rate:g} a second each"
    click.echo(
        f"{judges:3} judges, {speed}: {rows:,} rows, {rows / took:,.0f} a second, {1e6 * used / rows:,.0f} us of CPU "
        f"for each, {memory:,.0f} MB",
    )
    pool.close()


if __name__ == "__main__":
    main()
