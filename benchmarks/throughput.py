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

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.waivers import Waivers, load, shipped
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.running.aspects import CASE_ASPECTS
from poolproof.suites.running.blocks import CaseBlock
from poolproof.suites.running.runner import Runner
from poolproof.suites.running.sandbox import survey

NEVER_EXPIRES = date(2000, 1, 1)


@click.command()
@click.option("--backend", default="torch-cpu", show_default=True)
@click.option("--cases", default=200, show_default=True, help="Cases per operator, dtypes and aspect.")
def main(backend: str, cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        surveyed = survey(backend)
        rows = RowWriter(Path(folder), "throughput")
        waivers = Waivers([waiver for path in shipped() for waiver in load(path)], NEVER_EXPIRES)

        def waive(row: Row) -> Row:
            return waivers.apply(row, surveyed.environment)

        runner = Runner(Path(folder), "throughput", waive, rows.append, 60.0, shrinks=False)
        rates = {}
        for subject in surveyed.subjects:
            for name in ("values", "precision"):
                aspect = CASE_ASPECTS[name]
                if not aspect.covers(subject):
                    continue
                seed = derive_seed("throughput", subject.operator.name, subject.dtype, name)
                if not rates:
                    runner.judge(CaseBlock(subject, aspect, 0, 20, seed))  # start-up
                    rates[""] = 0.0
                started = time.perf_counter()
                runner.judge(CaseBlock(subject, aspect, 0, cases, seed))
                rates[f"{subject.operator.name} {subject.dtype} {name}"] = cases / (time.perf_counter() - started)
        runner.close()
        rows.close()
    del rates[""]
    slowest = min(rates, key=lambda name: rates[name])
    click.echo(f"{backend}: median {statistics.median(rates.values()):.0f} cases a second on one core")
    click.echo(f"slowest: {slowest} with {rates[slowest]:.0f}")


if __name__ == "__main__":
    main()
