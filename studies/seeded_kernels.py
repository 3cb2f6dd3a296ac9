"""The kernels of `examples/kernels`: clean in many orders of cores and threads, and their faults after how many cases.

    python studies/seeded_kernels.py orders [--orders 50] [--cases 4] [--kernel NAME]
    python studies/seeded_kernels.py faults [--most 200] [--kernel NAME]

``orders`` judges cases of every aspect of the smoke plan by all checks, each launched once in every order. ``faults``
goes through the smoke plan, each aspect in turn, until a fault is found. Cases of more cells than `MOST_CELLS` are left
out of ``orders``, and aspects that take long of both.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from math import prod
from pathlib import Path

import click

from poolproof.backends.base import Backend
from poolproof.reports.rows.verdicts import FAILED
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import EVERYTHING

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from seeded_kernels import FAULTS, KERNELS, made, seeded, smoke_plan, write_kernels

MOST_CELLS = 20_000
OF_KERNEL = click.option("--kernel", "only", type=click.Choice([*KERNELS]), help="This one alone.")
SEED = click.option("--seed", default=0, show_default=True)


@click.group()
def main() -> None:
    """Judge the examples."""


@main.command()
@click.option("--orders", "count", default=50, show_default=True)
@click.option("--cases", default=4, show_default=True, help="Cases of each aspect.")
@SEED
@OF_KERNEL
def orders(count: int, cases: int, seed: int, only: str | None) -> None:
    failures = 0
    for kernel, dtype, folder in _kernels(only):
        backend = made(folder, kernel, dtype)
        backend.modes = tuple(f"order {number}" for number in range(1, count + 1))
        judged: Counter[str] = Counter()
        began = time.monotonic()
        for question in smoke_plan(backend, dtype, seed):
            case = getattr(question, "case", None)
            if case is None or prod(case.shape) > MOST_CELLS or judged[question.aspect.id] == cases:
                continue
            judged[question.aspect.id] += 1
            row = CaseQuestion(case, EVERYTHING).judge(backend)
            if row["verdict"] in FAILED:
                failures += 1
                click.echo(f"  {row['reason']}\n  {row['case']}")
        seconds = time.monotonic() - began
        click.echo(
            f"{kernel} {dtype}: {judged.total()} cases in {count} orders, {len(judged)} aspects, {seconds:.0f} s"
        )
    click.echo(f"{failures} violations")
    raise SystemExit(failures > 0)


@main.command()
@click.option("--most", default=200, show_default=True, help="Cases until a fault counts as missed.")
@SEED
@OF_KERNEL
def faults(most: int, seed: int, only: str | None) -> None:
    missed = 0
    for kernel, dtype, folder in _kernels(only):
        backend = made(folder, kernel, dtype)
        for fault in (fault for fault in FAULTS if (fault.kernel, fault.dtype) == (kernel, dtype)):
            with seeded(fault.name):
                judged, said = _hunted(backend, dtype, seed, most)
            missed += not said
            click.echo(f"{kernel} {fault.name}: " + (f"case {judged}: {said}" if said else f"missed in {judged} cases"))
    raise SystemExit(missed > 0)


def _hunted(backend: Backend, dtype: str, seed: int, most: int) -> tuple[int, str]:
    """(cases judged, what was said of the one that failed): the checks that it violates, and the watch's sentence."""
    number = 0
    for number, question in enumerate(islice(smoke_plan(backend, dtype, seed), most), start=1):
        row = question.judge(backend)
        if row["verdict"] in FAILED:
            found = {each["check"]: each["message"] for each in json.loads(row["findings"])}
            return number, f"{row['aspect']}: {', '.join(found)}: {found.get('sanitizer') or row['reason']}"
    return number, ""


def _kernels(only: str | None) -> Iterator[tuple[str, str, Path]]:
    """(kernel, dtype, folder) of each, compiled once with all of its faults."""
    with tempfile.TemporaryDirectory() as folder:
        write_kernels(Path(folder))
        chosen: Iterable[str] = [only] if only else KERNELS
        yield from ((kernel, dtype, Path(folder)) for kernel in chosen for dtype in KERNELS[kernel])


if __name__ == "__main__":
    main()
