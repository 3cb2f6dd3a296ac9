"""Small cases judged per second on one core, after start-up: drawing, judging and recording as a run does it.

    python benchmarks/throughput.py [--backend torch-cpu] [--cases 200]

Prints the median over the operators and dtypes, and the slowest of them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from datetime import date
from pathlib import Path

import click

from poolproof.reports.rows.store import RowWriter
from poolproof.reports.waivers import Waivers, load, shipped
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.running.plans import ASPECTS, Block
from poolproof.suites.running.runner import Jury
from poolproof.suites.running.sandbox import Bench

NEVER_EXPIRES = date(2000, 1, 1)


@click.command()
@click.option("--backend", default="torch-cpu", show_default=True)
@click.option("--cases", default=200, show_default=True, help="Cases per operator, dtypes and aspect.")
def main(backend: str, cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(backend, Path(folder), "survey", 60.0)
        survey = bench.start()
        bench.close()
        rows = RowWriter(Path(folder), "throughput")
        waivers = Waivers([waiver for path in shipped() for waiver in load(path)], NEVER_EXPIRES)
        jury = Jury(Path(folder), "jury", waivers, {backend: survey.environment}, rows.append, 60.0, shrinks=False)
        rates = {}
        for cell in survey.cells:
            for name in ("values", "precision"):
                aspect = ASPECTS[name]
                if cell.unsupported or not aspect.covers(cell.operator):
                    continue
                seed = derive_seed("throughput", cell.operator.name, cell.dtype, name)
                if not rates:
                    jury.judge(Block(cell, aspect, 0, 20, seed))  # start-up
                    rates[""] = 0.0
                started = time.perf_counter()
                jury.judge(Block(cell, aspect, 0, cases, seed))
                rates[f"{cell.operator.name} {cell.dtype} {name}"] = cases / (time.perf_counter() - started)
        jury.close()
        rows.close()
    del rates[""]
    slowest = min(rates, key=lambda name: rates[name])
    click.echo(f"{backend}: median {statistics.median(rates.values()):.0f} cases a second on one core")
    click.echo(f"slowest: {slowest} with {rates[slowest]:.0f}")


if __name__ == "__main__":
    main()
